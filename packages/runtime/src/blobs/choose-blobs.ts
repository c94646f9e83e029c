import type { Codec } from "@holdfast/codec";
import type { KeepOutside } from "@holdfast/durable";
import { ALL_FIELDS, RuntimeFault, sha256Hex, type BlobRef } from "@holdfast/protocol";
import { isSmall } from "./is-small.ts";

/** Larger payloads are no blobs: they are refused as what they are, a record or a message that is too large. */
const MAX_BLOB_BYTES = 16 * 1024 * 1024;
/** Blobs one payload is split into; one with more large fields becomes one blob as a whole. */
const MAX_FIELDS = 8;
/** Of a field: its name and what surrounds it. */
const FIELD_BYTES = 8;

/** What one macrostep keeps outside of its record. */
export interface ChosenBlobs {
  readonly outside: KeepOutside;
  /** SHA-256 → bytes of every blob that was named so far. */
  readonly chosen: ReadonlyMap<string, Uint8Array>;
}

/** Begins one macrostep. A value is encoded only when it may be too large, and once, however many effects carry it. */
export function chooseBlobs(codec: Pick<Codec, "encodeValue">): ChosenBlobs {
  const chosen = new Map<string, Uint8Array>();
  const encoded = new Map<unknown, Uint8Array>();
  const encode = (value: unknown): Uint8Array => {
    const bytes = encoded.get(value) ?? codec.encodeValue(value);
    encoded.set(value, bytes);
    return bytes;
  };
  const name = (bytes: Uint8Array): BlobRef => {
    const sha256 = sha256Hex(bytes);
    chosen.set(sha256, bytes);
    return { kind: "value", size: bytes.length, sha256 };
  };
  const outside: KeepOutside = (fields, limitBytes) => {
    if (isSmall(fields, limitBytes)) return undefined;
    try {
      const sizes = Object.entries(fields)
        .map(([field, value]) => ({ field, bytes: encode(value) }))
        .toSorted((a, b) => b.bytes.length - a.bytes.length);
      let left = sizes.reduce((sum, { field, bytes }) => sum + field.length + FIELD_BYTES + bytes.length, 0);
      const large = sizes.filter(({ bytes }) => {
        const isTaken = left > limitBytes;
        if (isTaken) left -= bytes.length;
        return isTaken;
      });
      if (large.length === 0 || large.some(({ bytes }) => bytes.length > MAX_BLOB_BYTES)) return undefined;
      const isMany = large.length > MAX_FIELDS || large.some(({ field }) => field === ALL_FIELDS);
      if (isMany) return { [ALL_FIELDS]: name(encode(fields)) };
      return Object.fromEntries(large.map(({ field, bytes }) => [field, name(bytes)]));
    } catch (error) {
      if (error instanceof RuntimeFault) return undefined; // it cannot be stored at all: whoever encodes the record says where it is
      throw error;
    }
  };
  return { outside, chosen };
}
