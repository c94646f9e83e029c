import { actorRefExtension } from "../actor-address.ts";

// A stand-in for the codec, which this room must not know: JSON with the values that records hold besides plain data.

type Tagged = { readonly $: readonly [string, ...unknown[]] };

/** Through text and back: nothing of the original is shared, references and errors come back as what they were. */
export function roundTrip<T>(value: T): T {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the text was written from a T
  return fromText(toText(value)) as T;
}

export const toText = (value: unknown): string => JSON.stringify(plainOf(value));

export const fromText = (text: string): unknown => valueOf(JSON.parse(text));

const tag = (name: string, ...rest: readonly unknown[]): Tagged => ({ $: [name, ...rest] });

function plainOf(value: unknown): unknown {
  if (value === undefined) return tag("undefined");
  if (typeof value === "function" || typeof value === "symbol") throw new Error(`cannot be stored: ${typeof value}`);
  if (typeof value !== "object" || value === null) return value;
  if (actorRefExtension.is(value)) return tag("ref", actorRefExtension.encode(value));
  if (value instanceof Uint8Array) return tag("bytes", [...value]);
  if (value instanceof Error) return tag("error", value.name, value.message);
  if (Array.isArray(value)) return value.map(plainOf);
  if (Object.getPrototypeOf(value) !== Object.prototype) throw new Error(`cannot be stored: ${value.constructor.name}`);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plainOf(member)]));
}

function valueOf(plain: unknown): unknown {
  if (typeof plain !== "object" || plain === null) return plain;
  if (Array.isArray(plain)) return plain.map(valueOf);
  if (isTagged(plain)) return untag(plain);
  return Object.fromEntries(Object.entries(plain).map(([key, member]) => [key, valueOf(member)]));
}

const isTagged = (value: object): value is Tagged => "$" in value;

function untag({ $: [name, first, second] }: Tagged): unknown {
  switch (name) {
    case "ref":
      return isRef(first) ? actorRefExtension.decode(first) : undefined;
    case "bytes":
      return Uint8Array.from(Array.isArray(first) ? first.map(Number) : []);
    case "error":
      return Object.assign(new Error(String(second)), { name: String(first) });
    default:
      return undefined;
  }
}

const isRef = (value: unknown): value is { key: string; id: string; genesis?: string } =>
  typeof value === "object" && value !== null && "key" in value && "id" in value;
