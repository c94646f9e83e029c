import { RunnerFault } from "../runner-fault.ts";
import { RetainedWindow } from "../state/retained-window.ts";
import type { Speaker } from "../wire/opening.ts";
import { damaged, writeEntry, type PlacedEntry } from "./entry-frame.ts";
import { JOURNAL_FORMAT, type JournalEntry, type JournalEntryOf } from "./journal-entry.ts";

/** Where the envelopes of one batch lie in the file. */
export interface BatchPlace {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly offset: number;
  readonly length: number;
}

/** What a journal says, read from its first entry to its last. */
export interface JournalState {
  readonly journal: string;
  /** The last epoch; 0 in a file that no runner has opened. */
  readonly epoch: number;
  readonly conversation: string | undefined;
  /** The last host that attached. */
  readonly speaker: Speaker | undefined;
  readonly window: RetainedWindow;
  readonly batches: readonly BatchPlace[];
}

/**
 * Folds the entries of a file. Pure.
 *
 * @throws RunnerFault HF-2002 when they do not follow from each other
 */
export function recoverJournal(entries: readonly PlacedEntry[]): JournalState {
  const [first, ...rest] = entries;
  if (first === undefined || first.entry.kind !== "base") throw damaged("it does not begin with a base", 0);
  const base = first.entry;
  let { epoch, conversation, speaker } = base;
  const window = new RetainedWindow(base);
  const batches: BatchPlace[] = [];
  for (const { entry, offset, length } of rest) {
    switch (entry.kind) {
      case "base":
        throw damaged("it has a second base", offset);
      case "opened":
        if (entry.epoch <= epoch) throw damaged(`epoch ${entry.epoch} follows ${epoch}`, offset);
        epoch = entry.epoch;
        break;
      case "bound":
        if (conversation !== undefined) throw damaged("it is bound twice", offset);
        conversation = entry.conversation;
        break;
      case "attached":
        speaker = entry.speaker;
        break;
      case "batch":
        applyBatch(window, entry, offset);
        if (entry.envelopes.length > 0) batches.push(placeOf(entry, offset, length));
        break;
    }
  }
  return { journal: base.journal, epoch, conversation, speaker, window, batches };
}

export function placeOf(batch: JournalEntryOf<"batch">, offset: number, length: number): BatchPlace {
  const { envelopes } = batch;
  return { firstSeq: envelopes[0]?.seq ?? 0, lastSeq: envelopes.at(-1)?.seq ?? 0, offset, length };
}

function applyBatch(window: RetainedWindow, batch: JournalEntryOf<"batch">, offset: number): void {
  try {
    for (const envelope of batch.envelopes) window.append(envelope);
    for (const seq of batch.receipts) window.receipt(seq);
  } catch (cause) {
    throw cause instanceof RunnerFault
      ? damaged(`the entry at byte ${offset} does not fit: ${cause.message}`, offset)
      : cause;
  }
}

/** The first entry of a file that begins anew with what `state` retains. */
export const baseEntry = (state: JournalState): JournalEntry => ({
  kind: "base",
  format: JOURNAL_FORMAT,
  journal: state.journal,
  epoch: state.epoch,
  ...(state.conversation === undefined ? {} : { conversation: state.conversation }),
  ...(state.speaker === undefined ? {} : { speaker: state.speaker }),
  ...state.window.toBase(),
  receipted: [...state.window.toBase().receipted],
});

/** The bytes of a file that begins with `base`, and where its batches lie. */
export function layOut(
  base: JournalEntry,
  entries: readonly JournalEntry[],
): { readonly parts: readonly Buffer[]; readonly places: BatchPlace[] } {
  const parts = [writeEntry(base)];
  const places: BatchPlace[] = [];
  let offset = parts[0]?.length ?? 0;
  for (const entry of entries) {
    const bytes = writeEntry(entry);
    if (entry.kind === "batch") places.push(placeOf(entry, offset, bytes.length));
    parts.push(bytes);
    offset += bytes.length;
  }
  return { parts, places };
}
