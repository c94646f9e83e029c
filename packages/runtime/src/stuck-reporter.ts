import type { StuckReport } from "./partition-set.ts";
import type { FleetRegistry } from "./ports/index.ts";

/** Writes what cannot go on by itself under the key `stuck.<node>`, when that has changed. */
export class StuckReporter {
  readonly #node: string;
  readonly #fleet: FleetRegistry;
  readonly #reports: () => readonly StuckReport[];
  #last = "";

  constructor(node: string, fleet: FleetRegistry, reports: () => readonly StuckReport[]) {
    this.#node = node;
    this.#fleet = fleet;
    this.#reports = reports;
  }

  /** What was not stored is written again the next time. */
  async tell(): Promise<void> {
    const text = JSON.stringify({ v: 1, node: this.#node, reports: this.#reports() });
    if (text === this.#last) return;
    if (await this.#fleet.put(`stuck.${this.#node}`, new TextEncoder().encode(text))) this.#last = text;
  }
}
