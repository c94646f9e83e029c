import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { isMainThread } from "node:worker_threads";
import { z } from "zod";
import { waitUntil } from "./wait-until.ts";

export interface StartedProcess {
  readonly pid: number;
  readonly child: ChildProcess;
  /** First JSON line on standard output. */
  readonly hello: Record<string, unknown>;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** What it wrote to standard error so far. */
  log(): string;
  /** Every line it wrote to standard output after the first one. */
  lines(): readonly string[];
  /** Writes one JSON line to its standard input. */
  tell(command: unknown): void;
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** SIGSTOP; resolves when the kernel has stopped it. */
  freeze(): Promise<void>;
  /** Waits until it is stopped, by whoever. */
  frozen(timeoutMs?: number): Promise<void>;
  /** SIGCONT. */
  thaw(): void;
}

const living = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

/** Of util-linux. */
const SETPRIV = "setpriv";

/**
 * A stopped process does not notice that its parent is gone, so the kernel has to end it (Linux with setpriv of util-linux). The signal is tied
 * to the thread that starts the child, hence only from the main one.
 */
let canTie: boolean | undefined;
function tied(file: string, args: readonly string[]): readonly [string, readonly string[]] {
  canTie ??= isMainThread && spawnSync(SETPRIV, ["--pdeathsig", "KILL", "--", "true"]).status === 0;
  const program = [process.execPath, file, ...args];
  if (!canTie) return [process.execPath, program.slice(1)];
  // A parent that died before the signal was armed is never noticed by it, hence the look at PPID afterwards.
  const script = '[ "$PPID" = "$0" ] || exit 1; exec "$@"';
  return [SETPRIV, ["--pdeathsig", "KILL", "--", "sh", "-c", script, String(process.pid), ...program]];
}

/** Starts a TypeScript program and waits for its first line on standard output, a JSON object. */
export async function startProcess(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<StartedProcess> {
  const [command, given] = tied(file, args);
  const child = spawn(command, given, {
    stdio: ["pipe", "pipe", "pipe"],
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
  });
  living.add(child);
  child.stdin.on("error", () => undefined); // it has ended, and says so itself
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (log += chunk));
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("exit", (code, signal) => {
      living.delete(child);
      resolve({ code, signal });
    });
  });
  const lines: string[] = [];
  const first = await Promise.race([
    new Promise<string>((resolve) => {
      let seen = 0;
      createInterface({ input: child.stdout }).on("line", (line) => {
        seen += 1;
        if (seen === 1) resolve(line);
        else lines.push(line);
      });
    }),
    exited.then(({ code, signal }) => Promise.reject(new Error(`${file} ended (${code ?? signal}):\n${log}`))),
  ]);
  const pid = child.pid ?? -1;
  const frozen = (timeoutMs = 60_000): Promise<void> =>
    waitUntil(`process ${pid} is stopped`, () => isStopped(pid), {
      timeoutMs,
      tickMs: 5,
      dump: () => log.slice(-4000),
    }).then(() => undefined);
  return {
    pid,
    child,
    hello: z.record(z.string(), z.unknown()).parse(JSON.parse(first)),
    exited,
    log: () => log,
    lines: () => lines,
    tell: (command) => void child.stdin.write(`${JSON.stringify(command)}\n`),
    kill: async (signal = "SIGKILL") => {
      child.kill(signal);
      await exited;
    },
    freeze: () => {
      child.kill("SIGSTOP");
      return frozen();
    },
    frozen,
    thaw: () => void child.kill("SIGCONT"),
  };
}

/** Whether the kernel has stopped a process: it needs /proc. */
function isStopped(pid: number): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T"); // the name before it may hold anything
}
