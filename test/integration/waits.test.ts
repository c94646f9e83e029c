import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ASK_OWNER, defineAgent, FILE_TOOLS } from "@holdfast/agents";
import type { SendResult } from "@holdfast/client";
import type { Principal } from "@holdfast/protocol";
import { createClient, type Client } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";
import { runCommand } from "../scenarios/holdfast-command.ts";
import { blocker, chiefOf, steps, task } from "../scenarios/row-agents.ts";

// Questions to people on real processes: many who answer at once, and a node that dies while an answer is kept.

const NAMESPACE = "waits";
const PEOPLE = 10;
const asker = defineAgent({ name: "asker", model: "puppet", tools: [ASK_OWNER, FILE_TOOLS.listFiles] });
const ask = (question: string, more: Readonly<Record<string, unknown>> = {}) => ({
  name: "ask_owner",
  arguments: { question, ...more },
});

let cluster: Cluster;
let fleet: AgentFleet;
let client: Client;
let people: readonly Client[];
beforeAll(async () => {
  cluster = await Cluster.start();
  fleet = await AgentFleet.start(cluster, {
    namespace: NAMESPACE,
    leaseTtlMs: 600,
    env: { HOLDFAST_ROLES: "reviewer=person-p1,person-p2" },
  });
  await fleet.startNode("node-a");
  client = await fleet.client();
  people = await Promise.all(Array.from({ length: PEOPLE }, (_, n) => clientOf(`p${n}`)));
});
afterAll(async () => {
  await Promise.all([client, ...people].map((one) => one.close()));
  await fleet.stop();
  await cluster.stop();
});

function clientOf(id: string): Promise<Client> {
  const { url, user, password } = cluster.nats;
  const principal: Principal = { kind: "person", id, roles: [] };
  return createClient({ nats: { servers: [url], user, password }, namespace: NAMESPACE, principal });
}

/** Types a command of `holdfast wait` as a person. */
function typed(...args: readonly string[]) {
  const { url, user, password } = cluster.nats;
  return runCommand(["wait", ...args, "--json"], {
    env: {
      HOLDFAST_NATS_URL: url,
      HOLDFAST_NATS_USER: user,
      HOLDFAST_NATS_PASSWORD: password,
      HOLDFAST_NAMESPACE: NAMESPACE,
      HOLDFAST_PRINCIPAL: "person-p0",
    },
  });
}

/** The key of the question of a conversation, once its list fields are such. */
const questionOf = (id: string, list: Readonly<Record<string, unknown>>): Promise<string> =>
  waitUntil(
    `the question of ${id} is ${JSON.stringify(list)}`,
    async () => {
      const headers = await client.holdfast.read.headers("ownerWait");
      return headers.find(
        (header) =>
          header.list["conversation"] === id && Object.entries(list).every(([field, is]) => header.list[field] === is),
      )?.key;
    },
    { timeoutMs: 30_000, dump: () => fleet.logs().slice(-3000) },
  );
const isIdle = (id: string): Promise<unknown> => {
  const key = client.holdfast.key("conversation", id);
  return waitUntil(`${id} is idle`, async () => (await client.holdfast.read.header(key))?.list["status"] === "idle", {
    timeoutMs: 30_000,
    dump: () => fleet.logs().slice(-3000),
  });
};

test("ten people answer one question at once: one answer counts, and everybody is told the truth", async () => {
  await client.holdfast.conversations.start("race", { agent: asker, prompt: steps([ask("who?")]) });
  const question = await questionOf("race", { status: "open" });
  const results = await Promise.all(
    people.map((person, n) =>
      person.holdfast.send(question, { type: "answer", answerId: `a${n}`, value: `person ${n}` }),
    ),
  );
  const won = results.flatMap(({ kind }, n) => (kind === "applied" ? [n] : []));
  expect(won).toHaveLength(1);
  const codeOf = (result: SendResult) => (result.kind === "refused" ? result.code : result.kind);
  expect(results.map(codeOf).filter((code) => code !== "applied")).toEqual(Array(PEOPLE - 1).fill("HF-6001"));
  await isIdle("race");
  await questionOf("race", { status: "consumed", outcome: "answered" });
  const answer = await client.holdfast.conversations.finalAnswer("race");
  expect(answer?.text).toContain(`person ${won[0]}`);
});

test("an answer is kept while its asker does something else, taken back, and survives the death of the node", async () => {
  const [anna, ben] = people;
  if (anna === undefined || ben === undefined) throw new Error("There are no people.");
  const { agent, agents } = chiefOf([blocker]);
  const chief = { ...agent, tools: [...agent.tools, ASK_OWNER] };
  const prompt = steps([ask("which?"), task("blocker", "something long")]);
  await client.holdfast.conversations.start("kept", { agent: chief, agents, prompt });
  const question = await questionOf("kept", { status: "open" });
  const answered = { type: "answer", answerId: "a1", value: "the first" };
  expect((await anna.holdfast.send(question, answered)).kind).toBe("applied");
  await fleet.model.wait({ model: "blocker", state: "blocked", count: 1 });
  expect(await questionOf("kept", { status: "answered" })).toBe(question);

  await fleet.nodes[0]?.kill("SIGKILL");
  await fleet.startNode("node-b");
  expect((await ben.holdfast.send(question, { type: "revoke", answerId: "a1" })).kind).toBe("refused");
  expect((await anna.holdfast.send(question, { type: "revoke", answerId: "a1" })).kind).toBe("applied");
  expect((await ben.holdfast.send(question, { ...answered, answerId: "b1", value: "the second" })).kind).toBe(
    "applied",
  );
  expect(await questionOf("kept", { status: "answered" })).toBe(question);
  await fleet.model.release("something long");
  await isIdle("kept");
  await questionOf("kept", { status: "consumed", outcome: "answered" });
  expect((await client.holdfast.conversations.finalAnswer("kept"))?.text).toContain("the second");
  const late = await anna.holdfast.send(question, { type: "revoke", answerId: "a1" });
  expect(late.kind).toBe("ignored");
  expect(await ben.holdfast.send(question, { type: "revoke", answerId: "b1" })).toMatchObject({ code: "HF-6001" });
});

test("an inbox: watched, listed by filters, answered at once; a role is asked, and a call is approved from the command line", async () => {
  const [p0, p1, p2] = people;
  if (p0 === undefined || p1 === undefined || p2 === undefined) throw new Error("There are no people.");
  const stopping = new AbortController();
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { kind, wait } of p0.holdfast.waits.watch({ tenant: "acme" }, stopping.signal)) {
      seen.push(`${kind} ${wait.question} ${wait.status}`);
    }
  })();
  const toolCall = { id: "t1", name: "pay", args: { amount: 5 } };
  const actions = ["accept", "edit", "reject"];
  const prompt = steps([
    ask("plain", { expiresInMs: 3_600_000 }),
    ask("reviewed", { role: "reviewer", options: ["yes", "no"] }),
    ask("paid", { kind: "tool_call", toolCall, actions, assignee: "person-p0" }),
  ]);
  await client.holdfast.start("conversation", "inbox", { agent: asker, prompt }, { onBehalf: { tenant: "acme" } });
  await waitUntil("three questions are seen", () => seen.length >= 3, { dump: () => ({ seen, log: fleet.logs() }) });

  const list = async (filter: Parameters<typeof p0.holdfast.waits.list>[0]) =>
    (await p0.holdfast.waits.list(filter)).map(({ question }) => question);
  expect((await list({ conversation: "inbox" })).toSorted()).toEqual(["paid", "plain", "reviewed"]);
  expect(await list({ assignee: "person-p0" })).toEqual(["paid"]);
  expect(await list({ role: "reviewer" })).toEqual(["reviewed"]);
  expect(await list({ tenant: "other" })).toEqual([]);
  expect(await list({ expiresWithinMs: 3_600_000 })).toEqual(["plain"]);
  expect(await list({ conversation: "inbox", olderThanMs: 3_600_000 })).toEqual([]);

  const idOf = async (question: string) =>
    (await p0.holdfast.waits.list()).find((wait) => wait.question === question)?.id ?? "";
  const [plain, reviewed, paid] = [await idOf("plain"), await idOf("reviewed"), await idOf("paid")];
  const batch = [
    { id: plain, answerId: "b1", value: "done" },
    { id: reviewed, answerId: "b2", value: "yes" },
    { id: "nobody", answerId: "b3", value: "yes" },
  ];
  expect(await p0.holdfast.waits.answerAll(batch)).toMatchObject([
    { id: plain, result: { kind: "applied" } },
    { id: reviewed, result: { kind: "refused", code: "HF-6003" } },
    { id: "nobody", fault: { code: "HF-3001" } },
  ]);
  expect(await p1.holdfast.waits.reassign(reviewed, { assignee: "person-p3" })).toMatchObject({ kind: "applied" });
  expect(await p2.holdfast.waits.answer(reviewed, { answerId: "c2", value: "yes" })).toMatchObject({ code: "HF-6003" });
  expect(await people[3]?.holdfast.waits.answer(reviewed, { answerId: "c3", value: "no" })).toMatchObject({
    kind: "applied",
  });

  expect((await typed("list", "--assignee", "person-p0", "--kind", "tool_call")).json).toMatchObject({
    waits: [{ id: paid, toolCall, actions, status: "open" }],
  });
  expect(await typed("answer", paid, "--action", "edit", "--form", '{"amount":3}')).toMatchObject({
    code: 0,
    json: { result: { kind: "applied" } },
  });
  await isIdle("inbox");
  const text = (await client.holdfast.conversations.finalAnswer("inbox"))?.text ?? "";
  for (const part of ["done", "no", "amount", "edit"]) expect(text).toContain(part);
  await waitUntil("all three are gone", () => seen.filter((line) => line.startsWith("gone ")).length === 3, {
    dump: () => seen,
  });
  stopping.abort();
  await watching;
});

test("declined, withdrawn, handed on, answered in a batch and taken back from the command line", async () => {
  const { agent, agents } = chiefOf([blocker]);
  const chief = { ...agent, tools: [...agent.tools, ASK_OWNER] };
  const questions = ["declined", "withdrawn", "handed on", "in a batch"];
  const prompt = steps([...questions.map((question) => ask(question)), task("blocker", "for a while")]);
  await client.holdfast.conversations.start("typed", { agent: chief, agents, prompt });
  const listed = () => client.holdfast.waits.list({ conversation: "typed", status: "all" });
  await waitUntil("they are asked", async () => (await listed()).length === questions.length);
  const ids = new Map((await listed()).map(({ question, id }) => [question, id]));
  const idOf = (question: string): string => ids.get(question) ?? "";

  const folder = await mkdtemp(join(tmpdir(), "holdfast-waits-"));
  const file = join(folder, "answers.json");
  const batch = [
    { id: idOf("in a batch"), answerId: "b1", value: "done" },
    { id: "nobody", value: "x" },
  ];
  await writeFile(file, JSON.stringify(batch));
  try {
    const [declined, withdrawn, handedOn, answered] = await Promise.all([
      typed("decline", idOf("declined"), "--reason", "not today"),
      typed("cancel", idOf("withdrawn")),
      typed("reassign", idOf("handed on"), "--to", "person-p1"),
      typed("answer-all", file),
    ]);
    for (const done of [declined, withdrawn, handedOn]) {
      expect(done).toMatchObject({ code: 0, json: { result: { kind: "applied" } } });
    }
    expect(answered).toMatchObject({
      code: 1,
      json: { results: [{ answerId: "b1", result: { kind: "applied" } }, { fault: { code: "HF-3001" } }] },
    });
  } finally {
    await rm(folder, { recursive: true });
  }
  expect(await typed("revoke", idOf("in a batch"), "b1")).toMatchObject({ code: 0, json: { answerId: "b1" } });
  const rows = new Map((await listed()).map((wait) => [wait.question, wait]));
  expect(rows.get("declined")).toMatchObject({ outcome: "declined", endReason: "not today" });
  expect(rows.get("withdrawn")).toMatchObject({ outcome: "cancelled" });
  expect(rows.get("handed on")).toMatchObject({ status: "open", assignee: "person-p1" });
  expect(rows.get("in a batch")).toMatchObject({ status: "open", replied: [] });
});
