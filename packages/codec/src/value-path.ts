/** One step into a value: a key, an index, or a step that is written as it stands (`.get("k")` of a Map). */
export type PathStep = string | number | { readonly written: string };

const MAX_KEY_CHARACTERS = 64;

/**
 * A path as its author would write it: `context.a.b[0]`.
 *
 * @returns `(the value itself)` for the empty path; long keys are cut, since keys may hold user content
 */
export function formatPath(path: readonly PathStep[]): string {
  if (path.length === 0) return "(the value itself)";
  let text = "";
  for (const step of path) {
    if (typeof step === "object") text += step.written;
    else if (typeof step === "number") text += `[${step}]`;
    else if (!/^[A-Za-z_$][\w$]*$/.test(step)) text += `[${quote(step)}]`;
    else text += text === "" ? cut(step) : `.${cut(step)}`;
  }
  return text;
}

/** Step to the value stored under `key` in a Map. */
export const mapValueStep = (key: unknown, index: number): PathStep => ({
  written: typeof key === "string" ? `.get(${quote(key)})` : `.value(#${index})`,
});
export const mapKeyStep = (index: number): PathStep => ({ written: `.key(#${index})` });
export const setItemStep = (index: number): PathStep => ({ written: `.item(#${index})` });

const cut = (key: string): string => (key.length > MAX_KEY_CHARACTERS ? `${key.slice(0, MAX_KEY_CHARACTERS)}…` : key);
const quote = (key: string): string => JSON.stringify(cut(key));
