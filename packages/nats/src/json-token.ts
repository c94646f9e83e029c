const decoder = new TextDecoder();

/** The `token` field of a JSON object. @returns undefined when the bytes are none, or have no such field */
export function jsonToken(bytes: Uint8Array): string | undefined {
  const value: unknown = JSON.parse(decoder.decode(bytes));
  if (typeof value !== "object" || value === null || !("token" in value)) return undefined;
  return typeof value.token === "string" ? value.token : undefined;
}
