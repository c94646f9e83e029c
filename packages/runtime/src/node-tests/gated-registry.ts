import type { CommitOutcome, FleetRegistry, FleetValue } from "../ports/index.ts";

/**
 * A fleet registry whose watch can be made to stand still, as one does whose consumer has to be made anew, while writes go on.
 *
 * Owns: what was seen but not handed over. Does not own: the bucket.
 */
export class GatedRegistry implements FleetRegistry {
  readonly #inner: FleetRegistry;
  #isSlow = false;
  #waiting: (() => void)[] = [];

  constructor(inner: FleetRegistry) {
    this.#inner = inner;
  }

  lag(): void {
    this.#isSlow = true;
  }

  goOn(): void {
    this.#isSlow = false;
    for (const pass of this.#waiting.splice(0)) pass();
  }

  put(key: string, bytes: Uint8Array): Promise<{ readonly seq: number; readonly storedAtMs: number } | undefined> {
    return this.#inner.put(key, bytes);
  }

  compareAndSet(...request: Parameters<FleetRegistry["compareAndSet"]>): Promise<CommitOutcome> {
    return this.#inner.compareAndSet(...request);
  }

  get(key: string): Promise<FleetValue | undefined> {
    return this.#inner.get(key);
  }

  watch(deliver: (value: FleetValue) => void, keys?: string): Promise<{ stop(): Promise<void> }> {
    return this.#inner.watch((value) => {
      if (this.#isSlow) this.#waiting.push(() => deliver(value));
      else deliver(value);
    }, keys);
  }

  remove(key: string): Promise<void> {
    return this.#inner.remove(key);
  }
}
