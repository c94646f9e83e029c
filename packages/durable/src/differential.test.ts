import { fork } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { roundTrip, toText } from "./testing/round-trip.ts";
import { runScenario } from "./testing/run-scenario.ts";
import { SCENARIOS, type Scenario } from "./testing/scenarios.ts";
import { dbOf, emptyDb, type ToyDb } from "./testing/toy-db.ts";
import type { CrashPoint, ToyHost } from "./testing/toy-host.ts";
import { oracle, viewOfRoot } from "./testing/views.ts";
import type { WorkerReply, WorkerRequest } from "./testing/worker-message.ts";

/** Redelivers, backwards and then in order, every message that actors and timers ever sent. */
async function replayHistory(host: ToyHost): Promise<void> {
  host.db.inbox.push(...host.db.history.toReversed(), ...host.db.history);
  await host.drain();
}

// What is told to a callback between the commit and its process's death is lost: it lives in the process.
const isVolatile = ({ name }: Scenario): boolean => name === "cb";
const lasting = SCENARIOS.filter((scenario) => !isVolatile(scenario));

describe("an ordinary machine behaves as XState's own actor", () => {
  test.each(SCENARIOS)("$name: in one process, on frozen records", async (scenario) => {
    const { views, db } = await runScenario(scenario);
    expect(views).toEqual(await oracle(scenario));
    expect(db.drops).toEqual([]);
    expect(db.revisions, "one journal entry per revision").toEqual([...new Set(db.revisions)]);
  });

  test.each(SCENARIOS)("$name: when every step starts from bytes", async (scenario) => {
    const { views } = await runScenario(scenario, { cold: true });
    expect(views).toEqual(await oracle(scenario));
  });

  test.each(lasting)("$name: when the process dies after every commit", async (scenario) => {
    const { views, crashes } = await runScenario(scenario, { cold: true, crashAt: "after-commit" });
    expect(views).toEqual(await oracle(scenario));
    expect(crashes).toBeGreaterThan(0);
  });

  test.each(SCENARIOS)("$name: when the process dies in the middle of every dispatch", async (scenario) => {
    const { views } = await runScenario(scenario, { cold: true, crashAt: "mid-dispatch" });
    expect(views).toEqual(await oracle(scenario));
  });

  test.each(SCENARIOS)("$name: when every message is delivered twice", async (scenario) => {
    const { views } = await runScenario(scenario, { copies: 2 });
    expect(views).toEqual(await oracle(scenario));
  });

  test.each(SCENARIOS)("$name: when all old messages and timers come again after each event", async (scenario) => {
    const { views } = await runScenario(scenario, { disturb: replayHistory });
    expect(views).toEqual(await oracle(scenario));
  });

  test.each(lasting)("$name: when messages overtake each other and the process keeps dying", async (scenario) => {
    const options = { cold: true, swaps: true, copies: 2, crashAt: "after-commit", disturb: replayHistory } as const;
    const { views } = await runScenario(scenario, options);
    expect(views).toEqual(await oracle(scenario));
  });
});

test("a callback that was told something before the process died goes on with what comes next", async () => {
  const cb = SCENARIOS.find(isVolatile);
  if (cb === undefined) throw new Error("no such scenario");
  const { views } = await runScenario(cb, { cold: true, crashAt: "after-commit" });
  expect(views.at(-1)).toContain('"value":"off"');
});

describe("a new process for every macrostep", () => {
  const isFull = process.env["HOLDFAST_FULL"] === "1";
  const chosen = isFull ? SCENARIOS : SCENARIOS.filter(({ name }) => ["acts", "par", "errors"].includes(name));
  const modes: readonly (CrashPoint | undefined)[] = isFull ? [undefined, "after-commit", "mid-dispatch"] : [undefined];

  for (const crashAt of modes) {
    const fitting = crashAt === "after-commit" ? chosen.filter((scenario) => !isVolatile(scenario)) : chosen;
    test.each(fitting)(
      `$name${crashAt === undefined ? "" : `, dying ${crashAt}`}`,
      { timeout: 120_000 },
      async (scenario) => {
        expect(await inNewProcesses(scenario, crashAt)).toEqual(await oracle(scenario));
      },
    );
  }
});

async function inNewProcesses(
  { name, input, operations }: Scenario,
  crashAt: CrashPoint | undefined,
): Promise<readonly string[]> {
  let db: ToyDb = emptyDb();
  const run = async (task: WorkerRequest["task"]): Promise<boolean> => {
    const dies = crashAt === undefined || task.kind === "settle" ? {} : { crashAt };
    const reply = await inWorker({ db: toText(db), task, ...dies });
    db = dbOf(reply.db);
    return reply.moved;
  };
  const hasTask = (): boolean => Object.values(db.records).some(hasVolatileChild);
  const isUnsent = (): boolean => Object.values(db.records).some(({ outbox }) => outbox.length > 0);
  const drain = async (): Promise<void> => {
    do {
      while (db.inbox.length > 0 || isUnsent()) await run({ kind: "step" });
    } while (hasTask() && (await run({ kind: "settle" })));
  };
  await run({ kind: "create", type: name, input });
  await drain();
  const views: string[] = [];
  for (const operation of operations) {
    if ("send" in operation) await run({ kind: "send", type: name, event: operation.send });
    else {
      const endMs = db.nowMs + operation.advanceMs;
      while (await run({ kind: "fire", endMs })) await drain();
    }
    await drain();
    views.push(viewOfRoot(name, roundTrip(db)));
  }
  return views;
}

const hasVolatileChild = ({ snapshot }: ToyDb["records"][string]): boolean =>
  Object.values(snapshot.children).some(({ kind, status }) => kind !== "actor" && status === "active");

function inWorker(request: WorkerRequest): Promise<WorkerReply> {
  const worker = fork(new URL("./testing/scenario-worker.ts", import.meta.url), {
    execPath: process.execPath,
    execArgv: [],
    env: { ...process.env, NODE_OPTIONS: "", NODE_COMPILE_CACHE: join(tmpdir(), "holdfast-durable-workers") },
  });
  return new Promise((resolve, reject) => {
    worker.once("message", (reply: WorkerReply) => resolve(reply));
    worker.once("error", reject);
    worker.once("exit", (code) => reject(new Error(`the worker ended with code ${code} before it answered`)));
    worker.send(request);
  });
}
