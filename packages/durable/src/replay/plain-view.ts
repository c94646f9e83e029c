import { TAG_KEY, type ValueTag } from "@holdfast/protocol";
import { actorRefExtension } from "../actor-address.ts";

const tagged = (tag: ValueTag, ...rest: readonly unknown[]): unknown => ({ [TAG_KEY]: [tag, ...rest] });

/**
 * Any storable value as JSON: what JSON does not have becomes a tagged value, by the table that stored bytes follow. Of an error only
 * name, message, code and cause: where its stack goes is not decided by the journal.
 */
export function plainView(value: unknown): unknown {
  if (value === undefined) return tagged("undefined");
  if (typeof value === "bigint") return tagged("bigint", value.toString());
  if (typeof value === "number") return viewOfNumber(value);
  return typeof value === "object" && value !== null ? viewOfObject(value) : value;
}

function viewOfNumber(value: number): unknown {
  if (value === 0 && 1 / value < 0) return tagged("negativeZero");
  return Number.isFinite(value) ? value : String(value);
}

function viewOfObject(value: object): unknown {
  if (Array.isArray(value)) return value.map(plainView);
  if (actorRefExtension.is(value)) return tagged("ref", actorRefExtension.encode(value));
  if (value instanceof Error) return tagged("error", viewOfError(value));
  if (value instanceof Map)
    return tagged(
      "map",
      [...value].map(([key, item]) => [plainView(key), plainView(item)]),
    );
  if (value instanceof Set) return tagged("set", [...value].map(plainView));
  if (value instanceof RegExp) return tagged("regexp", value.source, value.flags);
  if (ArrayBuffer.isView(value)) return tagged("bytes", value.constructor.name, bytesOf(value));
  // oxlint-disable-next-line no-restricted-globals -- a Date as data; nobody reads the clock here
  if (value instanceof Date) return tagged("date", value.getTime());
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plainView(item)]));
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): readonly number[] => [
  ...new Uint8Array(buffer, byteOffset, byteLength),
];

function viewOfError(error: Error): unknown {
  const { name, message } = error;
  const code: unknown = "code" in error ? error.code : undefined;
  return {
    name,
    message,
    ...(code === undefined ? {} : { code: plainView(code) }),
    ...(Object.hasOwn(error, "cause") ? { cause: plainView(error.cause) } : {}),
  };
}
