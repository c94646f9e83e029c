import { ASK_OWNER, defineAgent, FILE_TOOLS } from "@holdfast/agents";
import type { SendResult } from "@holdfast/client";
import type { Principal } from "@holdfast/protocol";
import { createClient, type Client } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";
import { blocker, chiefOf, steps, task } from "../scenarios/row-agents.ts";

// Questions to people on real processes: many who answer at once, and a node that dies while an answer is kept.

const NAMESPACE = "waits";
const PEOPLE = 10;
const asker = defineAgent({ name: "asker", model: "puppet", tools: [ASK_OWNER, FILE_TOOLS.listFiles] });
const ask = (question: string) => ({ name: "ask_owner", arguments: { question } });

let cluster: Cluster;
let fleet: AgentFleet;
let client: Client;
let people: readonly Client[];
beforeAll(async () => {
  cluster = await Cluster.start();
  fleet = await AgentFleet.start(cluster, { namespace: NAMESPACE, leaseTtlMs: 600 });
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
