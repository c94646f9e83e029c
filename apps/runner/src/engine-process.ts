// EngineProcess — an engine as a program that reads and writes lines of JSON.
// Owns: the program.  Does not own: the journal, what the lines mean to a host.
//   E1 one-at-a-time  its next line is read after the one before is on disk: a program that says much is held up by its pipe, not kept in memory
//   E2 never-silent   its end, a line that is no envelope and a full journal that only a result could empty each leave an error envelope

import { spawn, type ChildProcessByStdio } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { RuntimeFault } from "@holdfast/protocol";
import { EnvelopeDraft, StoreSeq, type Engine, type EngineContract, type RunnerJournal } from "@holdfast/runner";
import { z } from "zod";

const START_TIMEOUT_MS = 30_000;
const FULL_RETRY_MS = 250;

/** What it says besides envelopes: that it runs, and how far the store of its transcript is. */
const EngineWord = z.discriminatedUnion("op", [
  z.strictObject({ op: z.literal("ready") }),
  z.strictObject({ op: z.literal("stored"), storeSeq: StoreSeq, flushed: z.boolean() }),
]);

type Program = ChildProcessByStdio<Writable, Readable, null>;

/** See the invariants at the top of the file. */
export class EngineProcess implements Engine {
  readonly contract: EngineContract;
  readonly #command: readonly string[];
  readonly #journal: RunnerJournal;
  #program: Program | undefined;
  #lastResult = 0;
  /** Whether the store has everything up to the last result. */
  #flushed = false;

  constructor(options: {
    readonly command: readonly string[];
    readonly contract: EngineContract;
    readonly journal: RunnerJournal;
  }) {
    this.contract = options.contract;
    this.#command = options.command;
    this.#journal = options.journal;
  }

  /** @throws RuntimeFault HF-9001 when the program did not say `ready` in time; it is killed then */
  readonly start: Engine["start"] = async (opening) => {
    const [file = "", ...args] = this.#command;
    const program: Program = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: program.stdout, crlfDelay: Infinity })[Symbol.asyncIterator]();
    const gone = new Promise<string>((resolve) => {
      program.once("error", ({ message }) => resolve(message));
      program.once("close", (code, signal) => resolve(`it ended with ${signal ?? code}`));
    });
    // Writing to a program that has ended is an error of the pipe; its end is told by `gone`.
    program.stdin.on("error", () => undefined);
    say(program, { op: "start", slotId: opening.slotId, options: opening.options, resume: opening.resume ?? null });
    const problem = await Promise.race([
      lines.next().then(({ value }) => (isReady(value) ? undefined : "its first line was not ready")),
      gone,
      delay(START_TIMEOUT_MS, `it was silent for ${START_TIMEOUT_MS} ms`, { ref: false }),
    ]);
    if (problem !== undefined) {
      program.kill("SIGKILL");
      throw new RuntimeFault(
        "HF-9001",
        `Engine ${file}: it did not start: ${problem}. Correct the command, then prepare again.`,
      );
    }
    this.#program = program;
    void this.#pump(program, lines, gone);
  };

  readonly activate: Engine["activate"] = async (conversation, store) => {
    if (this.#program === undefined)
      throw new RuntimeFault("HF-9001", "Engine: it was not started. Prepare the slot first.");
    say(this.#program, { op: "activate", conversation, store: store ?? null });
  };

  stop(): void {
    this.#program?.kill("SIGKILL");
  }

  async #pump(program: Program, lines: AsyncIterator<string>, gone: Promise<string>): Promise<void> {
    try {
      for (let line = await lines.next(); line.done !== true; line = await lines.next()) await this.#take(line.value); // E1
      await this.#report("engine-ended", await gone); // E2
    } catch (error) {
      program.kill("SIGKILL");
      await this.#report("engine-failed", error instanceof Error ? error.message : String(error)).catch(
        () => undefined,
      );
    }
  }

  async #take(line: string): Promise<void> {
    const value: unknown = JSON.parse(line);
    const word = EngineWord.safeParse(value);
    if (!word.success) return this.#append(EnvelopeDraft.parse(value));
    if (word.data.op === "ready") return;
    this.#journal.confirmStore(word.data.storeSeq);
    this.#flushed = word.data.flushed;
    await this.#checkpoint();
  }

  async #append(draft: EnvelopeDraft): Promise<void> {
    for (;;) {
      const outcome = await this.#journal.append(draft);
      if (outcome.kind === "appended") {
        if (draft.op !== "result") return;
        this.#lastResult = outcome.envelopes[0]?.seq ?? this.#lastResult;
        this.#flushed = false;
        return;
      }
      if (outcome.waitsFor === "result") throw new Error("the journal is full, and inside a turn nothing can go");
      await delay(FULL_RETRY_MS);
      await this.#checkpoint();
    }
  }

  async #checkpoint(): Promise<void> {
    if (this.#lastResult > 0) await this.#journal.checkpoint(this.#lastResult, { storeFlushed: this.#flushed });
  }

  async #report(code: string, message: string): Promise<void> {
    if (this.#journal.conversation !== undefined) await this.#journal.append({ op: "error", code, message });
  }
}

const say = (program: Program, line: object): void => void program.stdin.write(`${JSON.stringify(line)}\n`);

function isReady(line: unknown): boolean {
  try {
    return typeof line === "string" && EngineWord.parse(JSON.parse(line)).op === "ready";
  } catch {
    return false;
  }
}
