import { isPlainObject } from "../plain-object.ts";
import { plainView } from "./plain-view.ts";

/** One place where two values differ. A side that has nothing there lacks its field. Both sides are JSON. */
export interface Difference {
  /** `context.items[2].title`; empty for the whole. */
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** Every place where two storable values differ, as deep as possible, in the order of the first one. Empty when they are equal. */
export function differences(before: unknown, after: unknown, path = ""): readonly Difference[] {
  return before === after ? [] : differ(plainView(before), plainView(after), path);
}

function differ(before: unknown, after: unknown, path: string): readonly Difference[] {
  if (Object.is(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) return differInItems(before, after, path);
  if (isPlainObject(before) && isPlainObject(after)) return differInFields(before, after, path);
  return [{ path, before, after }];
}

function differInItems(before: readonly unknown[], after: readonly unknown[], path: string): readonly Difference[] {
  const found: Difference[] = [];
  for (let index = 0; index < Math.max(before.length, after.length); index += 1) {
    const at = `${path}[${index}]`;
    if (index >= before.length) found.push({ path: at, after: after[index] });
    else if (index >= after.length) found.push({ path: at, before: before[index] });
    else found.push(...differ(before[index], after[index], at));
  }
  return found;
}

function differInFields(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  path: string,
): readonly Difference[] {
  const found: Difference[] = [];
  for (const [field, value] of Object.entries(before)) {
    const at = pathOf(path, field);
    if (Object.hasOwn(after, field)) found.push(...differ(value, after[field], at));
    else found.push({ path: at, before: value });
  }
  for (const [field, value] of Object.entries(after)) {
    if (!Object.hasOwn(before, field)) found.push({ path: pathOf(path, field), after: value });
  }
  return found;
}

function pathOf(path: string, field: string): string {
  if (!/^[A-Za-z_$][\w$]*$/.test(field)) return `${path}[${JSON.stringify(field)}]`;
  return path === "" ? field : `${path}.${field}`;
}
