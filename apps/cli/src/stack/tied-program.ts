import { spawn, type ChildProcess } from "node:child_process";
import { openSync } from "node:fs";
import { createInterface } from "node:readline";
import { RuntimeFault } from "@holdfast/protocol";

/** One of our programs as a child: it ends when our end of its standard input closes, also when we are killed. */
export interface TiedProgram {
  readonly name: string;
  readonly pid: number;
  /** First line it printed, a JSON object. */
  readonly hello: Readonly<Record<string, unknown>>;
  readonly exited: Promise<void>;
  readonly isRunning: () => boolean;
  stop(signal: NodeJS.Signals, timeoutMs: number): Promise<void>;
}

export interface TiedProgramOptions {
  readonly name: string;
  readonly file: string;
  readonly args?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Gets everything it writes to standard error. */
  readonly logFile: string;
  readonly timeoutMs?: number;
}

/** @throws RuntimeFault HF-8003 when it ends or stays silent instead of saying hello */
export async function startTiedProgram(options: TiedProgramOptions): Promise<TiedProgram> {
  const log = openSync(options.logFile, "a", 0o600);
  const child = spawn(process.execPath, [options.file, ...(options.args ?? [])], {
    stdio: ["pipe", "pipe", log],
    env: { ...options.env },
    // A Ctrl-C in the terminal is for us; we tell our programs ourselves, in order.
    detached: true,
  });
  let running = true;
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => {
      running = false;
      resolve();
    });
  });
  const hello = await firstLine(child, options, exited);
  return {
    name: options.name,
    pid: child.pid ?? -1,
    hello,
    exited,
    isRunning: () => running,
    stop: async (signal, timeoutMs) => {
      if (!running) return;
      child.kill(signal);
      const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
      await exited;
      clearTimeout(timer);
    },
  };
}

function firstLine(
  child: ChildProcess,
  options: TiedProgramOptions,
  exited: Promise<void>,
): Promise<Readonly<Record<string, unknown>>> {
  const { stdout } = child;
  return new Promise((resolve, reject) => {
    const fail = (why: string): void =>
      reject(
        new RuntimeFault("HF-8003", `${options.name}: ${why}. Its log is ${options.logFile}.`, {
          facts: { program: options.name },
        }),
      );
    const timer = setTimeout(() => fail("did not start in time"), options.timeoutMs ?? 30_000);
    void exited.then(() => fail("ended while starting"));
    if (stdout === null) return;
    createInterface({ input: stdout }).once("line", (line) => {
      clearTimeout(timer);
      const value: unknown = JSON.parse(line);
      if (typeof value === "object" && value !== null) resolve({ ...value });
      else fail("did not say where it is");
    });
  });
}
