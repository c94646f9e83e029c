import type { Codec } from "@holdfast/codec";
import { filteredHistory, type Link } from "@holdfast/jetstream";
import {
  parseActorKey,
  RuntimeFault,
  shardOf,
  type Manifest,
  type RecordHeader,
  type Subjects,
} from "@holdfast/protocol";
import { FamilyBells } from "./family-bells.ts";
import { formatFamilyCursor, parseFamilyCursor } from "./family-cursor.ts";
import { kindOf, type FamilyEntry } from "./family-entry.ts";
import { FamilyOrder, type FamilyMember } from "./family-order.ts";

export interface FamilyOptions {
  /** Key of the root. */
  readonly root: string;
  /** A cursor as it was handed over; default: from the first entry. */
  readonly from?: string | undefined;
  /** Waits for more until all have ended; default false: ends with what is stored now. */
  readonly follow?: boolean | undefined;
  /** Ends the iteration. */
  readonly signal?: AbortSignal | undefined;
}

export interface FamilyReaderOptions {
  readonly link: Link;
  readonly codec: Pick<Codec, "decodeJournalBatch">;
  readonly subjects: Subjects;
  readonly manifest: () => Manifest;
  readonly header: (key: string) => Promise<RecordHeader | undefined>;
}

const never = new AbortController().signal;

/**
 * Every macrostep of an actor and of all its descendants in one order, each once: by time, a child after what started it, a result after what
 * it is the result of. Behind a cursor it goes on without a gap.
 *
 * @throws RuntimeFault HF-1001 for a cursor of something else; HF-3001 when there is no such actor; HF-2001, HF-2002 for a journal that
 *   cannot be read; HF-4006 when the broker lost stored data; HF-4007 without the right; HF-4008 when JetStream did not answer
 */
export async function* readFamily(
  reader: FamilyReaderOptions,
  options: FamilyOptions,
): AsyncGenerator<FamilyEntry, void> {
  const { signal = never } = options;
  const { link, subjects, codec } = reader;
  const streamOf = (partition: string): string => subjects.journalStream(shardOf(reader.manifest(), partition));
  const order = new FamilyOrder(
    options.from === undefined ? [await rootOf(reader, options.root)] : parseFamilyCursor(options.root, options.from),
  );
  /** Member → sequence of the last message that was read of it. */
  const read = new Map<string, number>();
  const readMore = async (key: string): Promise<void> => {
    const known = order.position.find((member) => member.key === key);
    if (known === undefined) return;
    // The message that held the last entry may hold more.
    const fromSeq = (read.get(key) ?? known.seq - 1) + 1;
    const stream = streamOf(parseActorKey(key).partition);
    const messages = await filteredHistory(link, { stream, filters: [subjects.journal(key)], fromSeq, signal });
    for (const { seq, bytes } of messages) order.offer(key, seq, codec.decodeJournalBatch(bytes));
    read.set(key, messages.at(-1)?.seq ?? fromSeq - 1);
  };
  await using bells = new FamilyBells({ link, streamOf, subjectOf: (key) => subjects.journal(key) });
  let handedOver = 0;
  // A cursor names every member that has not ended, which is much to write for each entry when nobody reads it.
  const withCursor = <T extends object>(what: T): T & { readonly cursor: string } => {
    const number = (handedOver += 1);
    let cursor: string | undefined;
    return {
      ...what,
      get cursor() {
        if (cursor === undefined && number !== handedOver) throw readTooLate(options.root);
        return (cursor ??= formatFamilyCursor(options.root, order.position));
      },
    };
  };

  let news: readonly string[] = order.position.map(({ key }) => key);
  while (!signal.aborted && order.position.length > 0) {
    await Promise.all(news.map(readMore));
    for (let step = order.take(); step !== undefined; step = order.take()) {
      const { member, entry, started } = step;
      await Promise.all(started.map(readMore));
      yield withCursor({ kind: kindOf(entry), key: member.key, parent: member.parent, entry });
      if (signal.aborted) return;
    }
    const absent: FamilyMember[] = [];
    for (const member of order.missing) if (await isAbsent(reader, member, readMore, order)) absent.push(member);
    for (const { key, parent } of absent) {
      order.giveUp(key);
      yield withCursor({ kind: "absent" as const, key, parent });
    }
    if (absent.length > 0) continue;
    if (options.follow !== true) return;
    const seen = new Map(order.position.map(({ key }) => [key, read.get(key) ?? 0]));
    if (seen.size > 0) news = await bells.wait(seen, signal);
    if (news.length === 0) return;
  }
}

const readTooLate = (root: string): RuntimeFault =>
  new RuntimeFault(
    "HF-1001",
    `Family of ${root}: the cursor of an entry was asked for after the next entry. Read it before that.`,
  );

/** The present incarnation of an actor, before its first entry. */
async function rootOf({ header }: FamilyReaderOptions, key: string): Promise<FamilyMember> {
  const found = await header(key);
  if (found !== undefined) return { key, genesis: found.genesis, rev: 0, seq: 0 };
  throw new RuntimeFault(
    "HF-3001",
    `${key}: there is no such actor. "holdfast conversation list" shows all conversations.`,
  );
}

/** Its parent has its result, so it had ended; a journal that is merely late belongs to a record that still has to send it. */
async function isAbsent(
  { header }: FamilyReaderOptions,
  { key }: FamilyMember,
  readMore: (key: string) => Promise<void>,
  order: FamilyOrder,
): Promise<boolean> {
  if ((await header(key)) !== undefined) return false;
  await readMore(key); // it may have come since it was looked for
  return order.missing.some((member) => member.key === key);
}
