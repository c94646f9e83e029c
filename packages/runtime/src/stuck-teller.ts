import type { StuckReport } from "./partition-set.ts";
import type { FleetRegistry } from "./ports/index.ts";

/** Writes what a node knows to be stuck into the fleet's bucket, key `stuck.<node>`, whenever it has changed. */
export class StuckTeller {
  readonly #fleet: FleetRegistry;
  readonly #node: string;
  #last = "";

  constructor(fleet: FleetRegistry, node: string) {
    this.#fleet = fleet;
    this.#node = node;
  }

  async tell(reports: readonly StuckReport[]): Promise<void> {
    const text = JSON.stringify({ v: 1, node: this.#node, reports });
    if (text === this.#last) return;
    if (await this.#fleet.put(`stuck.${this.#node}`, new TextEncoder().encode(text))) this.#last = text;
  }
}
