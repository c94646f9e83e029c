type Kind = "map" | "array" | "text" | "scalar";

interface Head {
  readonly kind: Kind;
  /** Offset of what follows the token and its length field. */
  readonly from: number;
  /** Entries of a map, items of an array, bytes of anything else. */
  readonly length: number;
}

/** Token → kind, bytes of its length field. */
const SIZED: ReadonlyMap<number, readonly [Kind, number]> = new Map<number, readonly [Kind, number]>([
  [0xc4, ["scalar", 1]],
  [0xc5, ["scalar", 2]],
  [0xc6, ["scalar", 4]],
  [0xd9, ["text", 1]],
  [0xda, ["text", 2]],
  [0xdb, ["text", 4]],
  [0xdc, ["array", 2]],
  [0xdd, ["array", 4]],
  [0xde, ["map", 2]],
  [0xdf, ["map", 4]],
]);
/** Bytes of the numbers with tokens 0xca to 0xd3. */
const NUMBER_BYTES = [4, 8, 1, 2, 4, 8, 1, 2, 4, 8];

/**
 * Reads msgpack that holds a long string beginning with U+FEFF where msgpackr would drop that character: without its native part
 * it leaves long strings to a TextDecoder, which takes U+FEFF for a byte order mark. Containers are read here, scalars by `unpack`.
 *
 * @param unpack  msgpackr's, for one scalar
 * @returns a reader of bytes that passed `scan`
 */
export function createBomReader(unpack: (bytes: Uint8Array) => unknown): (bytes: Uint8Array) => unknown {
  return (bytes) => {
    let at = 0;
    return read();

    function read(): unknown {
      const start = at;
      const { kind, from, length } = headAt(bytes, start);
      at = from;
      switch (kind) {
        case "map":
          return readMap(length);
        case "array":
          return Array.from({ length }, read);
        case "text":
          at = from + length;
          return readText(bytes.subarray(start, at), bytes.subarray(from, at), unpack);
        case "scalar":
          at = from + length;
          return unpack(bytes.subarray(start, at));
      }
    }

    function readMap(size: number): unknown {
      const map: Record<string, unknown> = {};
      for (let index = 0; index < size; index += 1) {
        const key = read();
        if (typeof key === "string") map[key] = read(); // scan: no other keys, none named __proto__
      }
      return map;
    }
  };
}

function readText(whole: Uint8Array, text: Uint8Array, unpack: (bytes: Uint8Array) => unknown): unknown {
  let marks = 0;
  while (text[3 * marks] === 0xef && text[3 * marks + 1] === 0xbb && text[3 * marks + 2] === 0xbf) marks += 1;
  if (marks === 0) return unpack(whole);
  const rest = text.subarray(3 * marks);
  const message = new Uint8Array(5 + rest.length);
  message[0] = 0xdb;
  new DataView(message.buffer).setUint32(1, rest.length);
  message.set(rest, 5);
  return `${"\uFEFF".repeat(marks)}${String(unpack(message))}`;
}

function headAt(bytes: Uint8Array, start: number): Head {
  const token = bytes[start] ?? 0xc0;
  if (token >= 0x80 && token <= 0x8f) return { kind: "map", from: start + 1, length: token & 0x0f };
  if (token >= 0x90 && token <= 0x9f) return { kind: "array", from: start + 1, length: token & 0x0f };
  if (token >= 0xa0 && token <= 0xbf) return { kind: "text", from: start + 1, length: token & 0x1f };
  const sized = SIZED.get(token);
  if (sized === undefined) return { kind: "scalar", from: start + 1, length: NUMBER_BYTES[token - 0xca] ?? 0 };
  const [kind, width] = sized;
  let length = 0;
  for (let index = 1; index <= width; index += 1) length = length * 256 + (bytes[start + index] ?? 0);
  return { kind, from: start + 1 + width, length };
}
