import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/**
 * FNV-1a, 32 bits, over the UTF-8 bytes of `text`.
 * The hash of the partition function: part of the wire contract, golden vectors in the tests.
 */
export function fnv1a32(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of utf8ToBytes(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash >>> 0;
}

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/** First 128 bits of SHA-256 over the UTF-8 of `text`, as 26 characters of lower-case base32 without padding (RFC 4648 alphabet). */
export function hash128(text: string): string {
  const bytes = sha256(utf8ToBytes(text)).subarray(0, 16);
  let out = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xffff;
    bits += 8;
    while (bits >= 5) {
      out += BASE32.charAt((value >>> (bits - 5)) & 31);
      bits -= 5;
    }
  }
  return out + BASE32.charAt((value << (5 - bits)) & 31);
}

/** SHA-256 of bytes as 64 hex characters: the name of a blob. */
export const sha256Hex = (bytes: Uint8Array): string => bytesToHex(sha256(bytes));

/** FNV-1a, 32 bits, over bytes. A content mark, not a checksum against an adversary. */
export function fnv1a32Bytes(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i += 1) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  return hash >>> 0;
}
