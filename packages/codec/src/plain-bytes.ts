import { Packr } from "msgpackr";
import { createBomReader } from "./bom-reader.ts";
import { createScan } from "./scan.ts";
import type { Unreadable } from "./unreadable.ts";

/** Plain data ↔ standard msgpack. The only place that knows msgpackr. */
export interface PlainBytes {
  /** @param plain what `walk` gave. @returns a view into msgpackr's own buffer: copy it before anything else is packed */
  readonly pack: (plain: unknown) => Uint8Array;
  /** @returns a tree that belongs to the caller, whose byte arrays still point into `bytes` */
  readonly unpack: (bytes: Uint8Array, unreadable: Unreadable) => unknown;
}

export function createPlainBytes(): PlainBytes {
  // No further options: whatever they add, libraries of other languages cannot read.
  const packr = new Packr({ useRecords: false });
  const scan = createScan();
  // msgpackr puts a property on the array it reads from; a fresh view keeps that off the caller's.
  const unpack = (bytes: Uint8Array): unknown => packr.unpack(bytes.subarray());
  const unpackKeepingBom = createBomReader(unpack);
  const probe = `\uFEFF${"x".repeat(64)}`;
  const dropsBom = unpack(packr.pack(probe)) !== probe;

  return {
    pack: (plain) => packr.pack(plain),
    unpack(bytes, unreadable) {
      const { hasLongBom } = scan(bytes, unreadable);
      return hasLongBom && dropsBom ? unpackKeepingBom(bytes) : unpack(bytes);
    },
  };
}
