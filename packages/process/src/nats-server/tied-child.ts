// Tied child — a process that cannot outlive the one that started it, not even when that one is killed with SIGKILL.
// Owns: starting it, its exit. Does not own: what it does, its restart.
//   T1 no-orphan     when this process is gone, the kernel (pdeathsig) or the guard (channel) kills the child
//   T2 own-session   a Ctrl-C in the terminal does not reach the child: nodes still need it while they drain
//   T3 true-pid      `pid` and `kill` mean the program itself, never something around it
import { spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";
import { runCommand } from "./run-command.ts";

export interface ChildExit {
  readonly code: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
}

export interface TiedChild {
  readonly pid: number;
  readonly exited: Promise<ChildExit>;
  /** Nothing happens when it has exited. */
  kill(signal: NodeJS.Signals): void;
}

/** `pdeathsig`: the kernel kills it (Linux with setpriv of util-linux). `guard`: a small process of our own does, on any system. */
export type TieMethod = "pdeathsig" | "guard";

export interface TiedChildOptions {
  /** Descriptor for everything it prints. */
  readonly outputFd: number;
  /** Default: `pdeathsig` where it works. */
  readonly method?: TieMethod | undefined;
}

/** Of util-linux. */
const SETPRIV = "setpriv";
const PROBE_TIMEOUT_MS = 5000;
const GUARD = fileURLToPath(new URL("tied-child-guard.ts", import.meta.url));

/**
 * Starts a program that dies with this process.
 *
 * @throws Error of spawn when the program, setpriv or the guard cannot be run
 */
export async function spawnTied(file: string, args: readonly string[], options: TiedChildOptions): Promise<TiedChild> {
  const method = options.method ?? (await bestMethod());
  return method === "pdeathsig"
    ? spawnWithDeathSignal(file, args, options.outputFd)
    : spawnGuarded(file, args, options.outputFd);
}

async function bestMethod(): Promise<TieMethod> {
  // The signal is tied to the *thread* that starts the child; a worker thread may end long before the process does.
  if (process.platform !== "linux" || !isMainThread) return "guard";
  // Other makes of setpriv (busybox) have no such option, so it is tried, not looked for.
  const outcome = await runCommand(SETPRIV, ["--pdeathsig", "KILL", "--", "true"], {
    timeoutMs: PROBE_TIMEOUT_MS,
  });
  return outcome.kind === "exited" && outcome.code === 0 ? "pdeathsig" : "guard";
}

async function spawnWithDeathSignal(file: string, args: readonly string[], outputFd: number): Promise<TiedChild> {
  // A parent that died before the signal was armed is never noticed by it, hence the look at PPID afterwards.
  const script = '[ "$PPID" = "$0" ] || exit 1; exec "$@"';
  const child = spawn(SETPRIV, ["--pdeathsig", "KILL", "--", "sh", "-c", script, String(process.pid), file, ...args], {
    detached: true,
    stdio: ["ignore", outputFd, outputFd],
  });
  await started(child);
  const exited = exitOf(child);
  return {
    pid: child.pid ?? 0,
    exited,
    kill: (signal) => void child.kill(signal),
  };
}

async function spawnGuarded(file: string, args: readonly string[], outputFd: number): Promise<TiedChild> {
  const guard = spawn(process.execPath, [GUARD, file, ...args], {
    detached: true,
    stdio: ["ignore", outputFd, outputFd, "ipc"],
  });
  await started(guard);
  const exited = exitOf(guard);
  let pid = 0;
  let childGone = false;
  const running = new Promise<void>((resolve) => {
    guard.on("message", (message) => {
      if (typeof message === "number") pid = message;
      else childGone = true;
      resolve();
    });
    guard.once("exit", () => resolve());
  });
  await running;
  if (pid === 0) throw new Error(`${file} cannot be run`);
  return {
    pid,
    exited: exited.then((exit) => {
      // Somebody killed the guard alone: then nobody watches the child, so it goes too (T1).
      if (!childGone) killQuietly(pid, "SIGKILL");
      return exit;
    }),
    kill: (signal) => {
      if (!childGone && guard.exitCode === null && guard.signalCode === null) {
        killQuietly(pid, signal);
      }
    },
  };
}

function killQuietly(pid: number, signal: NodeJS.Signals): void {
  if (pid === 0) return;
  try {
    process.kill(pid, signal);
  } catch {
    // It exited by itself just now.
  }
}

function started(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
}

function exitOf(child: ChildProcess): Promise<ChildExit> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => {
      resolve({ code: code ?? undefined, signal: signal ?? undefined });
    });
  });
}
