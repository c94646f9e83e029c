/**
 * Values that plain msgpack cannot carry are stored as one-entry maps `{ "$hf": [tag, …] }`.
 * Any language's msgpack library reads them; a map that itself has the key `$hf` is escaped with the tag `map`.
 */
export const TAG_KEY = "$hf";

/** Tag → what follows it in the array. Part of the wire contract. */
export const VALUE_TAGS = {
  undefined: "nothing",
  negativeZero: "nothing",
  bigint: "decimal string",
  date: "Unix milliseconds",
  map: "list of [key, value]; a third item `object` marks an escaped object",
  set: "list of values",
  error: "{ name, message, code?, facts?, stack?, cause? }",
  regexp: "source, flags",
  bytes: "constructor name of a typed array, its bytes (little endian)",
  ref: "{ key, id, genesis? } of an actor",
} as const;
export type ValueTag = keyof typeof VALUE_TAGS;
