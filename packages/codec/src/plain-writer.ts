// PlainWriter: the short way from a value to msgpack, for values that hold nothing special.
//
// Owns: its buffer.  Does not own: which values are storable (walk.ts) and how special ones are written.
//   Q1 same bytes   what it writes is what msgpackr makes of what `walk` gives; a test compares them
//   Q2 gives up     at anything that `walk` would tag, escape or refuse, and at large values, it says so and the long way is taken
//
// Why: walk and msgpackr each look at every field of a record for every transition; once is enough for nearly all of them
// (docs/decisions/0012-plain-writer.md).

import { TAG_KEY } from "@holdfast/protocol";
import { hasSymbolKey, isPlain, MAX_VALUE_DEPTH, propertyOfArray } from "./walk.ts";

/**
 * @param from  where in the buffer it begins; what earlier calls wrote below stays, so that several values end up side by side. Default 0
 * @returns a view into a buffer that the next call writes over, or undefined when the value has to go the long way (Q2)
 */
export type PlainWriter = (value: unknown, from?: number) => Uint8Array | undefined;

const FIRST_BYTES = 8 * 1024;
/** A key with its header fits into so many bytes, or is written like any other text. */
const MAX_CACHED_KEY = 31;
const MAX_CACHED_KEYS = 4096;
/** Larger values go the long way: it counts what structures that share their parts come to. */
const MAX_PLAIN_CONTAINERS = 20_000;
const MAX_PLAIN_TEXT = 0x4000;
/** `{ $hf: ["undefined"] }`, as walk and msgpackr write it. */
const UNDEFINED = Uint8Array.from("\xde\0\x01\xa3$hf\x91\xa9undefined", (byte) => byte.charCodeAt(0));

/**
 * `text.charCodeAt(index)`, as a function that is found once. V8 stores texts in many ways (whole, in two parts, as a part of another) and after
 * a while foresees none of them: the method was looked up anew for every character.
 */
// oxlint-disable-next-line typescript/unbound-method -- every call says of which text
const codeAt: (text: string, index: number) => number = Function.prototype.call.bind(String.prototype.charCodeAt);

export function createPlainWriter(): PlainWriter {
  const keys = new Map<string, Uint8Array>();
  let bytes = new Uint8Array(FIRST_BYTES);
  let view = new DataView(bytes.buffer);
  let at = 0;
  let containers = 0;
  /** Somebody has put a field into every object of the process. */
  let inheritsFields = false;

  return (value, from = 0) => {
    at = from;
    containers = 0;
    inheritsFields = false;
    for (const _ in Object.prototype) inheritsFields = true;
    return write(value, 0) ? bytes.subarray(from, at) : undefined;
  };

  function write(value: unknown, depth: number): boolean {
    // No switch: V8 compares one kind with a look at the value, but names the kind in full for a switch.
    if (typeof value === "string") return writeText(value);
    if (typeof value === "number") return writeNumber(value);
    if (typeof value === "object") {
      if (value === null) return writeByte(0xc0);
      containers += 1;
      if (depth >= MAX_VALUE_DEPTH || containers > MAX_PLAIN_CONTAINERS) return false;
      return Array.isArray(value) ? writeArray(value, depth) : writeObject(value, depth);
    }
    if (typeof value === "boolean") return writeByte(value ? 0xc3 : 0xc2);
    if (typeof value === "undefined") return writeBytes(UNDEFINED);
    return false;
  }

  function writeObject(value: object, depth: number): boolean {
    if (!isPlain(value)) return value instanceof Uint8Array && writeBinary(value);
    if (hasSymbolKey(value)) return false;
    reserve(3);
    const head = at;
    at += 3;
    let size = 0;
    // for-in reads the fields by their place in the object's shape, and no list of them is made: a record has hundreds, of all shapes.
    for (const key in value) {
      if (inheritsFields && !Object.hasOwn(value, key)) continue;
      if (!writeKey(key) || !write(value[key], depth + 1)) return false;
      size += 1;
    }
    if (size > 0xffff) return false;
    bytes[head] = 0xde;
    bytes[head + 1] = size >> 8;
    bytes[head + 2] = size & 0xff;
    return true;
  }

  function writeKey(key: string): boolean {
    const known = keys.get(key);
    if (known !== undefined) {
      const { length } = known;
      reserve(length);
      const target = bytes;
      const from = at;
      for (let index = 0; index < length; index += 1) target[from + index] = known[index] ?? 0;
      at = from + length;
      return true;
    }
    if (key === TAG_KEY || key === "constructor" || key === "toJSON" || key === "__proto__") return false;
    const start = at;
    if (!writeText(key)) return false;
    if (at - start > MAX_CACHED_KEY) return true;
    if (keys.size >= MAX_CACHED_KEYS) keys.clear();
    keys.set(key, bytes.slice(start, at));
    return true;
  }

  function writeArray(array: readonly unknown[], depth: number): boolean {
    if (Object.getPrototypeOf(array) !== Array.prototype || propertyOfArray(array) !== undefined) return false;
    const { length } = array;
    reserve(5);
    if (length < 0x10) bytes[at++] = 0x90 | length;
    else if (length < 0x10000) {
      bytes[at++] = 0xdc;
      view.setUint16(at, length);
      at += 2;
    } else return false;
    for (let index = 0; index < length; index += 1) if (!write(array[index], depth + 1)) return false;
    return true;
  }

  /** Texts that are not plain ASCII take three bytes a character at most. */
  function writeText(text: string): boolean {
    const { length } = text;
    if (length > MAX_PLAIN_TEXT) return false;
    reserve(3 + 3 * length);
    const head = length < 0x20 ? 1 : length < 0x100 ? 2 : 3;
    const from = at + head;
    const target = bytes;
    for (let index = 0; index < length; index += 1) {
      const code = codeAt(text, index);
      if (code >= 0x80) return writeWideText(text, index, from);
      target[from + index] = code;
    }
    writeTextHead(length);
    at += length;
    return true;
  }

  function writeWideText(text: string, ascii: number, from: number): boolean {
    if (!text.isWellFormed()) return false;
    let to = from + ascii;
    for (let index = ascii; index < text.length; index += 1) {
      const code = text.codePointAt(index) ?? 0;
      if (code < 0x80) bytes[to++] = code;
      else if (code < 0x800) {
        bytes[to++] = 0xc0 | (code >> 6);
        bytes[to++] = 0x80 | (code & 0x3f);
      } else if (code < 0x10000) {
        bytes[to++] = 0xe0 | (code >> 12);
        bytes[to++] = 0x80 | ((code >> 6) & 0x3f);
        bytes[to++] = 0x80 | (code & 0x3f);
      } else {
        index += 1;
        bytes[to++] = 0xf0 | (code >> 18);
        bytes[to++] = 0x80 | ((code >> 12) & 0x3f);
        bytes[to++] = 0x80 | ((code >> 6) & 0x3f);
        bytes[to++] = 0x80 | (code & 0x3f);
      }
    }
    const length = to - from;
    const head = length < 0x20 ? 1 : length < 0x100 ? 2 : 3;
    if (at + head !== from) bytes.copyWithin(at + head, from, to);
    writeTextHead(length);
    at += length;
    return true;
  }

  function writeTextHead(length: number): void {
    if (length < 0x20) bytes[at++] = 0xa0 | length;
    else if (length < 0x100) {
      bytes[at++] = 0xd9;
      bytes[at++] = length;
    } else {
      bytes[at++] = 0xda;
      bytes[at++] = length >> 8;
      bytes[at++] = length & 0xff;
    }
  }

  function writeNumber(value: number): boolean {
    reserve(9);
    if (value >>> 0 === value) {
      if (value === 0 && 1 / value < 0) return false;
      if (value < 0x80) bytes[at++] = value;
      else if (value < 0x100) {
        bytes[at++] = 0xcc;
        bytes[at++] = value;
      } else if (value < 0x10000) {
        bytes[at++] = 0xcd;
        bytes[at++] = value >> 8;
        bytes[at++] = value & 0xff;
      } else {
        bytes[at++] = 0xce;
        view.setUint32(at, value);
        at += 4;
      }
    } else if (value >> 0 === value) writeNegative(value);
    else {
      bytes[at++] = 0xcb;
      view.setFloat64(at, value);
      at += 8;
    }
    return true;
  }

  function writeNegative(value: number): void {
    if (value >= -0x20) bytes[at++] = value;
    else if (value >= -0x80) {
      bytes[at++] = 0xd0;
      bytes[at++] = value;
    } else if (value >= -0x8000) {
      bytes[at++] = 0xd1;
      view.setInt16(at, value);
      at += 2;
    } else {
      bytes[at++] = 0xd2;
      view.setInt32(at, value);
      at += 4;
    }
  }

  function writeBinary(value: Uint8Array): boolean {
    const { length } = value;
    if (length >= 0x10000) return false;
    reserve(3 + length);
    if (length < 0x100) {
      bytes[at++] = 0xc4;
      bytes[at++] = length;
    } else {
      bytes[at++] = 0xc5;
      bytes[at++] = length >> 8;
      bytes[at++] = length & 0xff;
    }
    return writeBytes(value);
  }

  function writeBytes(value: Uint8Array): boolean {
    reserve(value.length);
    bytes.set(value, at);
    at += value.length;
    return true;
  }

  function writeByte(value: number): boolean {
    reserve(1);
    bytes[at++] = value;
    return true;
  }

  function reserve(more: number): void {
    if (at + more <= bytes.length) return;
    const larger = new Uint8Array(Math.max(2 * bytes.length, at + more));
    larger.set(bytes.subarray(0, at));
    bytes = larger;
    view = new DataView(bytes.buffer);
  }
}
