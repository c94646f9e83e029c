import { Lease, type PartitionNeeds, type RestartNote } from "@holdfast/protocol";
import type { SeenLease } from "./fleet-view.ts";
import { inheritedSequence, type StreamIdentity } from "./inherited-sequence.ts";
import { coversNeeds, joinNeeds } from "./partition-needs.ts";
import type { Clock, FleetRegistry, Random } from "./ports/index.ts";
import type { BrokerTime } from "./broker-time.ts";

export interface HeldLease {
  readonly lease: Lease;
  readonly seq: number;
}

/** What a claim takes note of. */
export interface ClaimNotes {
  /** Newest stop flag that this node knows of; 0 for none. */
  readonly stopRevision?: number;
  /** Whether it serves actors that are held after a crash. */
  readonly notesCrashes?: boolean;
}

export interface LeaseKeeperOptions {
  readonly incarnation: string;
  readonly fleet: FleetRegistry;
  readonly clock: Clock;
  readonly random: Random;
  readonly time: BrokerTime;
  readonly ttlMs: number;
}

/** How far the owner of a partition has come: in its inbox, and in the bucket of its records. */
export type Progress = Pick<Lease, "cursor" | "highest" | "late" | "records">;

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/**
 * Writes of leases, and whether this node may act on them.
 *
 * Owns: the leases this incarnation holds, the freshness of its own heartbeat. Does not own: which partitions to hold (`planPlacement`).
 *   L1 a lease is written only to claim, release or advance the cursor; liveness is the holder's heartbeat (F56)
 *   L2 every claim has a greater epoch than any before it
 *   L3 effects start only while a heartbeat of ours was sent less than a TTL ago; freshness counts from the sending (F42), and a jump of the
 *      wall clock against the monotonic one beyond the TTL counts as expiry (F36)
 *   L4 writes of one lease never overlap, and a conflict is a question here too (F42)
 */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;
  readonly #held = new Map<string, HeldLease>();
  readonly #turns = new Map<string, Promise<boolean>>();
  #freshFromMonotonicMs: number | undefined;
  #freshFromWallMs = 0;

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
  }

  get held(): ReadonlyMap<string, HeldLease> {
    return this.#held;
  }

  /** A heartbeat that was sent at these times has been stored. */
  renewed(sentMonotonicMs: number, sentWallMs: number): void {
    this.#freshFromMonotonicMs = sentMonotonicMs;
    this.#freshFromWallMs = sentWallMs;
  }

  /** L3. */
  get isFresh(): boolean {
    const { clock, ttlMs } = this.#options;
    if (this.#freshFromMonotonicMs === undefined) return false;
    const elapsedMs = clock.monotonicMs() - this.#freshFromMonotonicMs;
    const wallElapsedMs = clock.wallMs() - this.#freshFromWallMs;
    return elapsedMs < ttlMs && Math.abs(wallElapsedMs - elapsedMs) < ttlMs;
  }

  /**
   * @returns the claimed lease, or undefined when another node was faster or nobody knows
   */
  async claim(
    partition: string,
    seen: SeenLease | undefined,
    position: StreamIdentity,
    { stopRevision = 0, notesCrashes = false }: ClaimNotes = {},
  ): Promise<HeldLease | undefined> {
    const former = seen?.lease;
    const hasDied = former?.state === "held" && former.holder !== this.#options.incarnation;
    const crashes = (former?.crashes ?? 0) + (hasDied ? 1 : 0);
    const inherited = (seq: number): number =>
      former === undefined ? 0 : inheritedSequence(position, former.generation, seq);
    const crash = former?.crash ?? (notesCrashes && hasDied ? { holder: former.holder } : undefined);
    return this.#write(partition, seen?.seq ?? 0, {
      v: 1,
      partition,
      epoch: (former?.epoch ?? 0) + 1, // L2
      state: "held",
      holder: this.#options.incarnation,
      generation: position.generation,
      cursor: Math.max(1, inherited((former?.cursor ?? 1) - 1) + 1),
      highest: inherited(former?.highest ?? 0),
      floorMs: Math.max(former?.floorMs ?? 0, this.#options.time.nowMs()),
      ...(former?.needs !== undefined && { needs: former.needs }),
      ...(former?.records !== undefined && { records: former.records }),
      ...(former?.late !== undefined && { late: former.late }),
      ...(crashes > 0 && { crashes }),
      ...(crash !== undefined && { crash }),
      ...(former?.restart !== undefined && { restart: former.restart }),
      ...(stopRevision > 0 && { stop: stopOf(former, stopRevision) }),
      token: this.#options.random.hex(8),
    });
  }

  /** Lists what is about to be written. @returns undefined when it is listed, false when the lease is no longer ours */
  listNeeds(partition: string, needs: PartitionNeeds): Promise<boolean> | undefined {
    if (coversNeeds(this.#held.get(partition)?.lease.needs, needs)) return undefined;
    return this.#inTurn(partition, async (held) => {
      if (coversNeeds(held.lease.needs, needs)) return true;
      const lease = { ...held.lease, needs: joinNeeds(held.lease.needs, needs) };
      return (await this.#rewrite(partition, held, lease)) !== undefined;
    });
  }

  /**
   * @param isHarmless  the partition has taken nobody down for a while
   * @returns false when the lease is no longer ours
   */
  advance(partition: string, progress: Progress, isHarmless = false): Promise<boolean> {
    return this.#inTurn(partition, async (held) => {
      const { lease } = held;
      const crashes = isHarmless ? 0 : (lease.crashes ?? 0);
      const next = { ...withProgress(lease, progress), ...(lease.crashes !== undefined && { crashes }) };
      const isSame =
        lease.cursor === next.cursor &&
        lease.highest === next.highest &&
        (lease.late ?? 0) === (next.late ?? 0) &&
        lease.records?.highest === next.records?.highest &&
        crashes === (lease.crashes ?? 0);
      if (isSame) return true;
      return (await this.#rewrite(partition, held, next)) !== undefined;
    });
  }

  /** Who is to be held after the end of the former owner is set aside. @returns false when the lease is no longer ours */
  settleEnd(partition: string): Promise<boolean> {
    return this.#inTurn(partition, async (held) => {
      const { crash, restart, ...lease } = held.lease;
      if (crash === undefined && restart === undefined) return true;
      return (await this.#rewrite(partition, held, lease)) !== undefined;
    });
  }

  /** What the stop flag of the claim had cut off is set aside. @returns false when the lease is no longer ours */
  settleStop(partition: string): Promise<boolean> {
    return this.#inTurn(partition, async (held) => {
      const { stop } = held.lease;
      if (stop === undefined || stop.isSettled) return true;
      const lease = { ...held.lease, stop: { ...stop, isSettled: true } };
      return (await this.#rewrite(partition, held, lease)) !== undefined;
    });
  }

  /** @param restart  the planned restart for which it is released */
  release(partition: string, progress: Progress, restart?: RestartNote): Promise<boolean> {
    return this.#inTurn(partition, async (held) => {
      const noted = restart === undefined ? held.lease : { ...held.lease, restart };
      const next = { ...withProgress(noted, progress), state: "released" } as const;
      const released = await this.#rewrite(partition, held, next);
      this.#held.delete(partition);
      return released !== undefined;
    });
  }

  forget(partition: string): void {
    this.#held.delete(partition);
  }

  /** L4: writes of one lease follow one another; two at once would refuse each other. */
  async #inTurn(partition: string, work: (held: HeldLease) => Promise<boolean>): Promise<boolean> {
    const turn = (this.#turns.get(partition) ?? Promise.resolve(true)).then(() => {
      const held = this.#held.get(partition);
      return held === undefined ? false : work(held);
    });
    this.#turns.set(
      partition,
      turn.catch(() => false),
    );
    return turn;
  }

  /** F42: a conflict with our own earlier write is no loss; its sequence is adopted, and the write made again. */
  async #rewrite(partition: string, held: HeldLease, lease: Lease): Promise<HeldLease | undefined> {
    const { fleet, incarnation, random, time } = this.#options;
    const next = { ...lease, token: random.hex(8), floorMs: Math.max(lease.floorMs, time.nowMs()) };
    const written = await this.#write(partition, held.seq, next);
    if (written !== undefined) return written;
    const current = await fleet.get(`lease.${partition}`);
    const found = current === undefined ? undefined : tryLease(current.bytes);
    if (current === undefined || found?.holder !== incarnation || found.epoch !== held.lease.epoch) return undefined;
    return this.#write(partition, current.seq, { ...next, token: random.hex(8) });
  }

  async #write(partition: string, expectedSeq: number, lease: Lease): Promise<HeldLease | undefined> {
    const outcome = await this.#options.fleet.compareAndSet(
      `lease.${partition}`,
      encode(lease),
      expectedSeq,
      lease.token,
    );
    if (outcome.kind !== "committed") return undefined;
    const held = { lease, seq: outcome.seq };
    this.#held.set(partition, held);
    return held;
  }
}

/** A partition that nobody had owned before had nothing to be cut off. */
function stopOf(former: Lease | undefined, revision: number): NonNullable<Lease["stop"]> {
  if (former?.stop !== undefined && former.stop.revision >= revision) return former.stop;
  return { revision, isSettled: former === undefined };
}

/** Records of another generation say nothing; an owner that has stored none knows no better than the one before. */
function withProgress(before: Lease, { cursor, highest, late = 0, records }: Progress): Lease {
  const lease = { ...before, cursor, highest, ...(late > 0 && { late }) };
  if (records === undefined || records.highest === 0) return lease;
  const known = before.records?.generation === records.generation ? before.records.highest : 0;
  return { ...lease, records: { ...records, highest: Math.max(known, records.highest) } };
}

function tryLease(bytes: Uint8Array): Lease | undefined {
  try {
    return Lease.safeParse(JSON.parse(new TextDecoder().decode(bytes))).data;
  } catch {
    return undefined; // unreadable is not ours
  }
}
