import { access, constants, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";

/**
 * Every executable file of that name on a search path, in its order.
 *
 * @param searchPath  value of the PATH variable; undefined finds nothing
 */
export async function findExecutables(name: string, searchPath: string | undefined): Promise<readonly string[]> {
  const folders = new Set((searchPath ?? "").split(delimiter).filter((folder) => folder !== ""));
  const found: string[] = [];
  for (const folder of folders) {
    const file = join(folder, name);
    if (await isExecutable(file)) found.push(file);
  }
  return found;
}

export async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
