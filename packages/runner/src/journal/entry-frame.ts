import { crc32 } from "node:zlib";
import { z } from "zod";
import { RunnerFault } from "../runner-fault.ts";
import { JOURNAL_FORMAT, JournalEntry } from "./journal-entry.ts";

// Never part of UTF-8, so no entry's own text can look like the beginning of another entry.
const MAGIC = Buffer.from([0xff, 0x48, 0x46, 0xfe]);
const Format = z.object({ kind: z.literal("base"), format: z.int() });
const HEAD_BYTES = MAGIC.length + 8;

/** An entry as it lies in the file: magic, length of the text, CRC-32 over length and text (32 bits each, big endian), JSON in UTF-8. */
export function writeEntry(entry: JournalEntry): Buffer {
  const text = Buffer.from(JSON.stringify(entry), "utf8");
  const head = Buffer.alloc(HEAD_BYTES);
  MAGIC.copy(head);
  head.writeUInt32BE(text.length, MAGIC.length);
  head.writeUInt32BE(checksumOf(head, text), MAGIC.length + 4);
  return Buffer.concat([head, text]);
}

export interface PlacedEntry {
  readonly entry: JournalEntry;
  readonly offset: number;
  readonly length: number;
}

/**
 * Every entry of a file, and where the sound part ends. One entry is written and fsynced at a time, so only the last one can be torn; what
 * follows the sound part was never told to anybody.
 *
 * @throws RunnerFault HF-2002 when a whole entry lies behind a damaged one: that is no torn end, something changed the file
 */
export function readEntries(bytes: Buffer): { readonly entries: readonly PlacedEntry[]; readonly soundBytes: number } {
  const entries: PlacedEntry[] = [];
  let offset = 0;
  for (;;) {
    const text = textAt(bytes, offset);
    if (text === undefined) break;
    const length = HEAD_BYTES + text.length;
    entries.push({ entry: parseEntry(text, offset), offset, length });
    offset += length;
  }
  for (let at = bytes.indexOf(MAGIC, offset + 1); at !== -1; at = bytes.indexOf(MAGIC, at + 1))
    if (textAt(bytes, at) !== undefined)
      throw damaged(`the entry at byte ${offset} is damaged, and a whole one follows at ${at}`, offset);
  return { entries, soundBytes: offset };
}

/** The entry that `bytes` are, which were written by `writeEntry`. @throws RunnerFault HF-2002 when they are not */
export function readEntry(bytes: Buffer, offset: number): JournalEntry {
  const text = textAt(bytes, 0);
  if (text === undefined || text.length + HEAD_BYTES !== bytes.length)
    throw damaged(`the entry at byte ${offset} changed after it was written`, offset);
  return parseEntry(text, offset);
}

export const damaged = (problem: string, offset: number): RunnerFault =>
  new RunnerFault(
    "HF-2002",
    `Journal of a runner: ${problem}. It is kept as it is and no runner serves from it; copy it away, then give the seat an empty folder.`,
    { facts: { offset } },
  );

// The length is part of it: a tail of zeros would be an empty text with the right checksum otherwise.
const checksumOf = (head: Buffer, text: Buffer): number =>
  crc32(text, crc32(head.subarray(MAGIC.length, MAGIC.length + 4)));

function textAt(bytes: Buffer, offset: number): Buffer | undefined {
  const start = offset + HEAD_BYTES;
  if (start > bytes.length || bytes.compare(MAGIC, 0, MAGIC.length, offset, offset + MAGIC.length) !== 0)
    return undefined;
  const end = start + bytes.readUInt32BE(offset + MAGIC.length);
  if (end > bytes.length) return undefined;
  const text = bytes.subarray(start, end);
  return checksumOf(bytes.subarray(offset), text) === bytes.readUInt32BE(offset + MAGIC.length + 4) ? text : undefined;
}

function parseEntry(text: Buffer, offset: number): JournalEntry {
  const value: unknown = JSON.parse(text.toString("utf8"));
  const format = Format.safeParse(value).data?.format ?? JOURNAL_FORMAT;
  if (format > JOURNAL_FORMAT) throw newer(format);
  const parsed = JournalEntry.safeParse(value);
  if (!parsed.success) throw damaged(`the entry at byte ${offset} is whole, but not of this format`, offset);
  return parsed.data;
}

const newer = (format: number): RunnerFault =>
  new RunnerFault(
    "HF-2003",
    `Journal of a runner: format ${format} found, this build reads ${JOURNAL_FORMAT}. A newer build wrote it: start that build on this seat.`,
    { facts: { found: format, known: JOURNAL_FORMAT } },
  );
