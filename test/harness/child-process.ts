import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { z } from "zod";

export interface StartedProcess {
  readonly pid: number;
  readonly child: ChildProcess;
  /** First JSON line on standard output. */
  readonly hello: Record<string, unknown>;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** What it wrote to standard error so far. */
  log(): string;
  kill(signal?: NodeJS.Signals): Promise<void>;
}

const living = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

/** Starts a TypeScript program and waits for its first line on standard output, a JSON object. */
export async function startProcess(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<StartedProcess> {
  const child = spawn(process.execPath, [file, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
  });
  living.add(child);
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (log += chunk));
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("exit", (code, signal) => {
      living.delete(child);
      resolve({ code, signal });
    });
  });
  const line = new Promise<string>((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
  const first = await Promise.race([
    line,
    exited.then(({ code, signal }) => Promise.reject(new Error(`${file} ended (${code ?? signal}):\n${log}`))),
  ]);
  return {
    pid: child.pid ?? -1,
    child,
    hello: z.record(z.string(), z.unknown()).parse(JSON.parse(first)),
    exited,
    log: () => log,
    kill: async (signal = "SIGKILL") => {
      child.kill(signal);
      await exited;
    },
  };
}
