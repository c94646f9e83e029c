import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The command as a program file. */
export const HOLDFAST_BIN = join(import.meta.dirname, "../../apps/cli/bin/holdfast.mjs");
const living = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

export interface CommandOptions {
  /** HOLDFAST_* variables; nothing else of this process is passed on but what a program needs to run at all. */
  readonly env: Readonly<Record<string, string>>;
  /** Run as another user of the machine; only root can. */
  readonly uid?: number;
}

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Last line of standard output, parsed; undefined when it is no JSON. */
  readonly json: unknown;
}

/** A `holdfast` command that runs, started as `npm start` and `npx holdfast` do. */
export class HoldfastCommand {
  readonly pid: number;
  readonly startedAtMs = performance.now();
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];
  readonly #said: { readonly line: string; readonly afterMs: number }[] = [];
  readonly #waiting = new Set<() => void>();

  constructor(args: readonly string[], { env, uid }: CommandOptions) {
    const child = spawn(process.execPath, [HOLDFAST_BIN, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
      ...(uid !== undefined && { uid, gid: uid }),
    });
    living.add(child);
    this.#child = child;
    this.pid = child.pid ?? -1;
    createInterface({ input: child.stdout }).on("line", (line) => {
      this.#lines.push(line);
      for (const wake of this.#waiting) wake();
    });
    createInterface({ input: child.stderr }).on("line", (line) => {
      this.#said.push({ line, afterMs: Math.round(performance.now() - this.startedAtMs) });
    });
    this.exited = new Promise((resolve) => {
      child.once("close", (code) => {
        living.delete(child);
        resolve(code);
        for (const wake of this.#waiting) wake();
      });
    });
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get stderr(): string {
    return this.#said.map(({ line }) => line).join("\n");
  }

  /** How long after the start it first said something that fits, ms. */
  saidAfterMs(pattern: RegExp): number | undefined {
    return this.#said.find(({ line }) => pattern.test(line))?.afterMs;
  }

  /** Waits for its first line on standard output, parsed. @throws Error with what it said when it ended without one, or took longer than `timeoutMs` */
  async firstResult(timeoutMs: number): Promise<unknown> {
    const line = await new Promise<string | undefined>((resolve) => {
      const timer = setTimeout(() => done(), timeoutMs);
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(this.#lines[0]);
      };
      const look = (): void => {
        if (this.#lines.length > 0 || !this.isRunning) done();
      };
      this.#waiting.add(look);
      look();
    });
    if (line !== undefined) return JSON.parse(line);
    throw new Error(`No result within ${timeoutMs} ms.\n${this.stderr}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Waits until it ended; kills it when that takes longer than `timeoutMs`. */
  async result(timeoutMs: number): Promise<CommandResult> {
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), timeoutMs);
    const code = await this.exited;
    clearTimeout(timer);
    return { code, stdout: this.#lines.join("\n"), stderr: this.stderr, json: parsed(this.#lines.at(-1)) };
  }
}

/** Runs a command to its end. */
export const runCommand = (
  args: readonly string[],
  options: CommandOptions,
  timeoutMs = 60_000,
): Promise<CommandResult> => new HoldfastCommand(args, options).result(timeoutMs);

function parsed(line: string | undefined): unknown {
  try {
    return line === undefined ? undefined : JSON.parse(line);
  } catch {
    return undefined;
  }
}
