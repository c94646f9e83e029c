import { chmod, mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** Writes an executable that answers `--version` like a nats-server of that version and does nothing else. */
export async function writeFakeServer(file: string, version: string): Promise<string> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  await chmod(file, 0o755);
  return file;
}
