import { isPlainObject } from "./json-schema-subset.ts";

/** JSON of a value with the keys of its objects in order: the same text for what a person would call the same answer. */
export function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (!isPlainObject(value)) return JSON.stringify(value) ?? "null";
  const fields = Object.keys(value)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${canonicalText(value[key])}`);
  return `{${fields.join(",")}}`;
}
