// Frame: the outermost bytes of a stored record. README.md has the table.
import crc from "crc-32";
import { RuntimeFault } from "@holdfast/protocol";

/** Format that this build writes. Others are read through upcasters (upcast.ts). */
export const RECORD_FORMAT = 1;
/** Bytes before the header. */
export const FRAME_PREFIX_BYTES = 16;

const MAGIC_H = 0x48;
const MAGIC_F = 0x46;
/** The payload is encrypted. Reserved: this build neither writes nor reads it. */
const FLAG_SEALED = 0b0000_0001;

export interface Frame {
  readonly format: number;
  /** Views into the bytes that were read; do not keep them. */
  readonly header: Uint8Array;
  readonly payload: Uint8Array;
}

/** CRC-32 (IEEE) as a signed 32-bit number. */
export type Checksum = (bytes: Uint8Array) => number;
export const pureCrc32: Checksum = (bytes) => crc.buf(bytes);

/** @returns bytes that nothing else refers to */
export function writeFrame(header: Uint8Array, payload: Uint8Array, crc32: Checksum = pureCrc32): Uint8Array {
  const bytes = new Uint8Array(FRAME_PREFIX_BYTES + header.length + payload.length);
  bytes.set(header, FRAME_PREFIX_BYTES);
  bytes.set(payload, FRAME_PREFIX_BYTES + header.length);
  return sealFrame(bytes, header.length, crc32);
}

/** Writes what goes before the header. @param bytes  room for the prefix, the header, the payload and nothing after it. @returns the same bytes */
export function sealFrame(bytes: Uint8Array, headerLength: number, crc32: Checksum = pureCrc32): Uint8Array {
  bytes[0] = MAGIC_H;
  bytes[1] = MAGIC_F;
  bytes[2] = RECORD_FORMAT;
  bytes[3] = 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  view.setUint32(4, headerLength);
  view.setUint32(8, bytes.length - FRAME_PREFIX_BYTES - headerLength);
  view.setInt32(12, crc32(bytes.subarray(FRAME_PREFIX_BYTES)));
  return bytes;
}

/**
 * Finds header and payload without looking into them and without allocating.
 *
 * @throws RuntimeFault HF-2002 when the bytes are not one whole frame; HF-2003 when a newer build wrote them
 */
export function readFrame(bytes: Uint8Array): Frame {
  if (bytes.length < FRAME_PREFIX_BYTES)
    throw damaged(`${bytes.length} bytes, a frame has at least ${FRAME_PREFIX_BYTES}`);
  if (bytes[0] !== MAGIC_H || bytes[1] !== MAGIC_F) throw damaged('the bytes do not begin with "HF"');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const format = view.getUint8(2);
  if (format > RECORD_FORMAT) throw newer(`format ${format}`, `formats up to ${RECORD_FORMAT}`, format, RECORD_FORMAT);
  const flags = view.getUint8(3);
  if (flags === FLAG_SEALED) throw newer("a sealed payload", "payloads in the clear", flags, 0);
  if (flags !== 0) throw newer(`flags ${flags}`, "no flags", flags, 0);
  const headerEnd = FRAME_PREFIX_BYTES + view.getUint32(4);
  const end = headerEnd + view.getUint32(8);
  if (end > bytes.length) throw damaged(`${bytes.length} bytes of ${end}, the rest is missing`);
  if (end < bytes.length) throw damaged(`${bytes.length} bytes where ${end} were announced`);
  return { format, header: bytes.subarray(FRAME_PREFIX_BYTES, headerEnd), payload: bytes.subarray(headerEnd) };
}

/** @throws RuntimeFault HF-2002 when header and payload are not what was written. `bytes` passed `readFrame` */
export function verifyChecksum(bytes: Uint8Array, crc32: Checksum = pureCrc32): void {
  const stored = new DataView(bytes.buffer, bytes.byteOffset).getInt32(12);
  if (crc32(bytes.subarray(FRAME_PREFIX_BYTES)) !== stored) throw damaged("the checksum does not fit");
}

/** The fault for stored bytes that are not what this code base ever wrote. */
export const damaged = (reason: string): RuntimeFault =>
  new RuntimeFault(
    "HF-2002",
    `Stored bytes: ${reason}. They are kept and nothing runs from them; restore the key from a backup or start the actor anew.`,
    { facts: { reason } },
  );

const newer = (found: string, known: string, foundNumber: number, knownNumber: number): RuntimeFault =>
  new RuntimeFault(
    "HF-2003",
    `Stored record: ${found} found, this build reads ${known}. A newer build wrote it: deploy that build on this node, or give the partition to a node that runs it.`,
    { facts: { found: foundNumber, known: knownNumber } },
  );
