// Binary cache — nats-server binaries that an earlier run fetched.
// Owns: `<cacheDir>/bin`. Does not own: the search order, the scratch folders of a running fetch.
//   B1 complete-or-absent  a binary appears under its final name only whole: written, fsynced, renamed
//   B2 checked-at-use      a binary whose bytes do not match the sha256 stored beside it is never returned
//   B3 many-writers        two processes may install at once; whoever finds a whole, matching copy keeps it
import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { copyFile, chmod, mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { NatsServerFault } from "./nats-server-fault.ts";
import { compareServerVersions, tryServerVersion } from "./server-version.ts";

export interface CachedServer {
  readonly path: string;
  readonly version: string;
  /** Hex. */
  readonly sha256: string;
}

const PREFIX = "nats-server-";
const INSTALL_ATTEMPTS = 3;

/** @returns lower-case hex */
export async function sha256OfFile(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

/** Copies whose checksum holds (B2), oldest version first, and a note for each one that was passed over. */
export async function listCachedServers(
  cacheDir: string,
  signal?: AbortSignal,
): Promise<{ readonly servers: readonly CachedServer[]; readonly notes: readonly string[] }> {
  const folder = join(cacheDir, "bin");
  const names = await readdir(folder).catch(() => []);
  const servers: CachedServer[] = [];
  const notes: string[] = [];
  for (const name of names) {
    signal?.throwIfAborted();
    const version = tryServerVersion(name);
    if (version === undefined || name !== PREFIX + version) continue;
    const sha256 = await verifiedChecksum(join(folder, name));
    if (sha256 === undefined) {
      notes.push(`cache: ${join(folder, name)} does not match the sha256 stored beside it and is not used`);
    } else servers.push({ path: join(folder, name), version, sha256 });
  }
  servers.sort((a, b) => compareServerVersions(a.version, b.version));
  return { servers, notes };
}

/**
 * Puts a binary into the cache (B1, B3). A matching copy that is already there stays.
 *
 * @throws NatsServerFault (HF-8001) when the cache folder cannot hold it
 */
export async function installIntoCache(cacheDir: string, binary: string, version: string): Promise<CachedServer> {
  const folder = join(cacheDir, "bin");
  const path = join(folder, PREFIX + version);
  try {
    await mkdir(folder, { recursive: true });
    for (let attempt = 0; attempt < INSTALL_ATTEMPTS; attempt++) {
      const present = await verifiedChecksum(path);
      if (present !== undefined) return { path, version, sha256: present };
      const wanted = await sha256OfFile(binary);
      // The checksum goes first: a reader then sees either no binary or one that can be checked. Another process
      // installing other bytes of the same version could still cross ours, hence the look afterwards.
      await placeFile(`${path}.sha256`, 0o644, async (temporary) => {
        await writeFile(temporary, `${wanted}  ${PREFIX}${version}\n`, { flag: "wx" });
      });
      await placeFile(path, 0o755, (temporary) => copyFile(binary, temporary));
    }
    const present = await verifiedChecksum(path);
    if (present !== undefined) return { path, version, sha256: present };
  } catch (error) {
    throw installFault(path, error);
  }
  throw installFault(path, undefined);
}

function installFault(path: string, cause: unknown): NatsServerFault {
  return new NatsServerFault(
    "HF-8001",
    `nats-server: expected to store a copy as ${path}, could not. Check that the folder is writable and has 20 MB free, or set HOLDFAST_NATS_SERVER to a binary.`,
    { facts: { path }, ...(cause === undefined ? {} : { cause }) },
  );
}

/** @returns the checksum, or undefined when the binary or its checksum is missing or they differ */
async function verifiedChecksum(path: string): Promise<string | undefined> {
  const stored = await readFile(`${path}.sha256`, "utf8").catch(() => "");
  const expected = /^[0-9a-f]{64}/.exec(stored)?.[0];
  if (expected === undefined) return undefined;
  try {
    return (await sha256OfFile(path)) === expected ? expected : undefined;
  } catch {
    return undefined;
  }
}

async function syncFile(file: string): Promise<void> {
  const handle = await open(file, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function placeFile(path: string, mode: number, write: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await write(temporary);
    await chmod(temporary, mode);
    await syncFile(temporary);
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}
