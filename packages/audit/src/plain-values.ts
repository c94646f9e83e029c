import { crc32 } from "node:zlib";
import { decode } from "@msgpack/msgpack";

/** Plain data of a stored value: tagged values become something readable, none of them matters for counting. */
export function readPlain(bytes: Uint8Array): unknown {
  return untag(decode(bytes));
}

function untag(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(untag);
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return value;
  const entries = Object.entries(value);
  const first = entries[0];
  if (entries.length === 1 && first?.[0] === "$hf" && Array.isArray(first[1])) return readTag(first[1]);
  return Object.fromEntries(entries.map(([key, inner]) => [key, untag(inner)]));
}

function readTag([tag, ...rest]: readonly unknown[]): unknown {
  return tag === "undefined" ? undefined : { tag, value: rest.map(untag) };
}

/** Header and payload of a record frame: "HF", format 1, flags 0, three lengths and a checksum, header, payload. @throws Error when it is none */
export function readFrame(bytes: Uint8Array): { readonly header: unknown; readonly payload: unknown } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 16 || view.getUint16(0) !== 0x4846 || bytes[2] !== 1 || bytes[3] !== 0)
    throw new Error("not a record frame of format 1");
  const payloadAt = 16 + view.getUint32(4);
  if (payloadAt + view.getUint32(8) !== bytes.length) throw new Error("a record frame of another length");
  if (crc32(bytes.subarray(16)) !== view.getUint32(12)) throw new Error("a record frame with another checksum");
  return { header: readPlain(bytes.subarray(16, payloadAt)), payload: readPlain(bytes.subarray(payloadAt)) };
}

/** Payload of a record frame. @throws Error when it is none */
export const readFramePayload = (bytes: Uint8Array): unknown => readFrame(bytes).payload;
