import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RunnerJournal, SlotId, type RunnerEnvelope } from "@holdfast/runner";
import { afterEach, beforeEach, expect, test } from "vitest";
import { EngineProcess } from "./engine-process.ts";

let folder: string;
let journal: RunnerJournal;
const contract = { engine: "sim", options: [], permissionModes: ["ask"] };
const prepare = {
  protocol: "p",
  token: "t",
  requirements: { engine: "sim", options: [], permissionMode: "ask" },
  op: "prepare" as const,
  slotId: SlotId.parse("s1"),
  options: {},
};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-engine-"));
  journal = await RunnerJournal.open({ folder, maxBytes: 8192, threshold: 1, drawToken: () => "journaljournal01" });
  await journal.bind("c1");
});
afterEach(async () => {
  await journal.close();
  await rm(folder, { recursive: true, force: true });
});

/** An engine that says `lines` and then does what `then` says. */
const engineSaying = (lines: readonly object[], then = ""): EngineProcess =>
  new EngineProcess({
    command: [process.execPath, "-e", `${JSON.stringify(lines)}.map((l) => console.log(JSON.stringify(l))); ${then}`],
    contract,
    journal,
  });

/** Everything in the journal up to its first error. */
async function untilError(): Promise<readonly RunnerEnvelope[]> {
  const envelopes: RunnerEnvelope[] = [];
  const end = new AbortController();
  const envelope = (each: RunnerEnvelope): void => {
    envelopes.push(each);
    if (each.op === "error") end.abort();
  };
  await journal.follow({ seq: 0 }, { gap: () => undefined, envelope }, end.signal);
  return envelopes;
}

const status = { op: "status", state: "busy" };
const result = { op: "result", messageType: "Result", message: {}, storeSeq: 1 };

test("what it says is in the journal in order, and its end too", async () => {
  await engineSaying([{ op: "ready" }, status, result]).start(prepare);
  expect(await untilError()).toMatchObject([status, result, { op: "error", code: "engine-ended" }]);
});

test("a line that is no envelope ends it, and what it said before stays", async () => {
  await engineSaying([{ op: "ready" }, status, { op: "stauts" }], "setInterval(() => {}, 1000)").start(prepare);
  expect(await untilError()).toMatchObject([status, { op: "error", code: "engine-failed" }]);
});

test("a turn that fills the journal ends with an error, for which there is room", async () => {
  const turn = Array.from({ length: 200 }, () => ({ op: "event", messageType: "Delta", message: "x".repeat(100) }));
  await engineSaying([{ op: "ready" }, ...turn], "setInterval(() => {}, 1000)").start(prepare);
  const envelopes = await untilError();
  expect(envelopes.at(-1)).toMatchObject({ code: "engine-failed", message: expect.stringContaining("full") });
});

test("turns whose results are stored go on for ever in a small journal", async () => {
  const turn = [...Array.from({ length: 10 }, () => status), result, { op: "stored", storeSeq: 1, flushed: true }];
  await engineSaying([{ op: "ready" }, ...Array.from({ length: 30 }, () => turn).flat()]).start(prepare);
  expect((await untilError()).at(-1)).toMatchObject({ code: "engine-ended", seq: 331 });
});

test.each([
  ["is not there", ["./no-such-engine"]],
  ["ends at once", [process.execPath, "-e", ""]],
  ["says something else first", [process.execPath, "-e", "console.log('hello'); setInterval(() => {}, 1000)"]],
])("a program that %s is not started", async (_title, command) => {
  const engine = new EngineProcess({ command, contract, journal });
  await expect(engine.start(prepare)).rejects.toMatchObject({ code: "HF-9001" });
  await expect(engine.activate("c1", undefined)).rejects.toMatchObject({ code: "HF-9001" });
  expect(journal.lastSeq).toBe(0);
});
