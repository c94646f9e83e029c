import { readFileSync } from "node:fs";

/** Most memory that one process was seen to use, from the system's own account. */
export class ProcessWatch {
  readonly pid: number;
  #highestMb = 0;
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(pid: number, everyMs = 50) {
    this.pid = pid;
    this.#timer = setInterval(() => this.#look(), everyMs).unref();
    this.#look();
  }

  /** MiB of resident memory; the system's high-water mark, and the sampled one where there is none. */
  get highestMb(): number {
    this.#look();
    return this.#highestMb;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    try {
      const status = readFileSync(`/proc/${this.pid}/status`, "latin1");
      for (const [, kib] of status.matchAll(/^Vm(?:HWM|RSS):\s+(\d+) kB$/gm))
        this.#highestMb = Math.max(this.#highestMb, Number(kib) / 1024);
    } catch {
      // It has ended; what was seen stays.
    }
  }
}
