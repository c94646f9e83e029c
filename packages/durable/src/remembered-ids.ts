import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { MAX_REMEMBERED_MESSAGE_IDS } from "@holdfast/protocol";

/** Bytes kept of the hash of a message id. */
const DIGEST_BYTES = 8;

/** SHA-256 over the UTF-8 of a text, as 64 hex characters. */
export type TextHash = (text: string) => string;

const pureTextHash: TextHash = (text) => bytesToHex(sha256(utf8ToBytes(text)));

export function digestOf(id: string, hash: TextHash = pureTextHash): Uint8Array {
  const hex = hash(id);
  const digest = new Uint8Array(DIGEST_BYTES);
  for (let at = 0; at < DIGEST_BYTES; at += 1) digest[at] = Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16);
  return digest;
}

/** Whether a digest is among the remembered ones (concatenated, oldest first). */
export function isRemembered(remembered: Uint8Array, digest: Uint8Array): boolean {
  search: for (let at = 0; at < remembered.length; at += DIGEST_BYTES) {
    for (let index = 0; index < DIGEST_BYTES; index += 1) {
      if (remembered[at + index] !== digest[index]) continue search;
    }
    return true;
  }
  return false;
}

/** A copy with one more digest; the oldest goes when there are MAX_REMEMBERED_MESSAGE_IDS. */
export function remember(remembered: Uint8Array, digest: Uint8Array): Uint8Array<ArrayBuffer> {
  const keep = Math.min(remembered.length, (MAX_REMEMBERED_MESSAGE_IDS - 1) * DIGEST_BYTES);
  const next = new Uint8Array(keep + DIGEST_BYTES);
  next.set(remembered.subarray(remembered.length - keep));
  next.set(digest, keep);
  return next;
}
