/** Anything with named properties that is not an array. */
export const isPlainObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** XState's convention for "none, one or many". */
export const listOf = (value: unknown): readonly unknown[] => {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
};
