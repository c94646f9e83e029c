import type { WaitRow } from "./wait-row.ts";

/** `current`: a question that is wanted, new or changed. `gone`: one that was wanted and is not any more, as it is now. */
export interface WaitChange {
  readonly kind: "current" | "gone";
  readonly wait: WaitRow;
}

/**
 * Changes that a reader has not taken yet: of each question the last one, so that whoever reads slowly holds no more than there are questions.
 */
export class WaitChanges {
  readonly #shown = new Set<string>();
  readonly #pending = new Map<string, WaitChange>();
  #wake: () => void = () => undefined;

  /** @param isWanted  whether it fits now */
  note(wait: WaitRow, isWanted: boolean): void {
    const { key } = wait;
    if (!isWanted && !this.#shown.has(key)) {
      this.#pending.delete(key); // nobody was told that it is there
      return;
    }
    this.#pending.delete(key); // behind those that changed before
    this.#pending.set(key, { kind: isWanted ? "current" : "gone", wait });
    this.#wake();
  }

  /** The oldest one; undefined when there is none now. */
  take(): WaitChange | undefined {
    const [next] = this.#pending;
    if (next === undefined) return undefined;
    const [key, change] = next;
    this.#pending.delete(key);
    if (change.kind === "gone") this.#shown.delete(key);
    else this.#shown.add(key);
    return change;
  }

  /** Resolves when there may be one, or somebody wakes it. */
  async more(): Promise<void> {
    if (this.#pending.size > 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await promise;
  }

  wake(): void {
    this.#wake();
  }
}
