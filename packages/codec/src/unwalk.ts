// Unwalk: from what msgpack carried back to the value that was stored.
//
// Owns: reading tagged values.  Does not own: bytes (scan.ts bounds them), what a value may mean (schemas).
//   U1 in place     the tree handed in was made for us by the decoder, so it is changed, not copied
//   U2 no aliasing  byte arrays are copied: the decoder's point into the message they came from
//   U3 refuse       a tagged value that is not exactly as `tagged-values.ts` says is unreadable, never passed on as a map
import type { ValueExtension } from "@holdfast/durable";
import { isErrorCode, RuntimeFault, TAG_KEY } from "@holdfast/protocol";
import { damaged } from "./frame.ts";
import { typedArrayOf } from "./typed-arrays.ts";
import type { Unreadable } from "./unreadable.ts";
import { formatPath, type PathStep } from "./value-path.ts";

/** @throws what `unreadable` makes, with the path of the value that cannot be read */
export type Unwalk = (value: unknown, unreadable: Unreadable) => unknown;

const ERROR_CLASSES: ReadonlyMap<string, ErrorConstructor> = new Map<string, ErrorConstructor>([
  ["EvalError", EvalError],
  ["RangeError", RangeError],
  ["ReferenceError", ReferenceError],
  ["SyntaxError", SyntaxError],
  ["TypeError", TypeError],
  ["URIError", URIError],
]);

export function createUnwalk(ref: ValueExtension): Unwalk {
  const path: PathStep[] = [];
  let unreadable: Unreadable = damaged;

  return (value, fault) => {
    unreadable = fault;
    return unwalk(value, 0);
  };

  function unwalk(value: unknown, depth: number): unknown {
    if (typeof value === "bigint") return unwalkInteger(value);
    if (typeof value !== "object" || value === null) return value;
    if (isArray(value)) return unwalkArray(value, depth);
    if (value instanceof Uint8Array) return new Uint8Array(value); // U2
    return isObject(value) ? unwalkObject(value, depth) : refuse("an object of another kind", depth);
  }

  function unwalkArray(array: unknown[], depth: number): unknown {
    for (let index = 0; index < array.length; index += 1) {
      const item = array[index];
      if (typeof item !== "object" && typeof item !== "bigint") continue;
      path[depth] = index;
      array[index] = unwalk(item, depth + 1);
    }
    return array;
  }

  function unwalkObject(object: Record<string, unknown>, depth: number): unknown {
    for (const key in object) {
      if (key === TAG_KEY) return untag(object, depth);
      const item = object[key];
      if (typeof item !== "object" && typeof item !== "bigint") continue;
      path[depth] = key;
      object[key] = unwalk(item, depth + 1);
    }
    return object;
  }

  function untag(object: Record<string, unknown>, depth: number): unknown {
    const tagged = object[TAG_KEY];
    if (!isArray(tagged) || Object.keys(object).length !== 1) return refuse("a map with the key $hf", depth);
    path[depth] = TAG_KEY;
    const [tag, first, second] = tagged;
    switch (tag) {
      case "undefined":
        return undefined;
      case "negativeZero":
        return -0;
      case "bigint":
        return isText(first) && /^-?[0-9]+$/.test(first) ? BigInt(first) : refuseTag(tag, depth);
      case "date":
        // oxlint-disable-next-line no-restricted-globals -- a Date as data; nobody reads the clock here
        return typeof first === "number" ? new Date(first) : refuseTag(tag, depth);
      case "map":
        return second === "object" ? untagObject(first, depth) : new Map(untagEntries(first, depth));
      case "set":
        return isArray(first) ? new Set(first.map((item) => unwalk(item, depth + 1))) : refuseTag(tag, depth);
      case "error":
        return isObject(first) ? untagError(first, depth) : refuseTag(tag, depth);
      case "regexp":
        return untagRegExp(first, second) ?? refuseTag(tag, depth);
      case "bytes":
        return (isText(first) && second instanceof Uint8Array && typedArrayOf(first, second)) || refuseTag(tag, depth);
      case "ref":
        return untagRef(first, depth);
      default:
        return refuse("a tagged value of an unknown kind", depth);
    }
  }

  function untagEntries(entries: unknown, depth: number): [unknown, unknown][] {
    if (!isArray(entries)) return refuseTag("map", depth);
    return entries.map((entry) => {
      if (!isArray(entry) || entry.length !== 2) return refuseTag("map", depth);
      return [unwalk(entry[0], depth + 1), unwalk(entry[1], depth + 1)];
    });
  }

  function untagObject(entries: unknown, depth: number): unknown {
    const object: Record<string, unknown> = {};
    for (const [key, item] of untagEntries(entries, depth)) {
      if (!isText(key) || key === "__proto__") return refuseTag("map", depth);
      object[key] = item;
    }
    return object;
  }

  function untagError(plain: Record<string, unknown>, depth: number): Error {
    const { name, message, code, stack } = plain;
    if (!isText(name) || !isText(message)) return refuseTag("error", depth);
    if (stack !== undefined && !isText(stack)) return refuseTag("error", depth);
    const options = "cause" in plain ? { cause: unwalk(plain["cause"], depth + 1) } : undefined;
    const facts = "facts" in plain ? unwalk(plain["facts"], depth + 1) : undefined;
    const error = errorOf(name, message, code, facts, options);
    if (error.name !== name) define(error, "name", name);
    // Without a stored stack the one made here would blame the decoder.
    define(error, "stack", stack);
    return error;
  }

  function untagRef(plain: unknown, depth: number): object {
    if (!isObject(plain)) return refuseTag("ref", depth);
    const { key, id, genesis } = plain;
    if (!isText(key) || !isText(id)) return refuseTag("ref", depth);
    if (genesis === undefined) return ref.decode({ key, id });
    return isText(genesis) ? ref.decode({ key, id, genesis }) : refuseTag("ref", depth);
  }

  function refuseTag(tag: string, depth: number): never {
    return refuse(`a tagged value "${tag}" with other content than its kind has`, depth);
  }

  function refuse(found: string, depth: number): never {
    throw unreadable(`${found} at ${formatPath(path.slice(0, depth))}`);
  }
}

/**
 * Other languages write whole numbers beyond 32 bits as 64-bit integers, which msgpackr reads as bigint. We write such numbers as
 * floats and every bigint with its tag, so a native integer is a number as long as that is exact.
 */
function unwalkInteger(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function errorOf(
  name: string,
  message: string,
  code: unknown,
  facts: unknown,
  options: { cause: unknown } | undefined,
): Error {
  if (isFacts(facts) && isText(code) && isErrorCode(code)) return faultOf(code, message, facts, options);
  const Class = ERROR_CLASSES.get(name) ?? Error;
  const error = new Class(message, options);
  return isText(code) || typeof code === "number" ? Object.assign(error, { code }) : error;
}

function untagRegExp(source: unknown, flags: unknown): RegExp | undefined {
  if (!isText(source) || !isText(flags)) return undefined;
  try {
    return new RegExp(source, flags);
  } catch {
    return undefined; // The caller refuses it with its path.
  }
}

function faultOf(
  code: RuntimeFault["code"],
  message: string,
  facts: RuntimeFault["facts"],
  options: { cause: unknown } | undefined,
): RuntimeFault {
  const fault = new RuntimeFault(code, message, { facts });
  // Not through the constructor, which drops a cause that is undefined.
  if (options !== undefined) define(fault, "cause", options.cause);
  return fault;
}

const define = (error: Error, name: string, value: unknown): unknown =>
  Object.defineProperty(error, name, { value, writable: true, enumerable: false, configurable: true });

const isText = (value: unknown): value is string => typeof value === "string";
const isArray = (value: unknown): value is unknown[] => Array.isArray(value);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
const isFacts = (value: unknown): value is RuntimeFault["facts"] =>
  isObject(value) && Object.values(value).every((fact) => ["string", "number", "boolean"].includes(typeof fact));
