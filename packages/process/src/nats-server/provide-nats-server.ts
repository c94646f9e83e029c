import type { DebianSuite } from "./debian-package.ts";
import { fetchFromArchive, fetchFromDebian, type FetchResult, type FetchSettings } from "./fetch-server.ts";
import { serverNamedByEnv, serversInCache, serversOnPath, type FoundServer } from "./local-servers.ts";
import { NatsServerFault } from "./nats-server-fault.ts";
import {
  compareServerVersions,
  MINIMUM_SERVER_VERSION,
  OLDEST_SUPPORTED_LINE,
  releaseLineOf,
} from "./server-version.ts";

export interface ProvideNatsServerOptions extends FetchSettings {
  /** Folder that git ignores; binaries go to `<cacheDir>/bin`. It need not exist. */
  readonly cacheDir: string;
  /** The two variables that are looked at. The configuration hands them in; nothing here reads the environment. */
  readonly env: {
    readonly HOLDFAST_NATS_SERVER?: string | undefined;
    readonly PATH?: string | undefined;
  };
  /** Which of several cached copies, and which Debian suite first. Default "newest". */
  readonly prefer?: "newest" | "oldest";
  readonly signal?: AbortSignal;
}

export interface ProvidedNatsServer {
  readonly path: string;
  readonly version: string;
  readonly source: "env" | "path" | "cache" | "archive" | "debian";
  /** What was looked at before and why it was passed over, one line each, for the start-up log. */
  readonly notes: readonly string[];
}

type Source = ProvidedNatsServer["source"];

/**
 * Finds or brings a nats-server that is recent enough. Looks, in this order, at HOLDFAST_NATS_SERVER, PATH, the cache, the official archive,
 * Debian's package of a newer suite. Safe in two processes at once.
 *
 * @throws NatsServerFault HF-8001 when none can be had or HOLDFAST_NATS_SERVER names nothing that runs; HF-8002 when it names an older
 *         server; HF-8005 when the archive has another checksum; the reason of `signal` when it is aborted
 */
export async function provideNatsServer(options: ProvideNatsServerOptions): Promise<ProvidedNatsServer> {
  const notes: string[] = [];
  const from = (source: Source, server: FoundServer): ProvidedNatsServer => ({
    path: server.path,
    version: server.version,
    source,
    notes,
  });
  const named = await serverNamedByEnv(options);
  if (named !== undefined) return from("env", named);

  const onPath = await serversOnPath(options);
  notes.push(...onPath.notes);
  if (onPath.servers[0] !== undefined) return from("path", onPath.servers[0]);

  const cached = await serversInCache(options);
  notes.push(...cached.notes);
  const kept = cached.servers.at(options.prefer === "oldest" ? 0 : -1);
  if (kept !== undefined) return from("cache", kept);

  const archive = await fetchFromArchive(fetchContext(options));
  if (archive.kind === "installed") return from("archive", archive.server);
  notes.push(...archive.notes);

  const suites: readonly DebianSuite[] = options.prefer === "oldest" ? ["trixie", "sid"] : ["sid", "trixie"];
  const debian = await fetchFromDebian(fetchContext(options), suites);
  if (debian.kind === "installed") return from("debian", debian.server);
  notes.push(...debian.notes);
  throw noServerFault(notes);
}

/**
 * The servers a contract suite runs against: one of the oldest supported line and the newest that can be had.
 *
 * @returns two entries, oldest first, with the same notes; one entry where only one can be had or HOLDFAST_NATS_SERVER names it
 * @throws like {@link provideNatsServer}
 */
export async function provideNatsServers(
  options: Omit<ProvideNatsServerOptions, "prefer">,
): Promise<readonly ProvidedNatsServer[]> {
  const named = await serverNamedByEnv(options);
  if (named !== undefined) return [{ ...named, source: "env", notes: [] }];

  const onPath = await serversOnPath(options);
  const cached = await serversInCache(options);
  const present = [...labelled("path", onPath), ...labelled("cache", cached)].toSorted((a, b) =>
    compareServerVersions(a.version, b.version),
  );
  const context = fetchContext(options);
  const old = await presentOrFetched(present.findLast(isOld), [
    ["debian", () => fetchFromDebian(context, ["trixie"])],
    ["archive", () => fetchFromArchive(context)],
  ]);
  const newest = await presentOrFetched(
    present.findLast((server) => !isOld(server)),
    [["debian", () => fetchFromDebian(context, ["sid"])]],
  );
  const notes = [...onPath.notes, ...cached.notes, ...old.notes, ...newest.notes];
  const servers = [old.server, newest.server].filter((server) => server !== undefined);
  if (servers.length === 0) throw noServerFault(notes);
  return servers.map((server) => ({ ...server, notes }));
}

interface LabelledServer extends FoundServer {
  readonly source: Source;
}

const labelled = (source: Source, local: { readonly servers: readonly FoundServer[] }): readonly LabelledServer[] =>
  local.servers.map(({ path, version }) => ({ path, version, source }));

const isOld = (server: FoundServer): boolean => releaseLineOf(server.version) === OLDEST_SUPPORTED_LINE;

async function presentOrFetched(
  present: LabelledServer | undefined,
  fetches: readonly (readonly [Source, () => Promise<FetchResult>])[],
): Promise<{ readonly server: LabelledServer | undefined; readonly notes: readonly string[] }> {
  if (present !== undefined) return { server: present, notes: [] };
  const notes: string[] = [];
  for (const [source, fetch] of fetches) {
    const result = await fetch();
    if (result.kind === "installed") {
      const { path, version } = result.server;
      return { server: { path, version, source }, notes };
    }
    notes.push(...result.notes);
  }
  return { server: undefined, notes };
}

const fetchContext = (
  options: Omit<ProvideNatsServerOptions, "prefer">,
): {
  readonly cacheDir: string;
  readonly settings: FetchSettings;
  readonly signal: AbortSignal | undefined;
} => ({ cacheDir: options.cacheDir, settings: options, signal: options.signal });

function noServerFault(notes: readonly string[]): NatsServerFault {
  return new NatsServerFault(
    "HF-8001",
    `nats-server: expected one of ${MINIMUM_SERVER_VERSION} or newer, found none (${notes.join("; ")}). ` +
      "Put a newer nats-server on PATH; or set HOLDFAST_NATS_SERVER to a binary; or allow access to the internet or to a Debian mirror; " +
      "or run NATS elsewhere and give Holdfast its address.",
    { facts: { notes: notes.join("; ") } },
  );
}
