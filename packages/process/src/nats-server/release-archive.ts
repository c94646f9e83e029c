import { createWriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { sha256OfFile } from "./binary-cache.ts";
import { NatsServerFault } from "./nats-server-fault.ts";
import { runCommand } from "./run-command.ts";

/**
 * Official release archive that is used when nothing else is at hand. The checksums are pinned here. The download from the real address
 * has never been tried by the test suite, which serves an archive from a local HTTP server instead.
 */
export const PINNED_RELEASE = {
  baseUrl: "https://github.com/nats-io/nats-server/releases/download",
  version: "2.10.29",
  sha256: {
    "linux-amd64": "e314da74a83a1d3876db8814c27eb990fe729640fd6452025b441bcede8390da",
    "linux-arm64": "da4b27942ecfb4c5f0c54553d2e7f470ddda9d7581cfe8131b351a0e223ed401",
  },
} as const;

export type ReleaseTarget = keyof typeof PINNED_RELEASE.sha256;

/** @returns the archive that fits a machine, undefined when none is pinned for it */
export function releaseTargetOf(platform: string, arch: string): ReleaseTarget | undefined {
  if (platform !== "linux") return undefined;
  if (arch === "x64") return "linux-amd64";
  return arch === "arm64" ? "linux-arm64" : undefined;
}

export interface ReleaseRequest {
  /** Existing, empty folder for the download. */
  readonly workDir: string;
  readonly target: ReleaseTarget;
  readonly baseUrl: string;
  readonly version: string;
  /** Hex, of the archive. */
  readonly sha256: string;
  /** Longest silence: until the answer begins, and between two parts of it. Short, since many machines have no internet. */
  readonly silenceTimeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export type Fetched =
  | { readonly kind: "fetched"; readonly binary: string }
  | { readonly kind: "unavailable"; readonly reason: string };

const EXTRACT_TIMEOUT_MS = 30_000;
const MAX_ARCHIVE_BYTES = 64 * 1024 * 1024;

/**
 * Downloads a release archive, checks it, and only then unpacks the one file wanted.
 *
 * @returns `unavailable` when the address gives no archive
 * @throws NatsServerFault (HF-8005) when there is an archive with another checksum; the reason of `signal` when it is aborted
 */
export async function fetchReleaseArchive(request: ReleaseRequest): Promise<Fetched> {
  const stem = `nats-server-v${request.version}-${request.target}`;
  const url = `${request.baseUrl}/v${request.version}/${stem}.tar.gz`;
  const archive = join(request.workDir, `${stem}.tar.gz`);
  const failure = await download(url, archive, request);
  if (failure !== undefined) return { kind: "unavailable", reason: `${url}: ${failure}` };

  const found = await sha256OfFile(archive);
  if (found !== request.sha256) {
    // A sign-in page of a network is an answer too; it is no archive and no alarm.
    if (!(await isGzip(archive))) return { kind: "unavailable", reason: `${url}: not an archive` };
    throw new NatsServerFault(
      "HF-8005",
      `Archive ${url}: expected sha256 ${request.sha256}, found ${found}; it was not unpacked. Somebody or something changed it on the way: find out who, or set HOLDFAST_NATS_SERVER to a binary you trust.`,
      { facts: { url, expected: request.sha256, found } },
    );
  }
  const member = `${stem}/nats-server`;
  const outcome = await runCommand("tar", ["-xzf", archive, "-C", request.workDir, "--no-same-owner", member], {
    timeoutMs: EXTRACT_TIMEOUT_MS,
    signal: request.signal,
  });
  if (outcome.kind === "failed") return { kind: "unavailable", reason: outcome.reason };
  if (outcome.code !== 0) {
    return { kind: "unavailable", reason: `${url}: no ${member} in it (${outcome.stderr.trim()})` };
  }
  return { kind: "fetched", binary: join(request.workDir, member) };
}

/** @returns why it failed, undefined when the file is there */
async function download(url: string, file: string, request: ReleaseRequest): Promise<string | undefined> {
  const silence = new AbortController();
  const timer = setTimeout(() => {
    silence.abort(new Error(`no answer for ${request.silenceTimeoutMs} ms`));
  }, request.silenceTimeoutMs);
  const signals = [silence.signal, ...(request.signal === undefined ? [] : [request.signal])];
  let received = 0;
  const guard = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      timer.refresh();
      received += chunk.length;
      done(received > MAX_ARCHIVE_BYTES ? new Error("larger than any release") : null, chunk);
    },
  });
  try {
    const response = await fetch(url, { signal: AbortSignal.any(signals) });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      return `answered ${response.status}`;
    }
    await pipeline(Readable.fromWeb(response.body), guard, createWriteStream(file, { flags: "wx" }));
    return undefined;
  } catch (error) {
    request.signal?.throwIfAborted();
    return reasonOf(silence.signal.aborted ? silence.signal.reason : error);
  } finally {
    clearTimeout(timer);
  }
}

/** `fetch` hides what happened in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}

async function isGzip(file: string): Promise<boolean> {
  const handle = await open(file, "r");
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2, 0);
    return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
  } finally {
    await handle.close();
  }
}
