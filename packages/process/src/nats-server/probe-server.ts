import { runCommand } from "./run-command.ts";
import { isRecentEnough, tryServerVersion } from "./server-version.ts";

export type ServerProbe =
  | { readonly kind: "usable"; readonly version: string }
  | { readonly kind: "too-old"; readonly version: string }
  | { readonly kind: "unusable"; readonly reason: string };

const PROBE_TIMEOUT_MS = 10_000;

/** Asks a nats-server binary for its version. @throws the reason of `signal` when it is aborted */
export async function probeServer(file: string, signal?: AbortSignal): Promise<ServerProbe> {
  const outcome = await runCommand(file, ["--version"], { timeoutMs: PROBE_TIMEOUT_MS, signal });
  if (outcome.kind === "failed") return { kind: "unusable", reason: outcome.reason };
  const version = tryServerVersion(outcome.stdout);
  if (outcome.code !== 0 || version === undefined) {
    return { kind: "unusable", reason: `${file} --version ended with ${outcome.code} and named no version` };
  }
  return { kind: isRecentEnough(version) ? "usable" : "too-old", version };
}
