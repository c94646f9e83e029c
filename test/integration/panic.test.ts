import { defineAgent } from "@holdfast/agents";
import { inboxPrefixOf } from "@holdfast/process";
import { rendezvousOwner, type Lease } from "@holdfast/protocol";
import { createClient, type Client } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { untilServing } from "../harness/until-serving.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";
import { runCommand } from "../scenarios/holdfast-command.ts";

// What happens with the flag at which moment is tested in packages/runtime; here it is processes, signals and a server that is restarted.

const blocker = defineAgent({ name: "blocker", model: "blocker" });

let cluster: Cluster;
let fleet: AgentFleet;
let client: Client;
let env: Record<string, string>;
beforeAll(async () => {
  cluster = await Cluster.start();
  fleet = await AgentFleet.start(cluster, { namespace: "main", leaseTtlMs: 600 });
  env = {
    HOLDFAST_NATS_URL: cluster.nats.url,
    HOLDFAST_NATS_USER: cluster.nats.user,
    HOLDFAST_NATS_PASSWORD: cluster.nats.password,
  };
});
afterAll(async () => {
  await client.close();
  await fleet.stop();
  await cluster.stop();
});

const connect = (as: "client" | "operator" = "client"): Promise<Client> => {
  const { user, password } = cluster.nats.credentials(as);
  return createClient({
    nats: { servers: [cluster.nats.url], user, password, inboxPrefix: inboxPrefixOf(as) },
    namespace: "main",
    principal: { kind: "person", id: "local", roles: [] },
  });
};
const typedIn = (namespace: string, ...args: readonly string[]) =>
  runCommand([...args, "--json"], { env: { ...env, HOLDFAST_NAMESPACE: namespace } });
const typed = (...args: readonly string[]) => typedIn("main", ...args);
const statusOf = async (id: string) =>
  (await client.holdfast.read.header(client.holdfast.key("conversation", id)))?.list["status"];
const isIn = (id: string, status: string) =>
  waitUntil(`${id} is ${status}`, async () => (await statusOf(id)) === status, {
    timeoutMs: 20_000,
    dump: async () => ({ status: await statusOf(id), logs: fleet.logs().slice(-4000) }),
  });

test("panic: aborts model calls within a second, of a stopped process when it wakes; outlives nodes and server; lifted, it resumes only what was accepted", async () => {
  const [first, second] = await Promise.all([fleet.startNode("node-a"), fleet.startNode("node-b")]);
  client = await waitUntil("the namespace is there", () => connect());
  const { holdfast } = client;
  await untilServing(holdfast, () => [first, second]);
  const ids = await idsOn([first, second]);
  for (const id of ids)
    await holdfast.start("conversation", id, { agent: blocker, prompt: `wait for ${id}` }, { idempotencyKey: id });
  await fleet.model.wait({ model: "blocker", state: "blocked", count: 2 });
  const abortedOf = async (id: string) =>
    (await fleet.model.requests()).find(({ lastUser }) => lastUser === `wait for ${id}`)?.aborted;

  await using operator = await connect("operator");
  await second.freeze();
  const { revision } = await operator.holdfast.panic.raise("it spends too much"); // before anybody takes the silent one for dead
  const raisedAtMs = performance.now();
  await waitUntil("the living node has aborted its call", () => abortedOf(ids[0]), { tickMs: 10 });
  expect(performance.now() - raisedAtMs).toBeLessThan(1000);
  expect(await typed("panic")).toMatchObject({
    code: 0,
    json: { revision, stopped: ["node-a"], unanswered: [], silent: ["node-b"] },
  });
  second.thaw();
  await waitUntil("the other one aborts its call when it wakes", () => abortedOf(ids[1]), { tickMs: 10 });
  await waitUntil("it says so", async () => (await holdfast.panic.answers(revision, 0)).stopped.length === 2);

  const resume = holdfast.send({ type: "conversation", id: ids[0] }, { type: "resume" });
  await expect(resume).rejects.toMatchObject({ code: "HF-3021", next: "retry" });
  await using stranger = await connect(); // has not heard of it yet
  const kept = await stranger.holdfast.start("conversation", "kept", {
    agent: defineAgent({ name: "echo", model: "echo" }),
    prompt: "said meanwhile",
  });
  expect(kept).toEqual({ kind: "accepted", stopped: "it spends too much" });

  await first.kill();
  await cluster.nats.restart();
  const third = await fleet.startNode("node-c");
  await waitUntil("a node that comes obeys it", async () =>
    (await holdfast.panic.answers(revision, 0)).stopped.includes("node-c"),
  );
  expect((await holdfast.read.fleet()).leases.filter(({ state }) => state === "held")).toEqual([]);
  expect(await typed("fleet")).toMatchObject({ code: 0, json: { stop: { isRaised: true, revision } } });

  expect(await typed("panic", "clear")).toMatchObject({ code: 0, json: { wasRaised: true } });
  await isIn("kept", "idle");
  await waitUntil("both are held", async () => (await holdfast.stuck.held()).length === 2, { timeoutMs: 20_000 });
  await untilServing(holdfast, () => [second, third]);
  expect((await fleet.model.requests()).map(({ lastUser }) => lastUser).toSorted()).toEqual(
    ["said meanwhile", `wait for ${ids[0]}`, `wait for ${ids[1]}`].toSorted(),
  );
  expect(await typed("held", "resume", `conversation/${ids[0]}`)).toMatchObject({ code: 0 });
  await fleet.model.release("wait for");
  await isIn(ids[0], "idle");
  expect(await statusOf(ids[1])).toBe("running");
  const why = "cut off when person-local stopped the fleet: it spends too much";
  expect(await typed("held", "list", "--type", "conversation")).toMatchObject({
    json: { held: [{ key: holdfast.key("conversation", ids[1]), why }] },
  });
  expect(await typed("held", "cancel", "--all")).toMatchObject({
    code: 0,
    json: { results: [{ outcome: { kind: "done" } }] },
  });
  await isIn(ids[1], "error");
  expect(await fleet.model.requests()).toHaveLength(4);
  expect(await typed("held", "list")).toMatchObject({ json: { held: [] } });
});

test("HOLDFAST_HOLD_AFTER_CRASH: after SIGKILL a conversation is held by the next node, and goes on when an operator says so", async () => {
  const env = { HOLDFAST_HOLD_AFTER_CRASH: "conversation" };
  const careful = await AgentFleet.start(cluster, { namespace: "careful", leaseTtlMs: 600, env });
  try {
    const first = await careful.startNode("node-a");
    await using own = await careful.client();
    const { holdfast } = own;
    await holdfast.start("conversation", "c", { agent: blocker, prompt: "wait" }, { idempotencyKey: "c" });
    await careful.model.wait({ model: "blocker", state: "blocked", count: 1 });
    await first.kill();
    const second = await careful.startNode("node-b");
    await untilServing(holdfast, () => [second]);
    const why = `its node ${String(first.hello["incarnation"])} ended without having left`;
    expect(await typedIn("careful", "held", "list")).toMatchObject({ json: { held: [{ why }] } });
    await careful.model.release("wait");
    expect(await careful.model.requests()).toHaveLength(1);
    expect(await typedIn("careful", "held", "resume", "--all")).toMatchObject({ code: 0 });
    const key = holdfast.key("conversation", "c");
    await waitUntil("it has its answer", async () => (await holdfast.read.header(key))?.list["status"] === "idle");
    expect(await careful.model.requests()).toHaveLength(2);
    expect(await typedIn("careful", "held", "resume", key)).toMatchObject({ code: 1 });
  } finally {
    await careful.stop();
  }
});

/** An id of a conversation on each of two nodes, once every partition is where it stays. */
const idsOn = (nodes: readonly [StartedProcess, StartedProcess]): Promise<readonly [string, string]> =>
  waitUntil("every partition is where it stays", async () => {
    const { leases } = await client.holdfast.read.fleet();
    const candidates = nodes.map(({ hello }) => ({ name: String(hello["node"]), weight: 1 }));
    const rightful = ({ partition, holder }: Lease): boolean =>
      rendezvousOwner(partition, candidates) === holder.split(":")[0];
    const on = ({ hello }: StartedProcess): string => {
      const isOwn = ({ partition, holder }: Lease, id: string): boolean =>
        holder === hello["incarnation"] && client.holdfast.key("conversation", id).startsWith(`${partition}.`);
      const found = Array.from({ length: 1000 }, (_, n) => `c${n}`).find((id) => leases.some((one) => isOwn(one, id)));
      if (found === undefined) throw new Error(`node ${String(hello["node"])} owns nothing`);
      return found;
    };
    return leases.every(rightful) && ([on(nodes[0]), on(nodes[1])] as const);
  });
