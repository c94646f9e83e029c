// Walk: from any storable value to what msgpack can carry, or a refusal that names the path.
//
// Owns: which values can be stored, and their tagged form.  Does not own: bytes, limits on bytes, the way back (unwalk.ts).
//   W1 copy on write   a value without anything special comes back as the same object; nothing handed in is ever changed
//   W2 nothing silent  what would not come back as it was is refused with its path, never dropped or replaced
//   W3 bounded         depth and number of containers have limits, so cycles and shared structures end
//   W4 unambiguous     a stored map with the key `$hf` is always a tagged value: a user's own map with that key is escaped
import type { ValueExtension } from "@holdfast/durable";
import { RuntimeFault, TAG_KEY, type ValueTag } from "@holdfast/protocol";
import { typedArrayBytes, typedArrayName } from "./typed-arrays.ts";
import { formatPath, mapKeyStep, mapValueStep, setItemStep, type PathStep } from "./value-path.ts";

/** Levels of arrays, objects, Maps, Sets and error causes a value may have. */
export const MAX_VALUE_DEPTH = 100;
/** Arrays, objects, Maps, Sets a value may hold, those reachable on several ways counted each time. */
export const MAX_CONTAINERS = 1_000_000;
/** msgpackr writes every map with a 16-bit size. */
const MAX_MAP_KEYS = 0xffff;

const tagged = (tag: ValueTag, ...rest: readonly unknown[]): unknown => ({ [TAG_KEY]: [tag, ...rest] });
const UNDEFINED = tagged("undefined");
const NEGATIVE_ZERO = tagged("negativeZero");

/** `what` begins the message of a refusal: "Record d-3.task.t1". @throws RuntimeFault HF-2001 */
export type Walk = (value: unknown, what: string) => unknown;

export function createWalk(ref: ValueExtension): Walk {
  const path: PathStep[] = [];
  // Filled by level: pushing and emptying it for every value would allocate it anew.
  const ancestors: (object | undefined)[] = [];
  let containers = 0;
  let subject = "";

  return (value, what) => {
    containers = 0;
    subject = what;
    try {
      return walk(value, 0);
    } finally {
      ancestors.fill(undefined); // do not keep a value alive
    }
  };

  // `depth` is the number of steps in `path` that lead to the value at hand; later entries are stale.
  function walk(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case "string":
        return value.isWellFormed() ? value : refuse("a string with half a surrogate pair", depth);
      case "number":
        return value === 0 && 1 / value < 0 ? NEGATIVE_ZERO : value;
      case "object":
        return value === null ? value : walkContainer(value, depth);
      case "undefined":
        return UNDEFINED;
      case "bigint":
        return tagged("bigint", value.toString());
      case "function":
      case "symbol":
        return refuse(`a ${typeof value}`, depth);
      case "boolean":
      default:
        return value;
    }
  }

  function walkContainer(value: object, depth: number): unknown {
    if (depth >= MAX_VALUE_DEPTH) return refuseDepth(depth);
    containers += 1;
    if (containers > MAX_CONTAINERS) refuse(`more than ${MAX_CONTAINERS} arrays and objects`, 0);
    ancestors[depth] = value;
    return Array.isArray(value) ? walkArray(value, depth) : walkObject(value, depth);
  }

  function walkArray(array: readonly unknown[], depth: number): unknown {
    if (Object.getPrototypeOf(array) !== Array.prototype) refuseInstance(array, depth);
    const name = propertyOfArray(array);
    if (name !== undefined) {
      path[depth] = name;
      refuse("a property of an array that is not one of its items", depth + 1);
    }
    let copy: unknown[] | undefined;
    for (let index = 0; index < array.length; index += 1) {
      path[depth] = index;
      const item = array[index];
      const plain = walk(item, depth + 1);
      if (plain !== item) copy ??= array.slice();
      if (copy !== undefined) copy[index] = plain;
    }
    return copy ?? array;
  }

  function walkObject(value: object, depth: number): unknown {
    if (ref.is(value)) return tagged(ref.tag, walkRef(value, depth));
    if (isPlain(value)) return walkPlain(value, depth);
    if (value instanceof Uint8Array) return value;
    if (value instanceof Error) return tagged("error", walkError(value, depth));
    if (isBuiltIn(value, Map)) return tagged("map", walkMap(value, depth));
    if (isBuiltIn(value, Set)) return tagged("set", walkSet(value, depth));
    // oxlint-disable-next-line no-restricted-globals -- a Date as data; nobody reads the clock here
    if (isBuiltIn(value, Date)) return tagged("date", value.getTime());
    if (isBuiltIn(value, RegExp)) return tagged("regexp", value.source, value.flags);
    if (ArrayBuffer.isView(value)) {
      const name = typedArrayName(Object.getPrototypeOf(value));
      if (name !== undefined) return tagged("bytes", name, typedArrayBytes(value, name));
    }
    return refuseInstance(value, depth);
  }

  function walkPlain(object: Readonly<Record<string, unknown>>, depth: number): unknown {
    if (hasSymbolKey(object)) refuse("a key that is a symbol", depth);
    let copy: Record<string, unknown> | undefined;
    let keys = 0;
    let escape = false;
    // for-in reads the fields by their place in the object's shape, about twice as fast as asking for a list of keys first.
    for (const key in object) {
      if (!Object.hasOwn(object, key)) continue;
      keys += 1;
      path[depth] = key;
      if (needsEscape(key)) {
        if (key === "__proto__") refuse("a key named __proto__", depth + 1);
        escape = true;
      }
      if (!key.isWellFormed()) refuse("a key with half a surrogate pair", depth + 1);
      const item = object[key];
      const plain = walk(item, depth + 1);
      if (plain !== item) copy ??= { ...object };
      if (copy !== undefined) copy[key] = plain;
    }
    const plain = copy ?? object;
    escape ||= keys > MAX_MAP_KEYS;
    return escape ? tagged("map", Object.entries(plain), "object") : plain; // W4
  }

  function walkMap(map: ReadonlyMap<unknown, unknown>, depth: number): unknown {
    const entries: unknown[] = [];
    for (const [key, item] of map) {
      path[depth] = mapKeyStep(entries.length);
      const plainKey = walk(key, depth + 1);
      path[depth] = mapValueStep(key, entries.length);
      entries.push([plainKey, walk(item, depth + 1)]);
    }
    return entries;
  }

  function walkSet(set: ReadonlySet<unknown>, depth: number): unknown {
    const items: unknown[] = [];
    for (const item of set) {
      path[depth] = setItemStep(items.length);
      items.push(walk(item, depth + 1));
    }
    return items;
  }

  // Texts of an error are diagnosis and often cut in the middle of a character: repaired, not refused.
  function walkError(error: Error, depth: number): unknown {
    const plain: Record<string, unknown> = { name: textOf(error.name), message: textOf(error.message) };
    const code: unknown = "code" in error ? error.code : undefined;
    if (typeof code === "string" || typeof code === "number") plain["code"] = code;
    if (typeof error.stack === "string") plain["stack"] = error.stack.toWellFormed();
    if (Object.hasOwn(error, "cause")) {
      path[depth] = "cause";
      plain["cause"] = walk(error.cause, depth + 1);
    }
    if (error instanceof RuntimeFault) {
      path[depth] = "facts";
      plain["facts"] = walk(error.facts, depth + 1);
    }
    return plain;
  }

  function walkRef(value: object, depth: number): unknown {
    const { key, id, genesis } = ref.encode(value);
    return walkPlain(genesis === undefined ? { key, id } : { key, id, genesis }, depth);
  }

  function refuseInstance(value: object, depth: number): never {
    const { constructor }: { readonly constructor?: unknown } = value;
    return refuse(`an instance of ${typeof constructor === "function" ? constructor.name : "an unknown class"}`, depth);
  }

  function refuseDepth(depth: number): never {
    const again = ancestors.findIndex((ancestor, index) => ancestors.indexOf(ancestor) < index);
    return again === -1 ? refuse(`more than ${MAX_VALUE_DEPTH} levels`, depth) : refuse("a cycle", again);
  }

  function refuse(found: string, depth: number): never {
    const at = formatPath(path.slice(0, depth));
    throw new RuntimeFault(
      "HF-2001",
      `${subject}: ${found} at ${at}. Storable are plain objects and arrays, strings, numbers, bigints, booleans, null, undefined, ` +
        "Map, Set, Date, Error, RegExp, typed arrays and actor references; keep anything else out of context, events, input and output.",
      { facts: { path: at, found } },
    );
  }
}

export const isPlain = (value: object): value is Record<string, unknown> => {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
};

/** An instance of exactly this class: a subclass would not come back as what it was (W2). */
const isBuiltIn = <T extends object>(value: object, Class: { readonly prototype: T }): value is T =>
  Object.getPrototypeOf(value) === Class.prototype;

/**
 * `$hf` is the mark of tagged values. `constructor` and `toJSON` as data would mislead msgpackr, which looks at these members to
 * find out what it has before it.
 */
const needsEscape = (key: string): boolean =>
  key === TAG_KEY || key === "constructor" || key === "toJSON" || key === "__proto__";

/** A key that is a symbol would be lost silently. */
export function hasSymbolKey(object: object): boolean {
  for (const key of Object.getOwnPropertySymbols(object))
    if (Object.prototype.propertyIsEnumerable.call(object, key)) return true;
  return false;
}

/** Items come first among the keys of an array, so the last key tells. A match of a RegExp has such properties. */
export function propertyOfArray(array: readonly unknown[]): string | undefined {
  const last = Object.keys(array).at(-1);
  return last === undefined || String(Number(last) >>> 0) === last ? undefined : last;
}

const textOf = (text: unknown): string => (typeof text === "string" ? text.toWellFormed() : "");
