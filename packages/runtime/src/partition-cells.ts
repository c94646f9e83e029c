import { parseActorKey } from "@holdfast/protocol";
import { ActorCell } from "./actor-cell.ts";
import type { CellHost, NodeServices } from "./cell-host.ts";
import { CELL_BYTES } from "./memory-budget.ts";

/**
 * The actors of one partition that are in memory.
 *
 * Owns: the cells, and where the records of those stood that left. Does not own: what they do.
 */
export class PartitionCells {
  readonly byKey = new Map<string, ActorCell>();
  readonly #services: NodeServices;
  readonly #host: CellHost;
  /** Actors that gave their place in memory back, with the sequence of their record then. */
  readonly #leftAt = new Map<string, number>();

  constructor(services: NodeServices, host: CellHost) {
    this.#services = services;
    this.#host = host;
  }

  /** The cell of an actor, made when there is none. @returns undefined when this build does not serve its type */
  of(key: string): ActorCell | undefined {
    const existing = this.byKey.get(key);
    if (existing !== undefined) return existing;
    const served = this.#services.types.get(parseActorKey(key).type);
    if (served === undefined) return undefined;
    const cell = new ActorCell(key, this.#services, this.#host, served);
    this.byKey.set(key, cell);
    this.#services.flow.memory.hold("cells", CELL_BYTES);
    return cell;
  }

  /** An actor gives its place in memory back. @param seq  of its record then */
  leave(key: string, seq: number): void {
    this.byKey.get(key)?.stop();
    if (!this.byKey.delete(key)) return;
    this.#services.flow.memory.hold("cells", -CELL_BYTES);
    this.#leftAt.set(key, seq);
  }

  hasLeft(key: string): boolean {
    return this.#leftAt.has(key);
  }

  /** Whether everything a stored record asks for is taken care of here: its copy is in memory, or left it as it is stored. */
  isInHand(key: string, seq: number): boolean {
    return this.byKey.get(key)?.hasCopy === true || this.#leftAt.get(key) === seq;
  }

  /** What changes from now on is for the next sweep. */
  swept(): void {
    this.#leftAt.clear();
  }

  /** Drops cells that are at rest; their timers stay armed. */
  releaseIdle(): void {
    const now = this.#services.clock.monotonicMs();
    for (const [key, cell] of this.byKey) if (cell.canLeaveMemory(now)) this.leave(key, 0);
  }

  stop(): void {
    for (const cell of this.byKey.values()) cell.stop();
  }

  /** After `stop`. Resolves when every commit in flight has ended. */
  async settle(): Promise<void> {
    await Promise.all([...this.byKey.values()].map((cell) => cell.settle()));
  }

  clear(): void {
    this.#services.flow.memory.hold("cells", -CELL_BYTES * this.byKey.size);
    this.byKey.clear();
  }
}
