import { listCachedServers } from "./binary-cache.ts";
import { findExecutables, isExecutable } from "./find-executable.ts";
import { NatsServerFault } from "./nats-server-fault.ts";
import { probeServer } from "./probe-server.ts";
import { MINIMUM_SERVER_VERSION } from "./server-version.ts";

export interface LocalSearch {
  readonly cacheDir: string;
  readonly env: {
    readonly HOLDFAST_NATS_SERVER?: string | undefined;
    readonly PATH?: string | undefined;
  };
  readonly signal?: AbortSignal | undefined;
}

export interface FoundServer {
  readonly path: string;
  readonly version: string;
}

/** `notes` say, one line each, what was passed over and why. */
export interface LocalServers {
  readonly servers: readonly FoundServer[];
  readonly notes: readonly string[];
}

/**
 * The server that HOLDFAST_NATS_SERVER names. A choice somebody made is never passed over in silence.
 *
 * @returns undefined when the variable is not set
 * @throws NatsServerFault HF-8001 when nothing there runs, HF-8002 when it is too old
 */
export async function serverNamedByEnv(search: LocalSearch): Promise<FoundServer | undefined> {
  const path = search.env.HOLDFAST_NATS_SERVER;
  if (path === undefined || path === "") return undefined;
  const refuse = (code: "HF-8001" | "HF-8002", found: string): NatsServerFault =>
    new NatsServerFault(
      code,
      `HOLDFAST_NATS_SERVER=${path}: expected a nats-server of ${MINIMUM_SERVER_VERSION} or newer, found ${found}. Name such a binary, or unset the variable to let Holdfast look for one.`,
      { facts: { path, found } },
    );
  if (!(await isExecutable(path))) throw refuse("HF-8001", "no executable file there");
  const probe = await probeServer(path, search.signal);
  if (probe.kind === "unusable") throw refuse("HF-8001", probe.reason);
  if (probe.kind === "too-old") throw refuse("HF-8002", probe.version);
  return { path, version: probe.version };
}

/** Every recent enough `nats-server` on PATH, in its order. */
export async function serversOnPath(search: LocalSearch): Promise<LocalServers> {
  const files = await findExecutables("nats-server", search.env.PATH);
  return sift("path", files, search.signal);
}

/** Every intact copy in the cache that runs on this machine, oldest first. The cache may lie on a disk shared with other machines. */
export async function serversInCache(search: LocalSearch): Promise<LocalServers> {
  const cached = await listCachedServers(search.cacheDir, search.signal);
  const files = cached.servers.map((server) => server.path);
  const sifted = await sift("cache", files, search.signal);
  return { servers: sifted.servers, notes: [...cached.notes, ...sifted.notes] };
}

async function sift(label: string, files: readonly string[], signal: AbortSignal | undefined): Promise<LocalServers> {
  const servers: FoundServer[] = [];
  const notes: string[] = [];
  for (const path of files) {
    const probe = await probeServer(path, signal);
    if (probe.kind === "usable") servers.push({ path, version: probe.version });
    else if (probe.kind === "unusable") notes.push(`${label}: ${probe.reason}`);
    else {
      notes.push(
        `${label}: ${path} is ${probe.version}, older than ${MINIMUM_SERVER_VERSION}: refused, it can lose acknowledged data`,
      );
    }
  }
  return { servers, notes };
}
