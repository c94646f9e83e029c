import { RuntimeFault, type Heartbeat } from "@holdfast/protocol";
import type { BrokerTime } from "./broker-time.ts";
import type { FleetView } from "./fleet-view.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { Clock, FleetRegistry, FleetValue } from "./ports/index.ts";

export interface MembershipOptions {
  readonly name: string;
  readonly incarnation: string;
  readonly fleet: FleetRegistry;
  readonly clock: Clock;
  readonly time: BrokerTime;
  readonly view: FleetView;
  readonly leases: LeaseKeeper;
  readonly ttlMs: number;
  readonly describe: () => Omit<Heartbeat, "v" | "name" | "incarnation" | "state">;
}

/**
 * This node's heartbeat.
 *
 * Owns: the key `node.<name>`. Does not own: what others conclude from it.
 *   H1 one write per interval, also the clock sample and the proof of freshness
 *   H2 a second live incarnation of a name refuses to start (F14)
 *   H3 it proves freshness only once it was seen in the watched bucket: what others wrote there before, a greater epoch too, was seen by then (F34)
 */
export class Membership {
  readonly #options: MembershipOptions;
  #stored: readonly { readonly seq: number; readonly sentMonotonicMs: number; readonly sentWallMs: number }[] = [];
  #seenSeq = 0;
  state: Heartbeat["state"] = "joining";

  constructor(options: MembershipOptions) {
    this.#options = options;
  }

  /**
   * Waits until nobody else lives under this name.
   * @throws RuntimeFault HF-3004 when another incarnation keeps its heartbeat moving
   */
  async claimName(signal: AbortSignal): Promise<void> {
    const { fleet, clock, name, ttlMs } = this.#options;
    const first = await fleet.get(`node.${name}`);
    if (first === undefined || first.bytes.length === 0 || stateOf(first.bytes) === "left") return;
    const startedAtMs = clock.monotonicMs();
    while (!signal.aborted && clock.monotonicMs() - startedAtMs < ttlMs) {
      await new Promise<void>((resolve) => clock.schedule(Math.max(20, Math.floor(ttlMs / 6)), resolve));
      const now = await fleet.get(`node.${name}`);
      if (now === undefined || stateOf(now.bytes) === "left") return;
      if (now.seq !== first.seq) {
        throw new RuntimeFault(
          "HF-3004",
          `Node ${name}: another process with this name is alive. Give this one its own HOLDFAST_NODE, or stop the other.`,
          {
            facts: { node: name },
          },
        );
      }
    }
  }

  /** H1. @returns false when the broker did not store it */
  async beat(): Promise<boolean> {
    const { fleet, clock, name, incarnation, view, time, describe } = this.#options;
    const sentMonotonicMs = clock.monotonicMs();
    const sentWallMs = clock.wallMs();
    const heartbeat: Heartbeat = { v: 1, name, incarnation, state: this.state, ...describe() };
    const stored = await fleet.put(`node.${name}`, new TextEncoder().encode(JSON.stringify(heartbeat)));
    if (stored === undefined) return false;
    time.sample(sentWallMs, stored.storedAtMs);
    view.ownBeatStored();
    this.#stored = [...this.#stored.slice(-15), { seq: stored.seq, sentMonotonicMs, sentWallMs }];
    this.#renew();
    return true;
  }

  /** Takes a value of the watched bucket. */
  seen({ key, seq }: FleetValue): void {
    if (key !== `node.${this.#options.name}`) return;
    this.#seenSeq = seq;
    this.#renew();
  }

  /** H3. */
  #renew(): void {
    const proven = this.#stored.findLast(({ seq }) => seq <= this.#seenSeq);
    if (proven === undefined) return;
    this.#stored = this.#stored.filter(({ seq }) => seq > this.#seenSeq);
    if (this.state !== "left") this.#options.leases.renewed(proven.sentMonotonicMs, proven.sentWallMs);
  }
}

function stateOf(bytes: Uint8Array): unknown {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof value === "object" && value !== null && "state" in value ? value.state : undefined;
  } catch {
    return undefined;
  }
}
