/** Deeper than a value may be to be stored; whatever is, is left to the codec, which refuses it with its path. */
const MAX_DEPTH = 100;
/** Room for what is stored under a tag: dates, expressions, references to actors. */
const TAGGED_BYTES = 1024;

/**
 * Whether a value certainly takes no more than `limitBytes` when it is stored. Looks at no more of it than that and encodes nothing: it is
 * asked about every payload of every macrostep.
 * @returns false when it may take more: only encoding it tells
 */
export function isSmall(value: unknown, limitBytes: number): boolean {
  return left(value, limitBytes, 0) >= 0;
}

/** Budget that is left after a value, an upper bound of its encoded size; negative when it may not suffice. */
function left(value: unknown, budget: number, depth: number): number {
  if (typeof value === "string") return budget - 5 - value.length * 3; // UTF-8 takes at most three bytes for one UTF-16 unit
  if (typeof value === "object") return value === null ? budget - 1 : leftAfterObject(value, budget, depth);
  if (typeof value === "bigint") return budget - TAGGED_BYTES - value.toString().length;
  return budget - 24; // numbers, and what takes a tag without content
}

function leftAfterObject(value: object, budget: number, depth: number): number {
  if (budget < 0 || depth > MAX_DEPTH) return -1;
  if (Array.isArray(value)) return leftAfterItems(value, budget - 5, depth);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) {
    let rest = budget - 5;
    for (const [name, field] of Object.entries(value)) {
      if (rest < 0) return rest;
      rest = left(field, rest - 5 - name.length * 3, depth + 1);
    }
    return rest;
  }
  if (ArrayBuffer.isView(value)) return budget - 64 - value.byteLength;
  if (value instanceof Map) return leftAfterItems([...value.keys(), ...value.values()], budget - 32, depth);
  if (value instanceof Set) return leftAfterItems([...value], budget - 32, depth);
  if (value instanceof Error) return -1; // message, stack, causes: rare enough to be encoded
  return budget - TAGGED_BYTES;
}

function leftAfterItems(items: readonly unknown[], budget: number, depth: number): number {
  let rest = budget;
  for (const item of items) {
    if (rest < 0) return rest;
    rest = left(item, rest, depth + 1);
  }
  return rest;
}
