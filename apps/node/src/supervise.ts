import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  Incarnation,
  nodeOf,
  PLANNED_EXIT_CODE,
  proofOf,
  RuntimeFault,
  toPlainFault,
  type ExitReport,
} from "@holdfast/protocol";

export interface SuperviseOptions {
  /** Environment of the node; without what only its supervisor may know. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly randomHex: (bytes: number) => string;
  /** Stores how a process has ended. Resolves with the restart that is acknowledged by that, undefined when none was prepared. */
  readonly acknowledge: (report: ExitReport) => Promise<{ readonly state: string } | undefined>;
  /** One line about what happened, for whoever watches. */
  readonly say: (event: string, facts: Readonly<Record<string, unknown>>) => void;
  /** What the node prints. */
  readonly print: (line: string) => void;
}

const NODE = fileURLToPath(new URL("main.ts", import.meta.url));
/** Pause between tries of an acknowledgement that was not stored. */
const RETRY_MS = 1000;

/**
 * Runs an agent node, and runs it again when it ends for its planned restart.
 *
 * Owns: the process of the node, the secret that proves whose end it was. Does not own: what the node does, when it is restarted.
 *   V1 only what its own wait for the process has shown is acknowledged, before the next one is started
 *   V2 the node cannot outlive it, and never learns the secret
 *   V3 any exit code but PLANNED_EXIT_CODE ends it, with the same code
 *
 * @returns the exit code to end with
 */
export async function supervise(options: SuperviseOptions): Promise<number> {
  const { say } = options;
  for (;;) {
    const secret = options.randomHex(24);
    const startedAtMs = Date.now();
    const child = startNode(options, proofOf(secret));
    const hello = firstHello(child, options.print);
    const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
    process.on("SIGTERM", forward).on("SIGINT", forward);
    const { code, signal } = await exitOf(child);
    process.off("SIGTERM", forward).off("SIGINT", forward);
    const pid = child.pid ?? -1;
    say("supervised.ended", { pid, code, signal });
    if (code !== PLANNED_EXIT_CODE) return code ?? 1; // V3
    const incarnation = await hello;
    if (incarnation === undefined) continue;
    await acknowledged(options, {
      v: 1,
      node: nodeOf(incarnation),
      generation: { incarnation, pid, startedAtMs },
      exitCode: code,
      secret,
    });
  }
}

/** V2. */
function startNode({ env }: SuperviseOptions, exitProof: string): ChildProcess {
  return spawn(process.execPath, [NODE, "--tied"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...env, HOLDFAST_EXIT_PROOF: exitProof },
  });
}

function exitOf(child: ChildProcess): Promise<{ readonly code: number | null; readonly signal: string | null }> {
  return new Promise((resolve, reject) => {
    child.once("error", reject).once("exit", (code, signal) => resolve({ code, signal }));
  });
}

/** @returns undefined when it ended before it said which incarnation it is */
function firstHello(child: ChildProcess, print: (line: string) => void): Promise<Incarnation | undefined> {
  return new Promise((resolve) => {
    child.once("exit", () => resolve(undefined));
    if (child.stdout === null) return;
    createInterface({ input: child.stdout }).on("line", (line) => {
      print(line);
      const incarnation = tryHello(line);
      if (incarnation !== undefined) resolve(incarnation);
    });
  });
}

function tryHello(line: string): Incarnation | undefined {
  try {
    const said: unknown = JSON.parse(line);
    if (typeof said !== "object" || said === null || !("incarnation" in said)) return undefined;
    return Incarnation.safeParse(said.incarnation).data;
  } catch {
    return undefined; // not its first line
  }
}

/** V1. Until it is stored, or refused for good: without it the next process has nothing to show. */
async function acknowledged({ acknowledge, say }: SuperviseOptions, report: ExitReport): Promise<void> {
  for (;;) {
    try {
      const row = await acknowledge(report);
      say("supervised.acknowledged", { state: row?.state ?? "no restart was prepared" });
      return;
    } catch (error) {
      const { code, message } = toPlainFault(error, "HF-4001");
      say("supervised.not-acknowledged", { code, reason: message });
      if (error instanceof RuntimeFault && error.next !== "retry") return;
    }
    await delay(RETRY_MS);
  }
}
