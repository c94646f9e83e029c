import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { installIntoCache, type CachedServer } from "./binary-cache.ts";
import { fetchDebianPackage, listDebianMirrors, type DebianSuite } from "./debian-package.ts";
import { probeServer } from "./probe-server.ts";
import { fetchReleaseArchive, PINNED_RELEASE, releaseTargetOf, type Fetched } from "./release-archive.ts";
import { MINIMUM_SERVER_VERSION } from "./server-version.ts";

/** Where and how long to fetch; every field has a default. */
export interface FetchSettings {
  /** Official archive. Off when false. `version` and `sha256` go together. */
  readonly archive?:
    | false
    | {
        readonly baseUrl?: string;
        readonly pin?: { readonly version: string; readonly sha256: string };
        /** Longest silence of the address, ms. Default 5,000. */
        readonly silenceTimeoutMs?: number;
      };
  /** Debian's package. Off when false. */
  readonly debian?:
    | false
    | {
        /** Default: read from apt's configuration. */
        readonly mirrors?: readonly string[];
        /** For each of the two network steps, ms. Default 60,000. */
        readonly timeoutMs?: number;
      };
}

export type FetchResult =
  | { readonly kind: "installed"; readonly server: CachedServer }
  | { readonly kind: "unavailable"; readonly notes: readonly string[] };

interface FetchContext {
  readonly cacheDir: string;
  readonly settings: FetchSettings;
  readonly signal?: AbortSignal | undefined;
}

const SILENCE_TIMEOUT_MS = 5000;
const APT_TIMEOUT_MS = 60_000;
/** A scratch folder older than this belongs to a run that was killed. */
const ABANDONED_AFTER_MS = 3_600_000;

/** Brings the pinned release archive into the cache. @throws NatsServerFault HF-8005 when its checksum differs */
export async function fetchFromArchive(context: FetchContext): Promise<FetchResult> {
  const archive = context.settings.archive ?? {};
  if (archive === false) return { kind: "unavailable", notes: ["archive: switched off"] };
  const target = releaseTargetOf(process.platform, process.arch);
  if (target === undefined) {
    const machine = `${process.platform}-${process.arch}`;
    return { kind: "unavailable", notes: [`archive: none is pinned for ${machine}`] };
  }
  return inScratchFolder(context, "archive", (workDir) =>
    fetchReleaseArchive({
      workDir,
      target,
      baseUrl: archive.baseUrl ?? PINNED_RELEASE.baseUrl,
      version: archive.pin?.version ?? PINNED_RELEASE.version,
      sha256: archive.pin?.sha256 ?? PINNED_RELEASE.sha256[target],
      silenceTimeoutMs: archive.silenceTimeoutMs ?? SILENCE_TIMEOUT_MS,
      signal: context.signal,
    }),
  );
}

/** Brings Debian's package into the cache: the first of the suites that a mirror gives. */
export async function fetchFromDebian(context: FetchContext, suites: readonly DebianSuite[]): Promise<FetchResult> {
  const debian = context.settings.debian ?? {};
  if (debian === false) return { kind: "unavailable", notes: ["debian: switched off"] };
  const mirrors = debian.mirrors ?? (await listDebianMirrors(context.signal));
  if (mirrors.length === 0) {
    return { kind: "unavailable", notes: ["debian: apt-get names no mirror on this machine"] };
  }
  const notes: string[] = [];
  for (const suite of suites) {
    for (const mirror of mirrors) {
      const result = await inScratchFolder(context, "debian", (workDir) =>
        fetchDebianPackage({
          workDir,
          suite,
          mirror,
          timeoutMs: debian.timeoutMs ?? APT_TIMEOUT_MS,
          signal: context.signal,
        }),
      );
      if (result.kind === "installed") return result;
      notes.push(...result.notes);
    }
  }
  return { kind: "unavailable", notes };
}

/** Runs a fetch in a folder of its own inside the cache, checks the version that came, and keeps the binary. */
async function inScratchFolder(
  context: FetchContext,
  label: string,
  fetch: (workDir: string) => Promise<Fetched>,
): Promise<FetchResult> {
  const scratch = join(context.cacheDir, "tmp");
  await removeAbandoned(scratch);
  const workDir = join(scratch, `${label}-${randomBytes(6).toString("hex")}`);
  await mkdir(workDir, { recursive: true });
  try {
    const fetched = await fetch(workDir);
    if (fetched.kind === "unavailable") {
      return { kind: "unavailable", notes: [`${label}: ${fetched.reason}`] };
    }
    const probe = await probeServer(fetched.binary, context.signal);
    if (probe.kind === "unusable") {
      return { kind: "unavailable", notes: [`${label}: ${probe.reason}`] };
    }
    if (probe.kind === "too-old") {
      const reason = `brought ${probe.version}, older than ${MINIMUM_SERVER_VERSION}`;
      return { kind: "unavailable", notes: [`${label}: ${reason}`] };
    }
    const server = await installIntoCache(context.cacheDir, fetched.binary, probe.version);
    return { kind: "installed", server };
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
}

async function removeAbandoned(scratch: string): Promise<void> {
  for (const name of await readdir(scratch).catch(() => [])) {
    const folder = join(scratch, name);
    const facts = await stat(folder).catch(() => undefined);
    if (facts === undefined || Date.now() - facts.mtimeMs < ABANDONED_AFTER_MS) continue;
    await rm(folder, { recursive: true, force: true });
  }
}
