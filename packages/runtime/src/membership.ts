import { Heartbeat, RuntimeFault } from "@holdfast/protocol";
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
  readonly heartbeatMs: number;
  /** Called once when another incarnation lives under this name. */
  readonly replaced: () => void;
  readonly describe: () => Omit<Heartbeat, "v" | "name" | "incarnation" | "state">;
}

const NO_ANSWER = Symbol("no answer");

/**
 * This node's heartbeat.
 *
 * Owns: the key `node.<name>`. Does not own: what others conclude from it.
 *   H1 one write per interval, also the clock sample and the proof of freshness
 *   H2 a second live incarnation of a name refuses to start; one that was silent for a TTL looks whether it was replaced before it writes (F14)
 *   H4 no answer is waited for longer than until the next heartbeat is due: others would count theirs meanwhile and take us for dead (F18)
 *   H3 it proves freshness only once it was seen in the watched bucket: what others wrote there before, a greater epoch too, was seen by then (F34)
 */
export class Membership {
  readonly #options: MembershipOptions;
  #stored: readonly { readonly seq: number; readonly sentMonotonicMs: number; readonly sentWallMs: number }[] = [];
  #seenSeq = 0;
  #storedAtMs: number | undefined;
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
    if (first === undefined || isFree(first.bytes)) return;
    const startedAtMs = clock.monotonicMs();
    while (!signal.aborted && clock.monotonicMs() - startedAtMs < ttlMs) {
      await new Promise<void>((resolve) => clock.schedule(Math.max(20, Math.floor(ttlMs / 6)), resolve));
      const now = await fleet.get(`node.${name}`);
      if (now === undefined || isFree(now.bytes)) return;
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
    const { fleet, clock, name, incarnation, time, describe } = this.#options;
    if (!(await this.#mayWrite())) return false;
    const sentMonotonicMs = clock.monotonicMs();
    const sentWallMs = clock.wallMs();
    const heartbeat: Heartbeat = { v: 1, name, incarnation, state: this.state, ...describe() };
    const stored = await this.#inTime(fleet.put(`node.${name}`, new TextEncoder().encode(JSON.stringify(heartbeat))));
    if (stored === undefined || stored === NO_ANSWER) return false;
    time.sample(sentMonotonicMs, stored.storedAtMs);
    this.#storedAtMs = sentMonotonicMs;
    this.#stored = [...this.#stored.slice(-15), { seq: stored.seq, sentMonotonicMs, sentWallMs }];
    this.#renew();
    return true;
  }

  /** Takes a value of the watched bucket. @returns whether it was a heartbeat under our name */
  seen({ key, seq }: FleetValue): boolean {
    if (key !== `node.${this.#options.name}`) return false;
    this.#seenSeq = seq;
    if (this.#storedAtMs !== undefined) this.#options.view.ownBeatSeen();
    this.#renew();
    return true;
  }

  /** H2. An overwritten heartbeat would make the other one look dead. */
  async #mayWrite(): Promise<boolean> {
    const { fleet, clock, name, incarnation, ttlMs, replaced } = this.#options;
    if (this.#storedAtMs === undefined || clock.monotonicMs() - this.#storedAtMs < ttlMs) return true;
    const current = await this.#inTime(fleet.get(`node.${name}`).catch((): typeof NO_ANSWER => NO_ANSWER));
    if (current === NO_ANSWER) return false;
    const holder = current === undefined ? undefined : readHeartbeat(current.bytes);
    if (holder === undefined || holder.incarnation === incarnation || holder.state === "left") return true;
    this.state = "left";
    replaced();
    return false;
  }

  /** H4. */
  #inTime<T>(answer: Promise<T>): Promise<T | typeof NO_ANSWER> {
    const { clock, heartbeatMs } = this.#options;
    return new Promise((resolve, reject) => {
      // One more turn: in a process that was held up the timer comes before the answer that lies in the socket.
      let cancel = clock.schedule(heartbeatMs, () => (cancel = clock.schedule(0, () => resolve(NO_ANSWER))));
      answer.then(resolve, reject).finally(() => cancel());
    });
  }

  /** H3. */
  #renew(): void {
    const proven = this.#stored.findLast(({ seq }) => seq <= this.#seenSeq);
    if (proven === undefined) return;
    this.#stored = this.#stored.filter(({ seq }) => seq > this.#seenSeq);
    if (this.state !== "left") this.#options.leases.renewed(proven.sentMonotonicMs, proven.sentWallMs);
  }
}

/** Nobody's, or of somebody who said goodbye. */
const isFree = (bytes: Uint8Array): boolean => bytes.length === 0 || readHeartbeat(bytes)?.state === "left";

function readHeartbeat(bytes: Uint8Array): Heartbeat | undefined {
  try {
    return Heartbeat.safeParse(JSON.parse(new TextDecoder().decode(bytes))).data;
  } catch {
    return undefined; // unreadable: nobody lives there
  }
}
