// Scan: one pass over msgpack bytes that proves them to be one whole plain value before anything is built from them.
//
// Owns: what the msgpack decoder gets to see.  Does not own: tagged values (unwalk.ts), schemas.
//   S1 whole     exactly one value, nothing missing, nothing left over
//   S2 plain     no extension types: msgpackr would build Errors, Sets, cycles and compiled readers from them
//   S3 bounded   no length beyond the bytes that are there, and a limit on levels; nothing is allocated
//   S4 honest    keys are strings, none is `__proto__`, which msgpackr would rename
import { damaged } from "./frame.ts";
import { MAX_VALUE_DEPTH } from "./walk.ts";
import type { Unreadable } from "./unreadable.ts";

/** One level of a Map is four levels of msgpack: tagged map, its array, the list of entries, the entry. */
const MAX_LEVELS = 4 * MAX_VALUE_DEPTH + 8;
/** msgpackr leaves strings longer than this to a TextDecoder where its native part is missing. */
const TEXT_DECODER_FROM_BYTES = 65;
const EMPTY = new Uint8Array();
const PROTO = Array.from("__proto__", (character) => character.charCodeAt(0));

export interface ScanResult {
  /** A long string begins with U+FEFF: a TextDecoder would drop that character. */
  readonly hasLongBom: boolean;
}

/** @throws what `unreadable` makes, with the offset of the first byte that does not fit */
export type Scan = (bytes: Uint8Array, unreadable: Unreadable) => ScanResult;

export function createScan(): Scan {
  let bytes: Uint8Array = EMPTY;
  let at = 0;
  let hasLongBom = false;
  let unreadable: Unreadable = damaged;

  return (source, fault) => {
    bytes = source;
    at = 0;
    hasLongBom = false;
    unreadable = fault;
    try {
      scanValue(0);
      if (at !== bytes.length) fail(`${bytes.length - at} bytes are left over`, at);
      return { hasLongBom };
    } finally {
      bytes = EMPTY;
    }
  };

  function scanValue(level: number): void {
    const token = byte();
    if (token <= 0x7f || token >= 0xe0) return;
    if (token <= 0x8f) return scanMap(token & 0x0f, level);
    if (token <= 0x9f) return scanArray(token & 0x0f, level);
    if (token <= 0xbf) return skipText(token & 0x1f);
    switch (token) {
      case 0xc0: // nil
      case 0xc2: // false
      case 0xc3: // true
        return undefined;
      case 0xc4: // bin
        return skip(uint(1));
      case 0xc5:
        return skip(uint(2));
      case 0xc6:
        return skip(uint(4));
      case 0xcc: // uint8, int8
      case 0xd0:
        return skip(1);
      case 0xcd: // uint16, int16
      case 0xd1:
        return skip(2);
      case 0xca: // float32, uint32, int32
      case 0xce:
      case 0xd2:
        return skip(4);
      case 0xcb: // float64, uint64, int64
      case 0xcf:
      case 0xd3:
        return skip(8);
      case 0xd9: // str
        return skipText(uint(1));
      case 0xda:
        return skipText(uint(2));
      case 0xdb:
        return skipText(uint(4));
      case 0xdc:
        return scanArray(uint(2), level);
      case 0xdd:
        return scanArray(uint(4), level);
      case 0xde:
        return scanMap(uint(2), level);
      case 0xdf:
        return scanMap(uint(4), level);
      default:
        return fail(token === 0xc1 ? "the byte 0xc1 is not msgpack" : "an extension type", at - 1);
    }
  }

  function scanArray(length: number, level: number): void {
    open(level);
    for (let index = 0; index < length; index += 1) scanValue(level + 1);
  }

  function scanMap(size: number, level: number): void {
    open(level);
    for (let index = 0; index < size; index += 1) {
      scanKey();
      scanValue(level + 1);
    }
  }

  function scanKey(): void {
    const start = at;
    const token = byte();
    let length = token & 0x1f;
    if (token === 0xd9) length = uint(1);
    else if (token === 0xda) length = uint(2);
    else if (token === 0xdb) length = uint(4);
    else if (token < 0xa0 || token > 0xbf) fail("a key that is not a string", start);
    const from = at;
    skipText(length);
    if (length === PROTO.length && PROTO.every((code, index) => bytes[from + index] === code)) {
      fail("a key named __proto__", start);
    }
  }

  // A count beyond the bytes that are there needs no check of its own: its items end the scan.
  function open(level: number): void {
    if (level >= MAX_LEVELS) fail(`more than ${MAX_LEVELS} levels`, at);
  }

  function byte(): number {
    const value = bytes[at];
    if (value === undefined) return fail("the bytes end before the value does", bytes.length);
    at += 1;
    return value;
  }

  function uint(width: 1 | 2 | 4): number {
    let value = 0;
    for (let index = 0; index < width; index += 1) value = value * 256 + byte();
    return value;
  }

  function skip(length: number): void {
    if (length > bytes.length - at) fail("the bytes end before the value does", bytes.length);
    at += length;
  }

  function skipText(length: number): void {
    if (length >= TEXT_DECODER_FROM_BYTES && bytes[at] === 0xef && bytes[at + 1] === 0xbb && bytes[at + 2] === 0xbf) {
      hasLongBom = true;
    }
    skip(length);
  }

  function fail(reason: string, offset: number): never {
    throw unreadable(`${reason} (byte ${offset})`);
  }
}
