/** Makes any later change in place a TypeError. Typed arrays cannot be frozen and are left. */
export function deepFreeze<T>(value: T): T {
  freeze(value, new Set());
  return value;
}

function freeze(value: unknown, seen: Set<object>): void {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || seen.has(value)) return;
  seen.add(value);
  Object.freeze(value);
  for (const member of Object.values(value)) freeze(member, seen);
}
