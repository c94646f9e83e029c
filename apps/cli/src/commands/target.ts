import { RuntimeFault } from "@holdfast/protocol";

/** Reads `<type>/<id>`, or a whole key. @throws RuntimeFault HF-1002 */
export function targetOf(text: string, key: (type: string, id: string) => string): string {
  const [type, id, ...rest] = text.split("/");
  if (type !== undefined && id !== undefined && rest.length === 0) return key(type, id);
  if (text.split(".").length === 3) return text;
  throw new RuntimeFault(
    "HF-1002",
    `"${text}": expected <type>/<id>, for example conversation/c1, or a key as "holdfast fleet" prints it.`,
  );
}
