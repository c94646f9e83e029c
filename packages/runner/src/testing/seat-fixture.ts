import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FactStore } from "../host/claim-fact.ts";
import { RunnerJournal } from "../journal/runner-journal.ts";
import { RunnerSeat, type Engine } from "../seat/runner-seat.ts";
import type { RunnerFact } from "../state/fact-claim.ts";
import { RUNNER_PROTOCOL } from "../wire/contract.ts";
import { RunnerFrame } from "../wire/frame.ts";
import type { OpeningOf } from "../wire/opening.ts";
import { connectionPair } from "./connection-pair.ts";

export const TOKEN = "host-activation-token";
const COMMON = {
  protocol: RUNNER_PROTOCOL,
  token: TOKEN,
  requirements: { engine: "sim", options: [], permissionMode: "ask" },
};
export const PREPARE = { ...COMMON, op: "prepare", slotId: "s1", options: {} } as const;
export const ACTIVATE = { ...COMMON, op: "activate", slotId: "s1", conversation: "c1" } as const;

type Reading = Omit<OpeningOf<"attach"> | OpeningOf<"observe">, "cursor">;
export const readingAs = (epoch: number, host = "node-a:00000000", op: Reading["op"] = "attach"): Reading => ({
  ...COMMON,
  op,
  conversation: "c1",
  speaker: { epoch, host },
});

/** A runner over a real journal; its engine only notes what it was asked. */
export interface SeatFixture {
  readonly seat: RunnerSeat;
  readonly journal: RunnerJournal;
  readonly asked: readonly unknown[];
  readonly tokenFile: string;
  /** Opens a connection, sends one frame, and returns what came until the runner closed. */
  ask(frame: object): Promise<readonly RunnerFrame[]>;
  /** The same runner after a crash: another process over the same folder. */
  crash(): Promise<SeatFixture>;
  remove(): Promise<void>;
}

export async function seatFixture(
  options: {
    readonly activationFails?: boolean;
    readonly folder?: string;
    /** Journals of the same folder that were left open by a crash. */
    readonly left?: readonly RunnerJournal[];
  } = {},
): Promise<SeatFixture> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "holdfast-seat-")));
  const tokenFile = join(folder, "token");
  await writeFile(tokenFile, `${TOKEN}\n`);
  const asked: unknown[] = [];
  const engine: Engine = {
    contract: { engine: "sim", options: ["model"], permissionModes: ["ask"] },
    start: async ({ slotId }) => void asked.push(["start", slotId]),
    activate: async (conversation, store) => {
      asked.push(["activate", conversation, store]);
      if (options.activationFails === true) throw new Error("the engine did not answer");
    },
  };
  const journal = await RunnerJournal.open({ folder, threshold: 1, drawToken: () => "journaljournal01" });
  const seat = await RunnerSeat.open({ journal, engine, tokenFile });
  return {
    seat,
    journal,
    asked,
    tokenFile,
    ask: async (frame) => {
      const [host, runner] = connectionPair();
      await host.send(frame);
      await seat.serve(runner);
      const frames: RunnerFrame[] = [];
      for await (const value of host.frames) frames.push(RunnerFrame.parse(value));
      return frames;
    },
    crash: () => seatFixture({ folder, left: [...(options.left ?? []), journal] }),
    remove: async () => {
      for (const each of [journal, ...(options.left ?? [])]) await each.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A store of facts in memory, as strict as one of a broker. */
export class MemoryFacts implements FactStore {
  readonly rows = new Map<string, RunnerFact>();
  /** Called before a fact is stored and after it; what it throws is the host's death in that moment. */
  at: (moment: "before" | "after", fact: RunnerFact) => void = () => undefined;

  create: FactStore["create"] = async (key, fact) => {
    this.at("before", fact);
    const found = this.rows.get(key);
    if (found !== undefined) return { kind: "exists", payload: found.payload };
    this.rows.set(key, structuredClone(fact));
    this.at("after", fact);
    return { kind: "created" };
  };
}
