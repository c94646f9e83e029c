import { ASK_PARENT, defineAgent, withDelegates } from "@holdfast/agents";
import type { HoldfastClient } from "@holdfast/client";
import { foldTranscript } from "@holdfast/machines";
import { agentDigest, parseActorKey } from "@holdfast/protocol";
import type { Client } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster } from "../harness/cluster.ts";
import type { StartedProcess } from "../harness/child-process.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";
import { runCommand, type CommandResult } from "../scenarios/holdfast-command.ts";

// Tasks that can be continued, on real processes. The rules are tested in packages/machines; here it is state across a SIGKILL.

const blocker = defineAgent({ name: "blocker", model: "blocker" });
const asker = defineAgent({ name: "asker", model: "puppet", tools: [ASK_PARENT] });
const chief = withDelegates(defineAgent({ name: "chief", model: "puppet" }), [blocker, asker], {}, { resumable: true });
const agents = { blocker, asker };

type Call = { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
const task = (more: object): Call => ({ name: "task", arguments: { subagent: "blocker", ...more } });
const steps = (...all: readonly (readonly Call[])[]): string => JSON.stringify(all);

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster.stop());

interface World {
  readonly fleet: AgentFleet;
  readonly holdfast: HoldfastClient;
  /** SIGKILL of the only node, and another one. */
  readonly replaceNode: () => Promise<void>;
  readonly start: (id: string, prompt: string) => Promise<unknown>;
  readonly say: (id: string, messageId: string, text: string) => Promise<unknown>;
  /** Last answer of a conversation that rests, as the model gave it: the results of its calls. */
  readonly answer: (id: string) => Promise<unknown>;
  /** Task id → status, in order of ids. */
  readonly tasks: () => Promise<readonly { readonly id: string; readonly status: unknown; readonly title: unknown }[]>;
  readonly until: (what: string, holds: (all: Awaited<ReturnType<World["tasks"]>>) => boolean) => Promise<void>;
}

async function inWorld(
  namespace: string,
  env: Readonly<Record<string, string>>,
  play: (world: World) => Promise<void>,
): Promise<void> {
  const fleet = await AgentFleet.start(cluster, { namespace, leaseTtlMs: 600, env });
  let client: Client | undefined;
  try {
    let node: StartedProcess = await fleet.startNode("node-0");
    let nodes = 1;
    client = await fleet.client();
    const { holdfast } = client;
    const tasks: World["tasks"] = async () =>
      (await holdfast.read.headers("task"))
        .map(({ key, list }) => ({ id: parseActorKey(key).id, status: list["status"], title: list["title"] }))
        .toSorted((a, b) => (a.id < b.id ? -1 : 1));
    await play({
      fleet,
      holdfast,
      tasks,
      replaceNode: async () => {
        process.kill(node.pid, "SIGKILL");
        await node.exited;
        node = await fleet.startNode(`node-${nodes}`);
        nodes += 1;
      },
      start: (id, prompt) =>
        holdfast.start("conversation", id, { agent: chief, agents, prompt }, { idempotencyKey: id, timeoutMs: 30_000 }),
      say: (id, messageId, text) =>
        holdfast.send(
          { type: "conversation", id },
          { type: "userMessage", messageId, text },
          { idempotencyKey: messageId, timeoutMs: 30_000 },
        ),
      answer: async (id) => {
        const key = holdfast.key("conversation", id);
        const events = await waitUntil(
          `${id} rests, and its journal says all of it`,
          async () => {
            const header = await holdfast.read.header(key);
            if (header?.list["status"] !== "idle") return undefined;
            const entries = await holdfast.read.journal(key);
            return entries.at(-1)?.rev === header.rev ? entries.map(({ event }) => event) : undefined;
          },
          { timeoutMs: 20_000, dump: () => fleet.logs().slice(-4000) },
        );
        const transcript = foldTranscript(events);
        const last = transcript.at(-1);
        return last?.role === "assistant" && last.text.startsWith("[") ? JSON.parse(last.text) : last;
      },
      until: (what, holds) =>
        waitUntil(what, async () => holds(await tasks()), {
          timeoutMs: 20_000,
          dump: () => fleet.logs().slice(-4000),
        }).then(() => undefined),
    });
  } finally {
    await client?.close();
    await fleet.stop();
  }
}

test("tasks and what they wait for outlive their nodes: one queued behind another, one that asks; each goes on as itself", async () => {
  await inWorld("tasksa", {}, async ({ fleet, holdfast, replaceNode, start, say, answer, tasks, until }) => {
    const touching = { background: true, resources: ["report.md"] };
    const [one, two] = ["one", "two"].map((prompt) => task({ prompt, description: prompt, ...touching }));
    const question = steps([{ name: "ask_parent", arguments: { question: "which file?" } }]);
    const asking = ["three", "four"].map((description) => task({ subagent: "asker", prompt: question, description }));
    await start(
      "c1",
      steps(
        [one, two].filter((call) => call !== undefined),
        asking,
      ),
    );
    const said = [{ status: "running" }, { status: "queued" }, ...asking.map(() => ({ question: "which file?" }))];
    expect(await answer("c1")).toMatchObject(said);
    await fleet.model.wait({ model: "blocker", state: "blocked", count: 1 });
    const before = await tasks();
    expect(before.map(({ status }) => String(status)).toSorted()).toEqual(["queued", "running", "waiting", "waiting"]);

    await replaceNode();
    await fleet.model.wait({ model: "blocker", state: "arrived", count: 2, match: "one" });
    expect(await tasks()).toEqual(before);
    const shown = await holdfastCommand(fleet, "task", "show", idOf(before, "one"));
    expect(shown).toMatchObject({ code: 0, json: { definition: { name: "blocker", digest: agentDigest(blocker) } } });
    await fleet.model.release("one");
    await fleet.model.release("two");
    await say("c1", "m2", steps([{ name: "task", arguments: { resume: "$task:2", prompt: "the second" } }]));
    expect(await answer("c1")).toMatchObject([{ status: "completed", result: '[{"answer":"the second"}]' }]);
    const ran = await holdfastCommand(fleet, "task", "message", idOf(before, "four"), "the third");
    expect(ran).toMatchObject({ code: 0, json: { result: { kind: "applied" } } });
    await until("all have ended", (all) => all.every(({ status }) => status === "completed"));

    await say("c1", "m3", steps([{ name: "task", arguments: { resume: "$task:0", prompt: "five" } }]));
    await fleet.model.wait({ model: "blocker", state: "blocked", count: 1, match: "five" });
    await replaceNode();
    await fleet.model.release("five");
    expect(await answer("c1")).toMatchObject([{ status: "completed", result: "result of five" }]);
    await say("c1", "m4", steps([1, 3].map((n) => ({ name: "task_output", arguments: { taskId: `$task:${n}` } }))));
    expect(await answer("c1")).toMatchObject([{ result: "result of two" }, { result: '[{"answer":"the third"}]' }]);
    expect((await tasks()).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    expect(await holdfast.read.headers("conversation")).toHaveLength(1 + before.length);
    for (const actor of ["conversation/c1", `task/${idOf(before, "one")}`]) {
      const replayed = await holdfastCommand(fleet, "replay", actor, "--assert", "stored");
      expect(replayed, replayed.stderr).toMatchObject({ code: 0 });
    }
  });
});

function holdfastCommand({ namespace }: AgentFleet, ...args: readonly string[]): Promise<CommandResult> {
  const { url, user, password } = cluster.nats;
  const env = { HOLDFAST_NATS_URL: url, HOLDFAST_NATS_USER: user, HOLDFAST_NATS_PASSWORD: password };
  return runCommand([...args, "--json"], { env: { ...env, HOLDFAST_NAMESPACE: namespace } });
}

const idOf = (all: Awaited<ReturnType<World["tasks"]>>, title: string): string =>
  all.find((one) => one.title === title)?.id ?? "";

test("with a crowd of one conversation queued, a task of another one starts at once, one of a third has the first free slot; a SIGKILL loses none of them", async () => {
  await inWorld(
    "tasksb",
    { HOLDFAST_TASK_CONCURRENCY: "2" },
    async ({ fleet, holdfast, replaceNode, start, tasks, until }) => {
      const crowd = Array.from({ length: 8 }, (_, index) => `crowd ${index}`);
      const inBackground = (prompt: string) => task({ prompt, description: prompt, background: true });
      const count = (all: Awaited<ReturnType<World["tasks"]>>, status: string) =>
        all.filter((one) => one.status === status).length;
      await start("wide", steps(crowd.map(inBackground)));
      await until("two run, the others are queued", (all) => count(all, "running") === 2 && count(all, "queued") === 6);
      const runs = (all: Awaited<ReturnType<World["tasks"]>>, title: string) =>
        all.some((one) => one.title === title && one.status === "running");
      await start("narrow", steps([inBackground("other")]));
      await until("the other one runs", (all) => runs(all, "other"));
      await start("third", steps([inBackground("third")]));
      await until("that of a third one is queued", (all) => count(all, "queued") === 7);
      const [first] = (await tasks()).filter(({ title, status }) => status === "running" && title !== "other");
      await fleet.model.release(String(first?.title));
      await until("the free slot is used", (all) => count(all, "completed") === 1 && runs(all, "third"));
      expect(count(await tasks(), "running")).toBe(3);

      await replaceNode();
      for (const prompt of [...crowd, "other", "third"]) await fleet.model.release(prompt);
      await until("all have ended", (all) => count(all, "completed") === 10);

      const left = ["await", "detach", "cancel"].map((onClose) => ({ ...inBackground(onClose).arguments, onClose }));
      await start("leaver", steps(left.map((more) => task(more))));
      await until("three more run", (all) => count(all, "running") + count(all, "queued") === 3);
      const leaver = holdfast.key("conversation", "leaver");
      const status = async () => (await holdfast.read.header(leaver))?.status;
      await holdfast.send(leaver, { type: "close" }, { timeoutMs: 30_000 });
      await waitUntil("it is closed for all but the task that is awaited", async () => (await status()) === "closing");
      expect(count(await tasks(), "cancelled")).toBe(1);
      for (const prompt of ["await", "detach"]) await fleet.model.release(prompt);
      await until("both end with their work", (all) => count(all, "completed") === 12);
      await waitUntil("its conversation has ended", async () => (await status()) === "done");
    },
  );
});
