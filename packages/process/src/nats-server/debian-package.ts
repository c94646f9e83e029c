import { access, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand, type CommandOutcome } from "./run-command.ts";
import type { Fetched } from "./release-archive.ts";

/** Suites whose nats-server is new enough: sid carries the newest, trixie 2.10. */
export type DebianSuite = "sid" | "trixie";

const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const ASK_TIMEOUT_MS = 15_000;
const UNPACK_TIMEOUT_MS = 30_000;
const MAX_MIRRORS = 3;

/**
 * Debian mirrors this machine already uses, read from apt's own configuration, so that no host is written down here.
 *
 * @returns at most 3 addresses, Debian's own first; empty where there is no apt
 */
export async function listDebianMirrors(signal?: AbortSignal): Promise<readonly string[]> {
  const outcome = await runCommand("apt-get", ["indextargets", "--format", "$(REPO_URI) $(ORIGIN)"], {
    timeoutMs: ASK_TIMEOUT_MS,
    signal,
  });
  if (outcome.kind === "failed" || outcome.code !== 0) return [];
  return parseMirrors(outcome.stdout);
}

/**
 * @param listing  lines of `<address> <origin>`; the origin is a placeholder until `apt-get update` ran once
 */
export function parseMirrors(listing: string): readonly string[] {
  const rows = listing
    .split("\n")
    .map((line) => line.trim().split(" "))
    .filter(([uri]) => uri !== undefined && uri !== "" && !uri.includes("security"));
  const ranked = [
    ...rows.filter(([, origin]) => origin === "Debian"),
    ...rows.filter(([, origin]) => origin !== "Debian"),
  ];
  return [...new Set(ranked.map(([uri]) => uri ?? ""))].slice(0, MAX_MIRRORS);
}

export interface DebianRequest {
  /** Existing, empty folder; lists, package and unpacked files stay inside it. */
  readonly workDir: string;
  readonly suite: DebianSuite;
  readonly mirror: string;
  /** For each of the two steps that use the network. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Downloads Debian's nats-server of one suite and unpacks it. Needs no root and installs nothing: apt works on lists and a cache of its own
 * inside `workDir`, and Debian's keyring checks the signatures. The binary needs only libc.
 *
 * @returns `unavailable` with apt's last word, e.g. when the suite's Release file has expired on the mirror
 * @throws the reason of `signal` when it is aborted
 */
export async function fetchDebianPackage(request: DebianRequest): Promise<Fetched> {
  const { workDir, suite, mirror, timeoutMs, signal } = request;
  const [lists, cache, list] = [join(workDir, "lists"), join(workDir, "cache"), join(workDir, "src.list")];
  await mkdir(join(lists, "partial"), { recursive: true });
  await mkdir(join(cache, "archives", "partial"), { recursive: true });
  const hasKeyring = await access(KEYRING).then(
    () => true,
    () => false,
  );
  const signedBy = hasKeyring ? `[signed-by=${KEYRING}] ` : "";
  await writeFile(list, `deb ${signedBy}${mirror} ${suite} main\n`);
  const settings = {
    "Dir::Etc::sourcelist": list,
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::State::Lists": lists,
    "Dir::Cache": cache,
    "Acquire::Languages": "none",
    "Acquire::Retries": "0",
    "Acquire::http::Timeout": "10",
    "Acquire::https::Timeout": "10",
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const apt = (args: readonly string[]): Promise<CommandOutcome> =>
    runCommand("apt-get", ["-q", ...options, ...args], { timeoutMs, signal, cwd: workDir });

  for (const step of [["update"], ["download", "nats-server"]]) {
    const outcome = await apt(step);
    if (!succeeded(outcome)) {
      return { kind: "unavailable", reason: `${suite}: apt-get ${step[0] ?? ""} ${lastWord(outcome)}` };
    }
  }
  const name = (await readdir(workDir)).find((entry) => entry.endsWith(".deb"));
  if (name === undefined) return { kind: "unavailable", reason: `${suite}: no package came` };
  const out = join(workDir, "out");
  const unpacked = await runCommand("dpkg", ["-x", join(workDir, name), out], {
    timeoutMs: UNPACK_TIMEOUT_MS,
    signal,
  });
  if (!succeeded(unpacked)) {
    return { kind: "unavailable", reason: `${suite}: dpkg -x ${lastWord(unpacked)}` };
  }
  return { kind: "fetched", binary: join(out, "usr", "sbin", "nats-server") };
}

const succeeded = (outcome: CommandOutcome): boolean => outcome.kind === "exited" && outcome.code === 0;

function lastWord(outcome: CommandOutcome): string {
  if (outcome.kind === "failed") return `failed: ${outcome.reason}`;
  const line = outcome.stderr
    .trim()
    .split("\n")
    .findLast((text) => text.startsWith("E:"));
  return `ended with ${outcome.code}${line === undefined ? "" : `: ${line}`}`;
}
