import { spawn } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";

/** `failed`: it could not be started, or was stopped at its time limit. Output is the last 64 KiB of each stream. */
export type CommandOutcome =
  | {
      readonly kind: "exited";
      readonly code: number;
      readonly stdout: string;
      readonly stderr: string;
    }
  | { readonly kind: "failed"; readonly reason: string };

export interface CommandOptions {
  readonly timeoutMs: number;
  readonly cwd?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

const MAX_OUTPUT_CHARACTERS = 64 * 1024;
const BUSY_FILE_RETRIES = 20;
const BUSY_FILE_PAUSE_MS = 25;

/**
 * Runs a program without a shell and collects what it printed.
 *
 * @throws the reason of `signal` when it is aborted; the program is killed first
 */
export async function runCommand(
  file: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<CommandOutcome> {
  for (let attempt = 0; ; attempt++) {
    const outcome = await runOnce(file, args, options);
    // A file written a moment ago is "busy" while any other process of ours, just forked, still holds its descriptor.
    if (outcome !== "busy") return outcome;
    if (attempt === BUSY_FILE_RETRIES) {
      return { kind: "failed", reason: `${file} is still open for writing` };
    }
    await delay(BUSY_FILE_PAUSE_MS);
  }
}

function runOnce(file: string, args: readonly string[], options: CommandOptions): Promise<CommandOutcome | "busy"> {
  options.signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd: options.cwd, stdio: ["ignore", "pipe", "pipe"] });
    let [stdout, stderr] = ["", ""];
    let timedOut = false;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout = (stdout + text).slice(-MAX_OUTPUT_CHARACTERS);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-MAX_OUTPUT_CHARACTERS);
    });
    const onAbort = (): void => void child.kill("SIGKILL");
    options.signal?.addEventListener("abort", onAbort, { once: true });
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill("SIGKILL");
      // A grandchild may hold the pipes open; without this "close" would wait for it.
      child.stdout.destroy();
      child.stderr.destroy();
    }, options.timeoutMs);
    const finish = (): void => {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", onAbort);
    };
    child.once("error", (error: NodeJS.ErrnoException) => {
      finish();
      if (error.code === "ETXTBSY") resolve("busy");
      else resolve({ kind: "failed", reason: `${file} cannot be run (${error.code ?? error.message})` });
    });
    child.once("close", (code, signal) => {
      finish();
      if (options.signal?.aborted === true) reject(options.signal.reason);
      else if (timedOut) {
        resolve({ kind: "failed", reason: `${file} took longer than ${options.timeoutMs} ms` });
      } else if (code === null) {
        resolve({ kind: "failed", reason: `${file} was ended by ${signal ?? "a signal"}` });
      } else resolve({ kind: "exited", code, stdout, stderr });
    });
  });
}
