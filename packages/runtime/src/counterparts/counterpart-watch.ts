import { toPlainFault } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import { toMessage, isMessage } from "../effect-envelopes.ts";
import type { FleetView } from "../fleet-view.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import type { StuckReport } from "../partition-set.ts";
import { CounterpartReader } from "./read-counterparts.ts";
import { judgeActor, type Finding, type Repair } from "./judge-actor.ts";

export interface CounterpartWatchOptions {
  readonly services: NodeServices;
  readonly view: FleetView;
  readonly owners: ReadonlyMap<string, PartitionOwner>;
}

interface Suspicion {
  readonly finding: Finding;
  /** Broker time of the first look that found it. */
  readonly sinceMs: number;
  readonly isConfirmed: boolean;
}

interface Suspect {
  readonly owner: PartitionOwner;
  /** Kind and subject → what is suspected. */
  readonly suspicions: ReadonlyMap<string, Suspicion>;
}

/** Actors under suspicion at a time; the others come when there is room. */
const MAX_SUSPECTS = 1000;
/** Rows that one node lists; what only waits for a message comes last. */
const MAX_ROWS = 100;

/** What is listed already with its own reason. */
const LISTED: ReadonlySet<string> = new Set(["parked", "quarantined", "unserved"]);

/**
 * Looks whether everything that waits on this node has a counterpart that will wake it (I9, F29).
 *
 * Owns: suspicions, whose turn it is. Does not own: the rules (`judgeActor`), the lookups (CounterpartReader).
 *   C1 what one look finds is suspected, and repaired where this node can; what the next look finds again is listed, until it is gone
 *   C2 a look reads about `counterpartReads` records, up to half of them for suspects; the next one goes on where it ended
 *   C3 only records of partitions that this node owns are judged
 */
export class CounterpartWatch {
  readonly #options: CounterpartWatchOptions;
  readonly #suspects = new Map<string, Suspect>();
  #round: AsyncGenerator<readonly [PartitionOwner, string], void> | undefined;

  constructor(options: CounterpartWatchOptions) {
    this.#options = options;
  }

  /** One look, at twice the rate of sweeps: what is found twice is listed within one. */
  async look(): Promise<void> {
    const { services, view } = this.#options;
    const reader = new CounterpartReader(services, view);
    const { counterpartReads: limit } = services.settings;
    const seen = new Set<string>();
    for (const [key, { owner }] of new Map(this.#suspects)) {
      if (reader.reads >= limit / 2) break;
      seen.add(key);
      await this.#look(reader, owner, key);
    }
    this.#round ??= this.#candidates();
    while (reader.reads < limit) {
      const next = await this.#round.next();
      if (next.done === true) {
        this.#round = undefined;
        return;
      }
      const [owner, key] = next.value;
      if (!seen.has(key)) await this.#look(reader, owner, key);
    }
  }

  /** What was found twice. */
  reports(): readonly StuckReport[] {
    const rows = [...this.#suspects].flatMap(([key, { owner, suspicions }]) =>
      this.#isOurs(owner) ? [...suspicions.values()].flatMap((suspicion) => rowOf(key, suspicion) ?? []) : [],
    );
    return rows.toSorted((a, b) => rank(a) - rank(b)).slice(0, MAX_ROWS);
  }

  /** Every actor of our partitions that waits for something (C3). Ends when each had its turn once. */
  async *#candidates(): AsyncGenerator<readonly [PartitionOwner, string], void> {
    for (const owner of this.#options.owners.values()) {
      if (!this.#isOurs(owner)) continue;
      if (!owner.resting.isComplete) await this.#learnResting(owner);
      for (const key of owner.work.keys()) yield [owner, key];
      for (const key of owner.resting.keys()) yield [owner, key];
    }
  }

  /** Headers only. A takeover that began at a checkpoint has not come by those who sleep. */
  async #learnResting(owner: PartitionOwner): Promise<void> {
    const { records, telemetry } = this.#options.services;
    const { partition, signal } = owner;
    try {
      await records.scan({
        parts: [{ partition, fromSeq: 0 }],
        visit: ({ key, seq, waits }) => owner.resting.seen(key, seq, waits === true),
        signal,
      });
      owner.resting.isComplete = true;
    } catch (error) {
      if (!signal.aborted)
        telemetry.warn("counterparts.unread", { partition, reason: toPlainFault(error, "HF-4001").message });
    }
  }

  async #look(reader: CounterpartReader, owner: PartitionOwner, key: string): Promise<void> {
    const known = this.#suspects.get(key);
    if (!this.#isOurs(owner) || this.#isListed(owner, key)) {
      this.#suspects.delete(key);
      return;
    }
    try {
      const findings = await this.#findings(reader, owner, key);
      if (findings.length === 0) this.#suspects.delete(key);
      else if (known !== undefined || this.#suspects.size < MAX_SUSPECTS) this.#suspect(owner, key, findings, known);
    } catch (error) {
      // Nobody answered, or the fleet is on the move: nothing is known, so nothing changes.
      const { code, message: reason } = toPlainFault(error, "HF-4001");
      if (!owner.signal.aborted) this.#options.services.telemetry.debug("counterparts.unread", { key, code, reason });
    }
  }

  async #findings(reader: CounterpartReader, owner: PartitionOwner, key: string): Promise<readonly Finding[]> {
    const actor = await reader.read(owner, key);
    if (actor === undefined) return [];
    const findings = judgeActor(actor, this.#options.services.time.nowMs());
    if (!findings.some(({ mayBeMail }) => mayBeMail) || !(await reader.hasMail(owner, key))) return findings;
    return findings.filter(({ mayBeMail }) => !mayBeMail);
  }

  /** C1. */
  #suspect(owner: PartitionOwner, key: string, findings: readonly Finding[], known: Suspect | undefined): void {
    const { telemetry, time } = this.#options.services;
    const suspicions = new Map<string, Suspicion>();
    for (const finding of findings) {
      const { kind, subject, why, repair } = finding;
      const name = `${kind} ${subject}`;
      const before = known?.owner === owner ? known.suspicions.get(name) : undefined;
      const sinceMs = before?.sinceMs ?? time.nowMs();
      suspicions.set(name, { finding, sinceMs, isConfirmed: before !== undefined });
      if (before === undefined && repair !== undefined) void this.#repair(owner, key, kind, repair);
      if (before?.isConfirmed === false) telemetry.error("counterpart.missing", { key, kind, reason: why });
    }
    this.#suspects.delete(key); // to the end: the others come before it is its turn again
    this.#suspects.set(key, { owner, suspicions });
  }

  /** By what exists already: sending again what was decided, never deciding (I3). Receivers dedupe. */
  async #repair(owner: PartitionOwner, key: string, kind: string, repair: Repair): Promise<void> {
    const { services } = this.#options;
    services.telemetry.info("counterpart.repaired", { key, kind, by: repair.kind });
    if (repair.kind === "load") owner.recheckLater(key);
    if (repair.kind === "arm") {
      const { timer, gen, dueAtMs } = repair;
      owner.timers.armAgain({ key, timer, gen, dueAtMs });
    }
    if (repair.kind !== "resettle" || !isMessage(repair.settled)) return;
    const { child, settled } = repair;
    const { lane, key: to, bytes, messageId, blobs } = toMessage(services.codec, child, settled);
    // Another id: the broker may still know the first one, and the parent took no note of that.
    const outcome = await services.log
      .publish(lane, to, bytes, `${messageId}:again`, blobs)
      .catch((error: unknown) => ({ kind: "unknown", reason: toPlainFault(error, "HF-4001").message }));
    if (outcome.kind !== "accepted") services.telemetry.warn("counterpart.not-repaired", { key, child: child.key });
  }

  #isOurs(owner: PartitionOwner): boolean {
    return owner.isCaughtUp && owner.mayStartEffects() && this.#options.owners.get(owner.partition) === owner;
  }

  #isListed(owner: PartitionOwner, key: string): boolean {
    const listed = owner.reports.get(key)?.kind;
    return (listed !== undefined && LISTED.has(listed)) || this.#options.services.quarantine.actor(key) !== undefined;
  }
}

function rowOf(key: string, { finding, sinceMs, isConfirmed }: Suspicion): StuckReport | undefined {
  const { kind, why, fix } = finding;
  return isConfirmed ? { key, kind, why, sinceMs, fix } : undefined;
}

/** Least urgent last. */
const rank = ({ kind }: StuckReport): number => (kind === "unwoken" ? 1 : 0);
