import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NatsServerFault } from "../nats-server-fault.ts";
import { provideNatsServers, type ProvidedNatsServer } from "../provide-nats-server.ts";

/** The repository's own cache, ignored by git: binaries are fetched once for all test runs. */
const CACHE_DIR = fileURLToPath(new URL("../../../../../.holdfast", import.meta.url));

/** Real servers, oldest first; empty with the reason where none can be had. */
export async function serversForTests(): Promise<{
  readonly servers: readonly ProvidedNatsServer[];
  readonly reason: string;
}> {
  try {
    const { HOLDFAST_NATS_SERVER, PATH } = process.env;
    const servers = await provideNatsServers({ cacheDir: CACHE_DIR, env: { HOLDFAST_NATS_SERVER, PATH } });
    return { servers, reason: "" };
  } catch (error) {
    if (error instanceof NatsServerFault && error.code === "HF-8001") return { servers: [], reason: error.message };
    throw error;
  }
}

/** A folder that is gone when the test is over. */
export async function withTemporaryFolder<Result>(run: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-nats-"));
  try {
    return await run(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
