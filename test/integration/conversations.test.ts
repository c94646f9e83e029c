import { isDeepStrictEqual } from "node:util";
import { defineAgent } from "@holdfast/agents";
import { agentActors, readTranscript } from "@holdfast/node-app";
import { inboxPrefixOf, parseConfig } from "@holdfast/process";
import { parseActorKey, type TranscriptMessage } from "@holdfast/protocol";
import { startNode, type Client } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import type { StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";
import { runCommand } from "../scenarios/holdfast-command.ts";

// Conversations on real processes: what a person types, and what is said while the node that owned a conversation is dead.

const NAMESPACE = "talk";
const Answered = z.looseObject({ result: z.looseObject({ kind: z.string() }).optional() });

let cluster: Cluster;
let fleet: AgentFleet;
let client: Client;
let first: StartedProcess;
let env: Record<string, string>;
beforeAll(async () => {
  cluster = await Cluster.start();
  fleet = await AgentFleet.start(cluster, { namespace: NAMESPACE, leaseTtlMs: 600 });
  first = await fleet.startNode("node-a");
  client = await fleet.client();
  const { nats } = cluster;
  env = {
    HOLDFAST_NATS_URL: nats.url,
    HOLDFAST_NATS_USER: nats.user,
    HOLDFAST_NATS_PASSWORD: nats.password,
    HOLDFAST_NAMESPACE: NAMESPACE,
    HOLDFAST_MODEL: "echo",
  };
});
afterAll(async () => {
  await client.close();
  await fleet.stop();
  await cluster.stop();
});

const listOf = async (id: string) =>
  (await client.holdfast.read.header(client.holdfast.key("conversation", id)))?.list ?? {};
const isIn = (id: string, status: string): Promise<unknown> =>
  waitUntil(`${id} is ${status}`, async () => (await listOf(id))["status"] === status, {
    timeoutMs: 30_000,
    dump: async () => ({ list: await listOf(id), logs: fleet.logs().slice(-3000) }),
  });
const saidIn = async (id: string): Promise<readonly string[]> =>
  (await readTranscript(client.holdfast.read, client.holdfast.key("conversation", id))).map(inShort);
/** The journal follows the record by a moment. */
const hasSaid = (id: string, wanted: readonly string[]): Promise<unknown> =>
  waitUntil(`${id} has said it`, async () => isDeepStrictEqual(await saidIn(id), wanted), { dump: () => saidIn(id) });
const inShort = (message: TranscriptMessage): string =>
  message.role === "user"
    ? `${message.messageId}: ${message.text}`
    : message.role === "assistant"
      ? message.text
      : "tool";

/** Types a command of `holdfast conversation`. @returns its result */
async function typed(...args: readonly string[]) {
  const { code, json, stderr } = await runCommand(["conversation", ...args, "--json"], { env });
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: "" });
  return Answered.parse(json);
}
test("a conversation from its start to its end, typed", async () => {
  const start = ["start", "Hello", "--agent", "reader", "--id", "c1", "--tag", "team=red", "--tenant", "acme"];
  expect(await typed(...start)).toMatchObject({ id: "c1", result: { kind: "applied" } });
  await isIn("c1", "idle");
  await typed("send", "c1", "Later", "--message-id", "m1", "--no-run");
  expect(await listOf("c1")).toMatchObject({ status: "idle", user: "local", tenant: "acme", "tag.team": "red" });
  await typed("run", "c1");
  await isIn("c1", "idle");
  await hasSaid("c1", ["prompt: Hello", "Hello", "m1: Later", "Later"]);
  expect(await client.holdfast.conversations.finalAnswer("c1")).toMatchObject({ text: "Later" });

  const revOf = async () => (await client.holdfast.read.header(client.holdfast.key("conversation", "c1")))?.rev;
  const before = await revOf();
  expect(await typed("ask", "c1", "What was said?")).toMatchObject({ answer: "What was said?" });
  expect(await revOf()).toBe(before);

  await typed("fork", "c1", "Elsewhere", "--as", "c2", "--rev", "2", "--title", "The other way");
  await isIn("c2", "idle");
  await hasSaid("c2", ["prompt: Hello", "Hello", "prompt: Elsewhere", "Elsewhere"]);
  expect(await saidIn("c1")).toHaveLength(4);

  await typed("delete", "c1");
  await isIn("c1", "closed");
  const { conversations } = client.holdfast;
  await expect(conversations.send("c1", "Hello?", { messageId: "m2" })).rejects.toMatchObject({ code: "HF-3009" });
  await expect(conversations.fork("c1", { as: "c3" })).rejects.toMatchObject({ code: "HF-3009" });
  await expect(conversations.fork("c2", { as: "c3", rev: 999 })).rejects.toMatchObject({ code: "HF-1001" });
  expect(await typed("list", "--tag", "team=red")).toMatchObject({
    conversations: [{ id: "c2", title: "The other way", forkOf: expect.stringMatching(/\.c1@2$/) }],
  });

  await typed("close", "c2");
  await isIn("c2", "closed");
  await typed("fork", "c2", "And then?", "--as", "c4", "--rev", "2");
  await isIn("c4", "idle");
  await hasSaid("c4", ["prompt: Hello", "Hello", "prompt: Elsewhere", "Elsewhere", "prompt: And then?", "And then?"]);
  expect(await typed("show", "c2")).toMatchObject({ forks: [client.holdfast.key("conversation", "c4")] });
  expect(await typed("delete", "c2")).toMatchObject({ result: { kind: "applied" } });
  await expect(conversations.fork("c2", { as: "c5" })).rejects.toMatchObject({ code: "HF-3009" });
  expect(await listOf("c2")).toMatchObject({ status: "closed", deleted: true });
  const replayed = await runCommand(["replay", "conversation/c2", "--assert", "stored", "--json"], { env });
  expect(replayed, replayed.stderr).toMatchObject({ code: 0 });
});

test("what is said while the owner of a conversation is dead is taken once, in order, and a switched model stays", async () => {
  const { holdfast } = client;
  const agent = defineAgent({ name: "talker", model: "blocker" });
  const id = "t1";
  const send = (messageId: string) =>
    holdfast.send(
      { type: "conversation", id },
      { type: "userMessage", messageId, text: `text of ${messageId}` },
      {
        idempotencyKey: messageId,
        timeoutMs: 300,
      },
    );
  await holdfast.conversations.start(id, { agent, prompt: "first" });
  await fleet.model.wait({ model: "blocker", state: "blocked", count: 1 });
  await holdfast.send({ type: "conversation", id }, { type: "switchModel", model: "echo" });
  const taken = await send("m1");
  if (taken.kind !== "applied") throw new Error(`m1 is ${taken.kind}`);
  await first.kill();
  expect((await send("m2")).kind).toBe("accepted");
  expect((await send("m2")).kind).toBe("accepted");
  // At a place of its own: what is taken in while it is being made is no part of it.
  const fork = holdfast.conversations.fork(id, { as: "t2", rev: taken.rev, prompt: "apart" });
  await fleet.startNode("node-b");
  const tries = await fleet.model.wait({ model: "blocker", state: "arrived", count: 2, timeoutMs: 20_000 });
  expect(tries.map(({ lastUser }) => lastUser)).toEqual(["first", "first"]); // made again, and shown nothing that was said since
  expect((await send("m3")).kind).toBe("applied");
  await send("m2");
  await fork;
  await isIn("t2", "idle");
  // Answered by the model that the origin was switched to.
  await hasSaid("t2", ["prompt: first", "m1: text of m1", "prompt: apart", "apart"]);
  await fleet.model.release("first");
  await isIn(id, "idle");
  const said = ["prompt: first", "result of first", "m1: text of m1", "m2: text of m2", "m3: text of m3", "text of m3"];
  await hasSaid(id, said);
  const asked = (await fleet.model.requests()).filter(
    ({ model, lastUser }) => model === "echo" && lastUser === "text of m3",
  );
  expect(asked).toHaveLength(1);
});

test("a past is condensed once, although the node that has it done is killed and the next one is late", async () => {
  const { holdfast } = client;
  const id = "k1";
  const key = holdfast.key("conversation", id);
  const tries = (state: "arrived" | "blocked", count: number) =>
    fleet.model.wait({ model: "blocker", state, count, match: "Summarise", timeoutMs: 20_000 });
  const agent = defineAgent({ name: "talker", model: "echo" });
  await holdfast.conversations.start(id, { agent, prompt: "a long story. ".repeat(200) });
  await isIn(id, "idle");
  await holdfast.send(key, { type: "switchModel", model: "blocker" });
  await holdfast.send(key, { type: "condense" });
  await tries("blocked", 1);
  await fleet.nodes.at(-1)?.kill();
  const slow = await fleet.startNode("node-c");
  await tries("arrived", 2);
  await slow.freeze();
  await fleet.startNode("node-d");
  await tries("arrived", 3);
  await fleet.model.release("Summarise");
  await waitUntil("it is condensed", async () => (await saidIn(id)).length === 1);
  const condensed = await saidIn(id);
  expect(condensed[0]).toMatch(/^summary-2: Summary of this conversation so far:\n/);

  const lateOf = async () => (await holdfast.read.overview()).partitions.reduce((sum, { late }) => sum + late, 0);
  slow.thaw();
  await waitUntil("what comes late is counted", async () => (await lateOf()) > 0, { timeoutMs: 20_000 });
  await holdfast.send(key, { type: "switchModel", model: "echo" });
  await holdfast.conversations.send(id, "more", { messageId: "m1" });
  await isIn(id, "idle");
  await hasSaid(id, [...condensed, "m1: more", "more"]);
  const done = (await holdfast.read.journal(key)).filter(({ event }) => event.type.includes(".actor.condense-"));
  expect(done).toHaveLength(1);
});

test("a call that must not be made twice, lost between its mark and its result: a person says what became of it, once", async () => {
  await using stack = new AsyncDisposableStack();
  const own = await AgentFleet.start(cluster, { namespace: "doubt", leaseTtlMs: 600 });
  stack.defer(() => own.stop());
  await own.startNode("node-0", [{ point: "job-done", match: "call-1-" }]);
  const { holdfast } = stack.use(await own.client());
  const listing = {
    name: "list_files",
    description: "Lists files",
    inputSchema: { type: "object" },
    kind: "local",
  } as const;
  const agent = defineAgent({ name: "lister", model: "puppet", tools: [{ ...listing, crashPolicy: "unsafe" }] });
  const key = holdfast.key("conversation", "u1");
  await holdfast.conversations.start("u1", {
    agent,
    prompt: JSON.stringify([[{ name: "list_files", arguments: { path: "." } }]]),
  });
  const shownAs = async (field: string) => (await holdfast.read.header(key))?.list[field];
  await own.nodes[0]?.exited;
  await own.startNode("node-1");
  await waitUntil("a person is asked", async () => (await shownAs("waitingOn")) === "owner", { timeoutMs: 30_000 });
  const question = await waitUntil(
    "its question is there",
    async () => (await holdfast.read.headers("ownerWait"))[0]?.key,
  );
  const answer = [
    "wait",
    "answer",
    parseActorKey(question).id,
    "--form",
    '{"action":"happened","result":"three files"}',
  ];
  const replied = await runCommand([...answer, "--json"], { env: { ...env, HOLDFAST_NAMESPACE: "doubt" } });
  expect(replied, replied.stderr).toMatchObject({ code: 0 });
  await waitUntil("it goes on", async () => (await shownAs("status")) === "idle", { timeoutMs: 30_000 });
  expect((await holdfast.conversations.finalAnswer("u1"))?.text).toContain("three files");
  const outcomes = (await holdfast.read.journal(key)).filter(({ event }) => /\.actor\.call-1-/.test(event.type));
  expect(outcomes.map(({ event }) => event.type.startsWith("xstate.error."))).toEqual([true]);
});

test("what was deleted goes with its journal, but not before the last fork that shares it", async () => {
  const { nats } = cluster;
  const server = { servers: [nats.url], user: nats.user, password: nats.password };
  const config = parseConfig({ HOLDFAST_MODEL_BASE_URL: "http://127.0.0.1:9/v1" }); // nothing is to run
  let kept = 0;
  const count = (_event: string, fields?: Readonly<Record<string, unknown>>): void => {
    if (Number(fields?.["kept"] ?? 0) > 0) kept += 1;
  };
  const telemetry = { info: count, warn: count, error: count, debug: count };
  await using stack = new AsyncDisposableStack();
  const node = await startNode({
    nats: { ...server, inboxPrefix: inboxPrefixOf("node") },
    namespace: "erase",
    layout: { pools: { d: 2 }, shards: 1 },
    definitions: (context) => agentActors({ config, node: "n", telemetry }, context),
    settings: {
      retentionMs: 100,
      eraseAfterMs: 100,
      sweepMs: 200,
      idleCleanMs: 50,
      passivateMs: 100,
      cursorFlushMs: 100,
    },
    telemetry,
  });
  stack.defer(() => node.stop());
  const { holdfast } = stack.use(await cluster.client("erase"));
  const { conversations } = holdfast;
  const agent = defineAgent({ name: "keeper", model: "none", instructions: "planted-instructions" });
  await conversations.start("o1", { agent, title: "planted-title" });
  await conversations.send("o1", "planted-message", { messageId: "m1", run: false });
  await conversations.fork("o1", { as: "f1" });
  const [origin, fork] = [holdfast.key("conversation", "o1"), holdfast.key("conversation", "f1")];
  await holdfast.send(origin, { type: "delete" });
  await waitUntil("it was due and kept", () => kept > 2);
  const shared = await waitUntil("the journal of the fork is there", async () => {
    const transcript = await readTranscript(holdfast.read, fork);
    return transcript.length > 0 ? transcript : undefined;
  });
  expect(shared).toMatchObject([{ messageId: "m1", text: "planted-message" }]);
  await holdfast.send(fork, { type: "delete" });
  for (const key of [fork, origin]) {
    await waitUntil(`the journal of ${key} is gone`, async () => (await holdfast.read.journal(key)).length === 0, {
      timeoutMs: 20_000,
    });
    const left = await holdfast.read.actor(key);
    expect(left?.record.tombstone).toBeDefined();
    expect(JSON.stringify(left)).not.toContain("planted");
  }
  // What is left still knows that the id was used.
  await expect(conversations.start("o1", { agent })).rejects.toMatchObject({ code: "HF-3012" });
});
