import { ActorKey, isTerminal, toPlainFault, type ActorRecord } from "@holdfast/protocol";
import { blobsOfRecord } from "../blobs/named-blobs.ts";
import type { NodeServices } from "../cell-host.ts";
import { inheritedSequence, type StreamIdentity } from "../inherited-sequence.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import type { EndedRecord, ErasureOrder, ErasureOrders, RetentionStore } from "../ports/index.ts";
import { descendantsOf } from "./descendants.ts";
import { erasedTombstoneOf, tombstoneHeader, tombstoneOf } from "./tombstone.ts";
import { awaits, loadRecord } from "./wanted-start.ts";

export interface RetentionCounts {
  /** Records that became tombstones. */
  shrunk: number;
  /** Tombstones that went. */
  removed: number;
  /** Journals that went after their tombstones. */
  journals: number;
  /** Actors that went with what started them. */
  erased: number;
  /** Due, but somebody may still need them. */
  kept: number;
}

export interface RetentionRoundOptions {
  readonly services: NodeServices;
  readonly store: RetentionStore;
  readonly erasures: ErasureOrders | undefined;
  readonly owner: PartitionOwner;
  /** Where the last look ended: who must stay for long must not keep the others from their turn. */
  readonly fromSeq: number;
  /** Cursor of the partition as the lease stores it: what a successor would begin with. */
  readonly storedCursor: number;
}

/**
 * One look of a partition's owner for what may go.
 *
 * Owns: the rules. Does not own: when to look, the cells.
 *   G1 a record shrinks only when it has ended, its outbox is empty and it is not in memory; by compare-and-set like every other write
 *   G2 a tombstone goes only when its parent has settled it, no message for it waits, the stored cursor is past its start, and its time is over
 *   G3 a journal goes only when its last entry says that the actor has ended, and neither record nor tombstone is there any more
 *   G4 every step may be the last one of this process: the next look finds what is left by what is stored
 *   G5 what was deleted goes soon, its journal with its content; what others read of it stays as long as one of them lives
 *   G6 what was deleted takes with it what it ever started: that is ordered before its own journal goes, which alone knows it
 */
export class RetentionRound {
  readonly counts: RetentionCounts = { shrunk: 0, removed: 0, journals: 0, erased: 0, kept: 0 };
  readonly #options: RetentionRoundOptions;
  #left: number;

  constructor(options: RetentionRoundOptions) {
    this.#options = options;
    this.#left = options.services.settings.retentionBatch;
  }

  /** @returns where the next look begins */
  async run(): Promise<number> {
    const { owner, store, services, fromSeq } = this.#options;
    const { keepEndedMs, eraseAfterMs, keepTombstoneMs, retentionBatch: limit } = services.settings;
    const nowMs = services.time.nowMs();
    const journaled = await store.journaled(owner.partition, owner.signal); // before the records: an actor has a record first
    const keepMs = ({ isTombstone, isToErase }: EndedRecord): number =>
      isTombstone ? keepTombstoneMs : isToErase ? eraseAfterMs : keepEndedMs;
    const isDue = (ended: EndedRecord): boolean => nowMs - ended.storedAtMs >= keepMs(ended);
    const survey = await store.survey(owner.partition, { isDue, fromSeq, limit }, owner.signal);
    for (const ended of survey.ended) await this.#deal(ended, nowMs);
    for (const order of survey.orders) await this.#dealWithOrder(order, nowMs);
    for (const key of journaled) if (!survey.keys.has(key)) await this.#dealWithJournal(key, nowMs);
    return survey.ended.length < limit ? 1 : (survey.ended.at(-1)?.seq ?? 0) + 1;
  }

  get #mayGoOn(): boolean {
    return this.#left > 0 && this.#options.owner.mayStartEffects();
  }

  async #deal(ended: EndedRecord, nowMs: number): Promise<void> {
    if (!this.#options.owner.mayStartEffects()) return;
    try {
      if (ended.isTombstone) await this.#remove(ended);
      else await this.#shrink(ended, nowMs);
    } catch (error) {
      this.#failed(ended.key, error); // this one stays for the next look, the others go on
    }
  }

  /** G1. */
  async #shrink({ key, seq, storedAtMs, isToErase }: EndedRecord, nowMs: number): Promise<void> {
    const { services, owner } = this.#options;
    const { records, codec, payloads, random } = services;
    const stored = owner.cells.get(key)?.hasCopy === true ? undefined : await records.load(key);
    if (stored?.seq !== seq) return;
    const { header, record } = codec.decodeRecord(stored.bytes);
    if (header.epoch > owner.epoch) return owner.fenced(header.epoch);
    if (!isTerminal(record.status) || record.outbox.length > 0 || record.tombstone !== undefined) return this.#keep();
    if (await this.#isShared(record)) return this.#keep(); // G5
    if (isToErase) await this.#orderErasure(key, [key]); // G4: also for itself
    const chosen = payloads.choose();
    const tombstone = tombstoneOf(record, storedAtMs, nowMs, chosen.outside);
    const token = random.hex(8);
    const bytes = codec.encodeRecord(tombstone, tombstoneHeader(header, token, owner.epoch, services.incarnation));
    await payloads.store(chosen);
    await services.crashPoints.reach("before-tombstone", key);
    const blobs = blobsOfRecord(tombstone);
    const outcome = await records.commit({
      key,
      bytes,
      expectedSeq: seq,
      token,
      needsWork: false,
      blobs,
      ended: "tombstone",
    });
    if (outcome.kind !== "committed") return;
    this.counts.shrunk += 1;
    await services.crashPoints.reach("after-tombstone", key);
    if (isToErase) await this.#removeJournal(key); // G5
  }

  async #dealWithOrder(order: ErasureOrder, nowMs: number): Promise<void> {
    const { owner, erasures } = this.#options;
    if (!this.#mayGoOn || erasures === undefined) return;
    this.#left -= 1;
    try {
      if (!(await this.#erase(order, nowMs))) return this.#keep();
      await erasures.withdraw(order.key, order.seq);
      this.counts.erased += 1;
    } catch (error) {
      if (!owner.signal.aborted) this.#failed(order.key, error);
    }
  }

  /** G6. @returns whether there is nothing left of it to be erased, now or later */
  async #erase({ key, storedAtMs: orderedAtMs }: ErasureOrder, nowMs: number): Promise<boolean> {
    const { services, owner } = this.#options;
    const { records, codec, random } = services;
    if (owner.cells.get(key)?.hasCopy === true || owner.hasParked(key)) return false;
    const stored = await records.load(key);
    // Its start may still be on its way, when it is not long ago.
    if (stored === undefined) return nowMs - orderedAtMs >= services.settings.keepTombstoneMs;
    const { header, record } = codec.decodeRecord(stored.bytes);
    if (header.epoch > owner.epoch) {
      owner.fenced(header.epoch);
      return false;
    }
    if (!isTerminal(record.status) || record.outbox.length > 0) return false;
    if ((await this.#isAwaited(record)) || (await this.#isShared(record))) return false;
    await this.#orderErasure(key, []);
    const tombstone = erasedTombstoneOf(record, record.tombstone?.endedAtMs ?? orderedAtMs, nowMs);
    const token = random.hex(8);
    const list = services.types.get(record.type)?.definition.erasedFields?.(header.list) ?? {};
    const left = tombstoneHeader({ ...header, list }, token, owner.epoch, services.incarnation);
    const bytes = codec.encodeRecord(tombstone, left);
    const base = { key, bytes, expectedSeq: stored.seq, token, needsWork: false } as const;
    const outcome = await records.commit({ ...base, blobs: blobsOfRecord(tombstone), ended: "tombstone" });
    return outcome.kind === "committed" && (await this.#removeJournal(key));
  }

  /** G6. */
  async #orderErasure(key: ActorKey, own: readonly ActorKey[]): Promise<void> {
    const { services, erasures, owner } = this.#options;
    if (erasures === undefined) return;
    const descendants = await descendantsOf(services, key, owner.signal);
    for (const ordered of [...own, ...descendants]) await erasures.give(ordered);
  }

  /** Whether an actor that reads this one's journal has not become a tombstone yet. One that cannot be read here counts as such. */
  async #isShared({ type, snapshot }: ActorRecord): Promise<boolean> {
    const { services } = this.#options;
    const readers = services.types.get(type)?.definition.retention?.(snapshot.context).sharedWith ?? [];
    for (const key of readers) {
      const reader = await loadRecord(services, ActorKey.parse(key));
      if (reader !== undefined && reader.tombstone === undefined) return true;
    }
    return false;
  }

  async #isAwaited({ key, parent }: ActorRecord): Promise<boolean> {
    const record = parent && (await loadRecord(this.#options.services, parent.key));
    return record !== undefined && record.genesis === parent?.genesis && awaits(record, key, parent.childId);
  }

  /** G2. */
  async #remove({ key, seq }: EndedRecord): Promise<void> {
    const { services, owner, store, storedCursor } = this.#options;
    if (owner.cells.get(key)?.hasCopy === true || owner.hasParked(key)) return this.#keep();
    const stored = await services.records.load(key);
    if (stored?.seq !== seq) return;
    const { record } = services.codec.decodeRecord(stored.bytes);
    if (record.tombstone === undefined || !isPast(record.genesis, owner, storedCursor)) return this.#keep();
    if (await this.#isAwaited(record)) return this.#keep();
    if (!owner.mayStartEffects()) return;
    await store.removeRecord(key, seq);
    this.counts.removed += 1;
    await services.crashPoints.reach("record-removed", key);
    await this.#removeJournal(key);
  }

  /** G3, for what a former look left behind, and for entries that came late. */
  async #dealWithJournal(key: ActorKey, nowMs: number): Promise<void> {
    if (!this.#mayGoOn || this.#options.owner.cells.has(key)) return;
    try {
      if ((await this.#options.services.records.load(key)) !== undefined) return;
      this.#left -= 1;
      await this.#removeJournal(key, nowMs);
    } catch (error) {
      this.#failed(key, error);
    }
  }

  /** @returns whether there is none any more */
  async #removeJournal(key: ActorKey, nowMs?: number): Promise<boolean> {
    const { services, store, owner } = this.#options;
    const end = await store.journalEnd(key);
    if (end === undefined || !owner.mayStartEffects()) return end === undefined;
    const last = services.codec.decodeJournalBatch(end.bytes).at(-1);
    const isYoung = nowMs !== undefined && nowMs - end.storedAtMs < services.settings.keepTombstoneMs;
    if (last === undefined || !isTerminal(last.status) || isYoung) {
      this.#keep();
      return false;
    }
    await store.removeJournal(key, end.seq);
    this.counts.journals += 1;
    await services.crashPoints.reach("journal-removed", key);
    return true;
  }

  #keep(): void {
    this.counts.kept += 1;
  }

  #failed(key: ActorKey, error: unknown): void {
    const { code, message: reason } = toPlainFault(error, "HF-4001");
    this.#options.services.telemetry.warn("retention.failed", { key, code, reason });
  }
}

/** Whether the start that a genesis names will not be read again. One of a generation that means nothing is in no stream any more. */
function isPast(genesis: string, stream: StreamIdentity, storedCursor: number): boolean {
  const [generation = "", seq] = genesis.split(":");
  return inheritedSequence(stream, generation, Number(seq)) < storedCursor;
}
