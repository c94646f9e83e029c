// RunnerJournal — the envelopes of one conversation, on disk before anybody sees them.
// Owns: places, the file, who reads.  Does not own: connections, the engine.
//   J1 disk-before-send   readers are given an envelope only after it is fsynced; there is no other way to one
//   J2 one-count          places are given in the order of the calls, without holes, on from what the file has
//   J3 epoch-moves        every opening writes a greater epoch before anything else
//   J4 bounded            the file never exceeds `maxBytes`; a full journal says so instead of taking memory
//   J5 one-gap            what a reader has not been given yet is not removed while it reads, so it meets one gap at most, at the beginning
//   J6 receipts-may-lag   receipts are written with the next entry: a lost one only makes the host store the same thing again

import { RunnerFault } from "../runner-fault.ts";
import { EMPTY_BASE, type ReplayGap, type RetainedWindow } from "../state/retained-window.ts";
import { EnvelopeSeq, RunnerEpoch, type ReplayCursor } from "../wire/coordinates.ts";
import { isDurable, placeEnvelope, type EnvelopeDraft, type RunnerEnvelope } from "../wire/envelope.ts";
import type { Speaker } from "../wire/opening.ts";
import { assertDraft } from "./assert-draft.ts";
import { readEntries, readEntry, writeEntry } from "./entry-frame.ts";
import { JournalFile } from "./journal-file.ts";
import { JOURNAL_FORMAT, type JournalEntry } from "./journal-entry.ts";
import { baseEntry, layOut, placeOf, recoverJournal, type BatchPlace, type JournalState } from "./recover-journal.ts";

export interface RunnerJournalOptions {
  readonly folder: string;
  /** Largest file, bytes. While it is compacted there are two. */
  readonly maxBytes?: number;
  /** Retained envelopes above which a checkpoint removes any. */
  readonly threshold?: number;
  /** 16 characters of a-z and 0-9, random: names a journal that is created. */
  readonly drawToken: () => string;
}

export const DEFAULT_JOURNAL_BYTES = 64 * 1024 * 1024;
const TURN_ENDS: ReadonlySet<EnvelopeDraft["op"]> = new Set(["result", "turnInterrupted", "error"] as const);

/**
 * `full`: nothing was taken. `waitsFor` says what would make room: receipts and a covered result that are still to come, or nothing but the end
 * of the turn, since inside a turn nothing is removed. What ends a turn and durable events have an eighth of the file to themselves.
 */
export type AppendOutcome =
  | { readonly kind: "appended"; readonly envelopes: readonly RunnerEnvelope[] }
  | { readonly kind: "full"; readonly waitsFor: "receipts" | "result" };

export interface JournalReader {
  /** Called at most once, before any envelope. */
  gap(gap: ReplayGap): Promise<void> | void;
  /** Called in order; the next one waits for it. */
  envelope(envelope: RunnerEnvelope): Promise<void> | void;
}

interface Pending {
  readonly drafts: readonly EnvelopeDraft[];
  readonly resolve: (outcome: AppendOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/** See the invariants at the top of the file. */
export class RunnerJournal {
  readonly journal: string;
  readonly epoch: RunnerEpoch;
  readonly #file: JournalFile;
  readonly #window: RetainedWindow;
  readonly #maxBytes: number;
  readonly #threshold: number | undefined;
  #conversation: string | undefined;
  #speaker: Speaker | undefined;
  #batches: BatchPlace[];
  #pending: Pending[] = [];
  #receipts: number[] = [];
  #queue: Promise<unknown> = Promise.resolve();
  /** Last place each reader was given (J5). */
  readonly #readers = new Set<{ seq: number }>();
  readonly #wakes = new Set<() => void>();

  private constructor(file: JournalFile, state: JournalState, epoch: RunnerEpoch, options: RunnerJournalOptions) {
    this.journal = state.journal;
    this.epoch = epoch;
    this.#file = file;
    this.#window = state.window;
    this.#conversation = state.conversation;
    this.#speaker = state.speaker;
    this.#batches = [...state.batches];
    this.#maxBytes = options.maxBytes ?? DEFAULT_JOURNAL_BYTES;
    this.#threshold = options.threshold;
  }

  /**
   * Opens the journal of a folder, or begins one. A torn end is cut; the epoch moves (J3).
   *
   * @throws RunnerFault HF-2002, HF-2003 when the file cannot be read; HF-9004 when it cannot be written
   */
  static async open(options: RunnerJournalOptions): Promise<RunnerJournal> {
    const { file, bytes } = await JournalFile.open(options.folder, () => writeEntry(firstEntry(options.drawToken())));
    try {
      const { entries, soundBytes } = readEntries(bytes);
      const state = recoverJournal(entries);
      if (soundBytes < bytes.length) await file.truncate(soundBytes);
      const epoch = RunnerEpoch.parse(state.epoch + 1);
      await file.append(writeEntry({ kind: "opened", epoch }));
      return new RunnerJournal(file, state, epoch, options);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get lastSeq(): number {
    return this.#window.lastSeq;
  }

  /** `undefined` when nothing is retained. */
  get firstRetainedSeq(): number | undefined {
    return this.#window.firstRetainedSeq;
  }

  /** The conversation this journal belongs to, once its slot was activated. */
  get conversation(): string | undefined {
    return this.#conversation;
  }

  /** The last host that attached, to this runner or to one before it. */
  get speaker(): Speaker | undefined {
    return this.#speaker;
  }

  /** Durable envelopes the host has not confirmed, oldest first. */
  get unreceipted(): readonly number[] {
    return this.#window.unreceipted;
  }

  /** Bytes of the file. */
  get bytes(): number {
    return this.#file.size;
  }

  /** Binds the journal to a conversation, on disk. @throws RunnerFault HF-9001 when it is bound */
  bind(conversation: string): Promise<void> {
    return this.#run(async () => {
      if (this.#conversation !== undefined)
        throw new RunnerFault(
          "HF-9001",
          "Runner: its journal belongs to a conversation already, and to no other ever after. Prepare a seat with an empty folder.",
        );
      await this.#file.append(writeEntry({ kind: "bound", conversation }));
      this.#conversation = conversation;
    });
  }

  /** Notes who is attached, on disk. */
  noteSpeaker(speaker: Speaker): Promise<void> {
    return this.#run(async () => {
      await this.#file.append(writeEntry({ kind: "attached", speaker }));
      this.#speaker = speaker;
    });
  }

  /**
   * Gives envelopes their places and writes them (J1, J2, J4). Calls that come while a write runs share the next one.
   *
   * @throws RunnerFault HF-1001 when a draft does not fit its schema or is larger than MAX_ENVELOPE_BYTES; HF-9001 without a conversation;
   *   HF-9004 when they may not be on disk: nothing was sent then
   */
  append(...drafts: readonly EnvelopeDraft[]): Promise<AppendOutcome> {
    for (const draft of drafts) assertDraft(draft);
    return new Promise((resolve, reject) => {
      this.#pending.push({ drafts, resolve, reject });
      if (this.#pending.length === 1) void this.#run(() => this.#writePending());
    });
  }

  /**
   * The host has stored the durable envelope at `seq` (J6).
   *
   * @throws RunnerFault HF-9002 when no durable envelope can have had that place
   */
  receipt(seq: number): "receipted" | "duplicate" {
    const outcome = this.#window.receipt(seq);
    if (outcome === "receipted") this.#receipts.push(seq);
    return outcome;
  }

  /** What the transcript's store has confirmed. @throws RunnerFault HF-9002 when it confirmed more before */
  confirmStore(storeSeq: number): void {
    this.#window.confirmStore(storeSeq);
  }

  /**
   * Removes what a result covers, when it is worth while: above the threshold, or when the file is more than half full.
   *
   * @param storeFlushed  whether the transcript's store has everything up to the result, the result included
   * @returns envelopes removed
   * @throws RunnerFault HF-9002 when `resultSeq` is not the latest result
   */
  checkpoint(resultSeq: number, options: { readonly storeFlushed: boolean }): Promise<number> {
    return this.#run(async () => {
      const pressed = this.#file.size > this.#maxBytes / 2;
      const threshold = pressed ? 0 : this.#threshold;
      const planned = this.#window.planCut(resultSeq, {
        ...options,
        ...(threshold === undefined ? {} : { threshold }),
      });
      if (planned === undefined) return 0;
      const cut = Math.min(planned, ...[...this.#readers].map((reader) => reader.seq + 1)); // J5
      if (cut <= (this.firstRetainedSeq ?? cut)) return 0;
      return this.#rewriteFrom(cut);
    });
  }

  /** @throws RunnerFault HF-9002 when the cursor is ahead of the journal */
  assertCursor(cursor: ReplayCursor): void {
    this.#window.gapAfter(this.#placeOf(cursor));
  }

  /**
   * Gives a reader everything after its cursor and then whatever comes, until `signal` ends it or the reader throws. A cursor of another journal
   * begins at the first envelope.
   *
   * @throws RunnerFault HF-9002 when the cursor is ahead of the journal; whatever the reader throws
   */
  async follow(cursor: ReplayCursor, reader: JournalReader, signal: AbortSignal): Promise<void> {
    const at = { seq: this.#placeOf(cursor) };
    const gap = this.#window.gapAfter(at.seq);
    if (gap !== undefined) at.seq = gap.firstRetainedSeq - 1;
    this.#readers.add(at);
    try {
      if (gap !== undefined) await reader.gap(gap);
      while (!signal.aborted) {
        if (at.seq >= this.lastSeq) await this.#grown(signal);
        else await this.#giveBatch(at, reader, signal);
      }
    } finally {
      this.#readers.delete(at);
    }
  }

  /** Writes what is pending, then closes the file. */
  async close(): Promise<void> {
    await this.#run(async () => {
      if (this.#receipts.length > 0) await this.#appendBatch([]);
      await this.#file.close();
    });
  }

  #placeOf(cursor: ReplayCursor): number {
    return cursor.journal === this.journal ? cursor.seq : 0;
  }

  async #giveBatch(at: { seq: number }, reader: JournalReader, signal: AbortSignal): Promise<void> {
    const place = this.#batches.findLast(({ firstSeq }) => firstSeq <= at.seq + 1);
    if (place === undefined) throw new Error(`no batch holds envelope ${at.seq + 1}`);
    const entry = readEntry(await this.#file.read(place.offset, place.length), place.offset);
    if (entry.kind !== "batch") throw new Error(`the entry at ${place.offset} is no batch`);
    for (const envelope of entry.envelopes) {
      if (signal.aborted) return;
      if (envelope.seq <= at.seq) continue;
      await reader.envelope(envelope);
      at.seq = envelope.seq;
    }
  }

  async #writePending(): Promise<void> {
    const pending = this.#pending;
    this.#pending = [];
    const taken: { readonly item: Pending; readonly envelopes: readonly RunnerEnvelope[] }[] = [];
    let next = this.lastSeq + 1;
    let bytes = this.#file.size;
    for (const item of pending) {
      const envelopes = this.#place(item, next);
      if (envelopes === undefined) continue;
      const size = writeEntry({ kind: "batch", envelopes: [...envelopes], receipts: this.#receipts }).length;
      if (bytes + size > this.#limitOf(item.drafts)) {
        item.resolve({ kind: "full", waitsFor: this.#waitsFor() });
        continue;
      }
      bytes += size;
      next += envelopes.length;
      taken.push({ item, envelopes });
    }
    if (taken.length === 0) return;
    try {
      await this.#appendBatch(taken.flatMap(({ envelopes }) => envelopes));
      for (const { item, envelopes } of taken) item.resolve({ kind: "appended", envelopes });
    } catch (error) {
      for (const { item } of taken) item.reject(error);
    }
  }

  #place({ drafts, reject }: Pending, first: number): readonly RunnerEnvelope[] | undefined {
    const conversation = this.#conversation;
    if (conversation === undefined) {
      reject(
        new RunnerFault(
          "HF-9001",
          "Runner: no conversation is bound, so no envelope has a place. Activate the slot first.",
        ),
      );
      return undefined;
    }
    return drafts.map((draft, index) =>
      placeEnvelope(draft, { seq: EnvelopeSeq.parse(first + index), epoch: this.epoch, conversation }),
    );
  }

  async #appendBatch(envelopes: readonly RunnerEnvelope[]): Promise<void> {
    const receipts = this.#receipts;
    const batch = { kind: "batch" as const, envelopes: [...envelopes], receipts };
    const bytes = writeEntry(batch);
    const offset = await this.#file.append(bytes);
    this.#receipts = this.#receipts.slice(receipts.length);
    if (envelopes.length === 0) return;
    for (const envelope of envelopes) this.#window.append(envelope);
    this.#batches.push(placeOf(batch, offset, bytes.length));
    this.#wake();
  }

  async #rewriteFrom(cut: number): Promise<number> {
    // In the step that looked at the readers: one that comes during the reads below is told of the gap.
    const removed = this.#window.cutBefore(cut);
    const kept = this.#batches.filter(({ lastSeq }) => lastSeq >= cut);
    const entries: JournalEntry[] = [];
    for (const place of kept) {
      const entry = readEntry(await this.#file.read(place.offset, place.length), place.offset);
      if (entry.kind === "batch")
        entries.push({ ...entry, envelopes: entry.envelopes.filter(({ seq }) => seq >= cut), receipts: [] });
    }
    const base = baseEntry(this.#state());
    const { parts, places } = layOut(base, entries);
    this.#receipts = [];
    await this.#file.replace(parts, () => {
      this.#batches = places;
    });
    return removed;
  }

  #state(): JournalState {
    return {
      journal: this.journal,
      epoch: this.epoch,
      conversation: this.#conversation,
      speaker: this.#speaker,
      window: this.#window,
      batches: this.#batches,
    };
  }

  #limitOf(drafts: readonly EnvelopeDraft[]): number {
    const mayUseReserve = drafts.every((draft) => TURN_ENDS.has(draft.op) || isDurable(draft));
    return mayUseReserve ? this.#maxBytes : this.#maxBytes - Math.floor(this.#maxBytes / 8);
  }

  #waitsFor(): "receipts" | "result" {
    const result = this.#window.latestResult;
    return result !== undefined && result.seq > (this.firstRetainedSeq ?? result.seq) ? "receipts" : "result";
  }

  #grown(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener("abort", wake);
        this.#wakes.delete(wake);
        resolve();
      };
      signal.addEventListener("abort", wake, { once: true });
      this.#wakes.add(wake);
    });
  }

  #wake(): void {
    for (const wake of this.#wakes) wake();
  }

  #run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }
}

const firstEntry = (journal: string): JournalEntry => ({
  kind: "base",
  format: JOURNAL_FORMAT,
  journal,
  epoch: 0,
  ...EMPTY_BASE,
  receipted: [],
});
