// Codec: records, messages and single values ↔ bytes.
//
// Owns: the order of the steps.  Does not own: which values are storable (walk.ts), the frame (frame.ts), sealing (a port of runtime).
//   C1 stable bytes   what is returned is a copy that nothing else refers to
//   C2 own values     what is decoded belongs to the caller and does not alias the bytes
//   C3 typed          whatever the bytes are, only RuntimeFault is thrown
//   C4 checked        a record is handed out only when its checksum, its schema and its header agree
import type { ValueExtension } from "@holdfast/durable";
import { ActorRecord, RecordHeader, RuntimeFault } from "@holdfast/protocol";
import type { z } from "zod";
import { createMessages, schemaMismatch, type Messages } from "./envelopes.ts";
import {
  damaged,
  FRAME_PREFIX_BYTES,
  pureCrc32,
  readFrame,
  RECORD_FORMAT,
  sealFrame,
  verifyChecksum,
  writeFrame,
  type Checksum,
} from "./frame.ts";
import { createPlainBytes } from "./plain-bytes.ts";
import { createPlainWriter } from "./plain-writer.ts";
import { checkRecordSize, tooLarge } from "./sizes.ts";
import { FORMAT_UPCASTERS, upcast, type FormatUpcasters } from "./upcast.ts";
import type { Unreadable } from "./unreadable.ts";
import { createUnwalk } from "./unwalk.ts";
import { createWalk } from "./walk.ts";

export interface DecodedRecord {
  readonly header: RecordHeader;
  readonly record: ActorRecord;
}

export interface Codec extends Messages {
  /** @throws RuntimeFault HF-2001 when the value cannot be stored */
  readonly encodeValue: (value: unknown) => Uint8Array;
  /** @throws RuntimeFault HF-2002 when the bytes are not one value */
  readonly decodeValue: (bytes: Uint8Array) => unknown;
  /**
   * @param header its key, genesis, rev and status are those of `record`
   * @throws RuntimeFault HF-2001 when something in it cannot be stored; HF-2004 when it is beyond the hard limit
   */
  readonly encodeRecord: (record: ActorRecord, header: RecordHeader) => Uint8Array;
  /**
   * Reads the clear header and nothing of the payload, so the checksum stays unchecked: good for lists, not for decisions.
   *
   * @throws RuntimeFault HF-2002 when the frame or its header is damaged; HF-2003 when a newer build wrote it
   */
  readonly decodeHeader: (bytes: Uint8Array) => RecordHeader;
  /** @throws RuntimeFault HF-2002 when anything in it is damaged; HF-2003 when a newer build wrote it */
  readonly decodeRecord: (bytes: Uint8Array) => DecodedRecord;
}

export interface CodecOptions {
  readonly ref: ValueExtension;
  /** Default: those of the released formats. */
  readonly upcasters?: FormatUpcasters;
  /** CRC-32 (IEEE) of bytes as a signed 32-bit number; default: the pure one. The system's own is ten times faster. */
  readonly crc32?: Checksum;
}

export function createCodec({ ref, upcasters = FORMAT_UPCASTERS, crc32 = pureCrc32 }: CodecOptions): Codec {
  const { pack, unpack } = createPlainBytes();
  const walk = createWalk(ref);
  const unwalk = createUnwalk(ref);

  const writePlain = createPlainWriter();
  /** A view, good until the next value is written. */
  const view = (value: unknown, what: string): Uint8Array => writePlain(value) ?? pack(walk(value, what));
  const encode = (value: unknown, what: string): Uint8Array => new Uint8Array(view(value, what)); // C1
  const decode = (bytes: Uint8Array, unreadable: Unreadable): unknown => {
    try {
      return unwalk(unpack(bytes, unreadable), unreadable); // C2
    } catch (cause) {
      if (cause instanceof RuntimeFault) throw cause;
      // C3. Without its cause: msgpackr quotes content in its messages.
      throw unreadable("the bytes cannot be read");
    }
  };
  /** Header and payload side by side where they are written, and copied once; undefined when one of them has to go the long way. */
  const shortFrame = (record: ActorRecord, header: RecordHeader): Uint8Array | undefined => {
    if (!RecordHeader.safeParse(header).success) return undefined;
    const head = writePlain(header, FRAME_PREFIX_BYTES);
    if (head === undefined) return undefined;
    const payload = writePlain(record, FRAME_PREFIX_BYTES + head.length);
    if (payload === undefined) return undefined;
    // Of the buffer that holds the payload: it may have grown since the header was written, and took that along.
    return sealFrame(new Uint8Array(payload.buffer.slice(0, payload.byteOffset + payload.length)), head.length, crc32); // C1
  };
  const encodeHeader = (header: RecordHeader): Uint8Array => {
    // A header is read without tags, so what the walk had to tag does not match the schema any more.
    const plain = walk(header, `Header of ${header.key}`);
    const parsed = RecordHeader.safeParse(plain);
    if (parsed.success) return new Uint8Array(pack(plain));
    const reason = schemaMismatch(parsed.error);
    throw new RuntimeFault("HF-2001", `Header of ${header.key}: ${reason}. Put only plain values into it.`);
  };
  const readHeader = (format: number, bytes: Uint8Array): RecordHeader =>
    check(RecordHeader, upcast(decode(bytes, damaged), format, RECORD_FORMAT, upcasters.header), "header");

  return {
    ...createMessages(encode, decode),
    encodeValue: (value) => encode(value, "Value"),
    decodeValue: (bytes) => decode(bytes, damaged),
    encodeRecord(record, header) {
      const differing = differingField(record, header);
      if (differing !== undefined) throw new RuntimeFault("HF-2001", contradiction(record, differing));
      const bytes =
        shortFrame(record, header) ??
        writeFrame(encodeHeader(header), pack(walk(record, `Record ${record.key}`)), crc32);
      if (checkRecordSize(bytes.length).kind !== "hard") return bytes;
      throw tooLarge(record, bytes.length, (value) => encode(value, `Record ${record.key}`).length);
    },
    decodeHeader(bytes) {
      const frame = readFrame(bytes);
      return readHeader(frame.format, frame.header);
    },
    decodeRecord(bytes) {
      const frame = readFrame(bytes);
      verifyChecksum(bytes, crc32);
      const header = readHeader(frame.format, frame.header);
      const payload = decode(frame.payload, damaged);
      const record = check(ActorRecord, upcast(payload, frame.format, RECORD_FORMAT, upcasters.record), "record");
      const differing = differingField(record, header);
      if (differing !== undefined) throw damaged(contradiction(record, differing)); // C4
      return { header, record };
    },
  };
}

function check<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw damaged(`${what}: ${schemaMismatch(parsed.error)}`);
  return parsed.data;
}

const differingField = (record: ActorRecord, header: RecordHeader): string | undefined =>
  (["key", "genesis", "rev", "status"] as const).find((field) => record[field] !== header[field]);

const contradiction = (record: ActorRecord, field: string): string =>
  `Record ${record.key}: its header has another ${field}. Make the header from the record it goes with.`;
