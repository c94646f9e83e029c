import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineAgent, withDelegates } from "@holdfast/agents";
import { provideNatsServer } from "@holdfast/process";
import { createClient, type Client } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { HoldfastCommand, runCommand } from "../scenarios/holdfast-command.ts";
import { ModelControl } from "../scenarios/model-control.ts";
import { canListProcesses, processesOf } from "../scenarios/processes.ts";
import { ResultLine } from "../scenarios/scenario.ts";
import { writeSeededDocuments } from "../scenarios/seeded-documents.ts";

const SEED = 11;
const DOCUMENTS = 2;
const KEY = "sk-planted-key-20bd";
const SECRET = "planted-prompt-9a4f";
const SURVEY = `Survey the documents in "documents".`;

const Refused = z.object({ error: z.looseObject({ code: z.string(), message: z.string() }) });
const Outcome = z.looseObject({ result: z.looseObject({ kind: z.string(), code: z.string().optional() }) });
const Waits = z.object({
  waits: z.array(z.looseObject({ id: z.string(), status: z.string(), options: z.array(z.string()).optional() })),
});
const Tasks = z.object({ tasks: z.array(z.looseObject({ id: z.string(), status: z.string(), agent: z.string() })) });
const Fleet = z.looseObject({
  nodes: z.array(z.looseObject({ name: z.string(), state: z.string(), partitions: z.number() })),
  unowned: z.array(z.string()),
});
const StackFile = z.looseObject({
  natsUrl: z.string(),
  namespace: z.string(),
  client: z.object({ user: z.string(), password: z.string(), inboxPrefix: z.string() }),
});

let place: string;
let env: Record<string, string>;
let model: StartedProcess;
let stack: HoldfastCommand;
let survey: ResultLine;
beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "holdfast-cli-"));
  await writeSeededDocuments(join(place, "documents"), DOCUMENTS, SEED);
  const { PATH, HOLDFAST_NATS_SERVER } = process.env;
  const cacheDir = join(import.meta.dirname, "../../.holdfast");
  const server = await provideNatsServer({ cacheDir, env: { PATH, HOLDFAST_NATS_SERVER } });
  model = await startProcess(fileURLToPath(import.meta.resolve("@holdfast/sim-model/main")), [], {
    SIM_MODEL_EXIT_WITH_STDIN: "1",
    SIM_MODEL_API_KEY: KEY,
  });
  env = {
    HOLDFAST_HOME: join(place, "home"),
    HOLDFAST_NATS_SERVER: server.path,
    HOLDFAST_MODEL_BASE_URL: `${String(model.hello["url"])}/v1`,
    HOLDFAST_MODEL_API_KEY: KEY,
    HOLDFAST_MODEL_CONNECT_MS: "300000",
    HOLDFAST_LOG_LEVEL: "debug",
  };
  stack = new HoldfastCommand(["demo", join(place, "documents"), "--stay", "--json"], { env });
  survey = ResultLine.parse(await stack.firstResult(100_000));
});
afterAll(async () => {
  stack.signal("SIGKILL");
  await stack.exited;
  await model.kill("SIGTERM");
  await rm(place, { recursive: true, force: true, maxRetries: 5 });
});

/** Runs a command with `--json` that succeeds. */
async function succeeds<T>(schema: z.ZodType<T>, ...args: readonly string[]): Promise<T> {
  const { code, json, stderr } = await runCommand([...args, "--json"], { env });
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: "" });
  return schema.parse(json);
}

/** Runs a command with `--json` that fails with a fault. */
async function fails(fault: string, ...args: readonly string[]): Promise<void> {
  const { code, json, stderr } = await runCommand([...args, "--json"], { env });
  expect({ args, code }).toEqual({ args, code: 1 });
  expect(Refused.parse(json).error.code).toBe(fault);
  expect(stderr).toMatch(new RegExp(`^${fault}: `));
}

/** Runs a command with `--json` that an actor refuses. */
async function isRefused(fault: string, ...args: readonly string[]): Promise<void> {
  const { code, json } = await runCommand([...args, "--json"], { env });
  const { kind, code: refusal } = Outcome.parse(json).result;
  expect({ args, code, kind, refusal }).toEqual({ args, code: 1, kind: "refused", refusal: fault });
}

const surveyId = (): string => String(survey["conversation"]);
const anything = z.looseObject({});
const conversationStatus = async (id: string): Promise<unknown> =>
  (await succeeds(z.looseObject({ status: z.looseObject({ status: z.string() }) }), "conversation", "show", id)).status
    .status;

describe("holdfast conversation", () => {
  test("the survey of the demo is listed, without the conversations of its tasks", async () => {
    expect(survey.pass).toBe(true);
    const { conversations } = await succeeds(
      z.looseObject({ conversations: z.array(anything) }),
      "conversation",
      "list",
    );
    expect(conversations).toEqual([expect.objectContaining({ id: surveyId(), status: "idle", agent: "surveyor" })]);
  });

  test("start, show, send: the transcript grows by what was said", async () => {
    const started = await succeeds(Outcome, "conversation", "start", SECRET, "--agent", "reader", "--id", "c1");
    expect(started).toMatchObject({ id: "c1", result: { kind: "applied" } });
    await waitUntil("c1 has answered", async () => (await conversationStatus("c1")) === "idle");
    const sent = await succeeds(Outcome, "conversation", "send", "c1", "Are you there?", "--message-id", "m1");
    expect(sent).toMatchObject({ id: "c1", messageId: "m1", result: { kind: "applied" } });
    await waitUntil("c1 has answered", async () => (await conversationStatus("c1")) === "idle");
    const { transcript } = await succeeds(
      z.looseObject({ transcript: z.array(anything) }),
      "conversation",
      "show",
      "c1",
    );
    expect(transcript).toMatchObject([
      { role: "user", messageId: "prompt", text: SECRET },
      { role: "assistant" },
      { role: "user", messageId: "m1", text: "Are you there?" },
      { role: "assistant" },
    ]);
  });

  test("the same id is the same conversation, the same message id the same message", async () => {
    const again = await succeeds(Outcome, "conversation", "start", SECRET, "--agent", "reader", "--id", "c1");
    expect(again.result.kind).toBe("ignored");
    await fails("HF-3012", "conversation", "start", "Another", "--agent", "reader", "--id", "c1");
    const first = await succeeds(Outcome, "conversation", "send", "c1", "Are you there?", "--message-id", "m1");
    expect(first.result.kind).toBe("applied");
    await fails("HF-3006", "conversation", "send", "c1", "Something else", "--message-id", "m1");
    const { transcript } = await succeeds(
      z.looseObject({ transcript: z.array(anything) }),
      "conversation",
      "show",
      "c1",
    );
    expect(transcript).toHaveLength(4);
  });

  test("ids that are none, or nobody's, are refused with a code", async () => {
    await fails("HF-1002", "conversation", "start", "Hello", "--id", "a.b");
    await fails("HF-5201", "conversation", "start", "Hello", "--agent", "nobody");
    await fails("HF-1002", "conversation", "show", "a.b");
    await fails("HF-3001", "conversation", "show", "nobody");
    await fails("HF-3001", "conversation", "send", "nobody", "Hello");
    await isRefused("HF-3001", "conversation", "pause", "nobody");
  });

  test("a closed conversation takes nothing more", async () => {
    expect((await succeeds(Outcome, "conversation", "close", "c1")).result.kind).toBe("applied");
    await fails("HF-3009", "conversation", "send", "c1", "Hello?");
    await isRefused("HF-3009", "conversation", "close", "c1");
  });
});

describe("holdfast wait", () => {
  test("a question is listed, refuses a wrong answer, takes one, and then no other", async () => {
    await succeeds(Outcome, "conversation", "start", SURVEY, "--id", "s1");
    const wait = await waitUntil(
      "the survey asks",
      async () => (await succeeds(Waits, "wait", "list")).waits.find(({ status }) => status === "open"),
      { timeoutMs: 30_000 },
    );
    expect(wait.options).toEqual(["title", "words"]);
    expect(await conversationStatus("s1")).toBe("waiting");
    await isRefused("HF-6005", "wait", "answer", wait.id, "by colour");
    const answered = await succeeds(Outcome, "wait", "answer", wait.id, "words", "--answer-id", "a1");
    expect(answered).toMatchObject({ answerId: "a1", result: { kind: "applied" } });
    // The same answer again is the same success; another one is too late.
    const again = await succeeds(Outcome, "wait", "answer", wait.id, "words", "--answer-id", "a1");
    expect(again.result.kind).toBe("ignored");
    await isRefused("HF-6001", "wait", "answer", wait.id, "title", "--answer-id", "a2");
    expect((await succeeds(Waits, "wait", "list")).waits).toEqual([]);
    await waitUntil("the survey ends", async () => (await conversationStatus("s1")) === "idle");
    await waitUntil("both answers are consumed", async () => {
      const all = (await succeeds(Waits, "wait", "list", "--all")).waits;
      return all.length === 2 && all.every(({ status }) => status === "consumed");
    });
  });

  test("an unknown question is refused", () => fails("HF-3001", "wait", "answer", "nobody", "title"));
});

describe("holdfast task", () => {
  let client: Client;
  beforeAll(async () => {
    const file = StackFile.parse(JSON.parse(await readFile(join(place, "home/stack.json"), "utf8")));
    client = await createClient({
      nats: { servers: [file.natsUrl], ...file.client },
      namespace: file.namespace,
      principal: { kind: "person", id: "local", roles: [] },
    });
  });
  afterAll(() => client.close());

  test("tasks are listed and shown; a running one is cancelled, once, and its conversation goes on", async () => {
    const blocker = defineAgent({ name: "blocker", model: "blocker" });
    const agent = withDelegates(defineAgent({ name: "delegator", model: "delegate-two" }), [blocker]);
    await client.holdfast.start("conversation", "d1", { agent, agents: { blocker }, prompt: "Ask both." });
    const control = new ModelControl(String(model.hello["url"]));
    await control.wait({ model: "blocker", state: "blocked", count: 2 });

    const { tasks } = await succeeds(Tasks, "task", "list");
    const running = tasks.filter(({ status }) => status === "running");
    expect(running).toMatchObject([{ agent: "blocker" }, { agent: "blocker" }]);
    const id = running[0]?.id ?? "";
    const parent = expect.stringMatching(/\.conversation\.d1$/);
    expect(await succeeds(anything, "task", "show", id)).toMatchObject({ id, status: "running", parent });
    expect((await succeeds(Outcome, "task", "cancel", id, "--reason", "enough")).result.kind).toBe("applied");
    const cancelled = await waitUntil("the task has ended", async () => {
      const shown = await succeeds(anything, "task", "show", id);
      return shown["status"] === "cancelled" ? shown : undefined;
    });
    expect(cancelled).toMatchObject({ cause: "cancel", output: { status: "cancelled" } });
    await isRefused("HF-3009", "task", "cancel", id);

    await control.release("child");
    await waitUntil("the parent has both results", async () => (await conversationStatus("d1")) === "idle");
    const after = (await succeeds(Tasks, "task", "list")).tasks.filter(({ agent }) => agent === "blocker");
    expect(after.map(({ status }) => status).toSorted()).toEqual(["cancelled", "completed"]);
  });

  test("an unknown task is refused", async () => {
    await fails("HF-3001", "task", "show", "nobody");
    await fails("HF-3001", "task", "cancel", "nobody");
  });
});

describe("for operators", () => {
  test("actor show and journal tell what is stored, step by step", async () => {
    const target = `conversation/${surveyId()}`;
    const shown = await succeeds(anything, "actor", "show", target);
    expect(shown).toMatchObject({ value: "idle", outbox: [], header: { status: "active", list: { status: "idle" } } });
    const Journal = z.looseObject({ entries: z.array(z.looseObject({ rev: z.number(), event: z.string() })) });
    const { entries } = await succeeds(Journal, "actor", "journal", target);
    expect(entries.map(({ rev }) => rev)).toEqual(entries.map((_, index) => index + 1));
    expect(entries[0]?.event).toBe("xstate.init");
  });

  test("targets that are none, or nobody's, are refused", async () => {
    await fails("HF-1002", "actor", "show", "nonsense");
    await fails("HF-3001", "actor", "show", "conversation/nobody");
    await fails("HF-3001", "actor", "journal", "conversation/nobody");
  });

  test("fleet lists each node once and every partition with an owner, stuck nothing, doctor is content", async () => {
    const { nodes, unowned } = await succeeds(Fleet, "fleet");
    expect(nodes.map(({ name, state }) => `${name} ${state}`).toSorted()).toEqual(["node-a serving", "node-b serving"]);
    expect(nodes.reduce((sum, { partitions }) => sum + partitions, 0)).toBe(32);
    expect(unowned).toEqual([]);
    expect(await succeeds(anything, "stuck")).toEqual({ stuck: [] });
    const doctor = await succeeds(z.looseObject({ nodes: z.array(z.string()) }), "doctor");
    expect(doctor).toMatchObject({ ok: true, partitionsHeld: 32, durabilityClass: expect.stringContaining("class F") });
    expect(doctor.nodes.toSorted()).toEqual(["node-a", "node-b"]);
  });

  test("without --json the same is said for people", async () => {
    const fleet = await runCommand(["fleet"], { env });
    expect(fleet.stdout).toMatch(/^node +state +pools +weight +partitions[\s\S]*node-a +serving/);
    const shown = await runCommand(["conversation", "show", surveyId()], { env });
    expect(shown.stdout).toMatch(/^survey-\S+: idle\nyou: Survey/);
    const wrong = await runCommand(["nonsense"], { env });
    expect(wrong).toMatchObject({ code: 1, stdout: "" });
    expect(wrong.stderr).toContain("unknown command");
  });
});

describe("the stack itself", () => {
  test("a second one on the same home is refused; without one the commands say how to start it", async () => {
    const second = await runCommand(["demo", join(place, "documents"), "--json"], { env });
    expect(second.code).toBe(1);
    expect(ResultLine.parse(second.json)).toMatchObject({
      pass: false,
      error: expect.stringContaining("already runs"),
    });
    const elsewhere = { ...env, HOLDFAST_HOME: join(place, "elsewhere") };
    const { code, json } = await runCommand(["conversation", "list", "--json"], { env: elsewhere });
    expect({ code, json }).toMatchObject({ code: 1, json: { error: { code: "HF-7003" } } });
  });

  test("its file with the passwords is for its owner only", async () => {
    expect((await stat(join(place, "home/stack.json"))).mode & 0o077).toBe(0);
  });

  test("neither a prompt nor the key of the model is in a log", async () => {
    const run = join(place, "home/run");
    const names = (await readdir(run, { recursive: true })).filter((name) => /\.(log|out)$/.test(name));
    expect(names).toEqual(expect.arrayContaining(["node-a.log", "node-b.log", "ledger.log", "nats/nats-server.log"]));
    const texts = await Promise.all(names.map((name) => readFile(join(run, name), "utf8")));
    expect(texts.join("")).toContain("node.joined");
    for (const text of [stack.stderr, ...texts]) for (const secret of [KEY, SECRET]) expect(text).not.toContain(secret);
  });

  // The last test: it ends the stack.
  test.skipIf(!canListProcesses())("killed with SIGKILL it leaves nothing running", async () => {
    expect(processesOf(place).length).toBeGreaterThan(3);
    stack.signal("SIGKILL");
    await waitUntil("everything has ended", () => processesOf(place).length === 0, { dump: () => processesOf(place) });
    await fails("HF-7003", "fleet");
  });
});
