import { defineAgent } from "@holdfast/agents";
import type { Client } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";
import { HOLDFAST_BIN, runCommand } from "../scenarios/holdfast-command.ts";

// Who is held after which end is tested in packages/runtime; here it is processes, exit codes, permissions and commands.

let cluster: Cluster;
let fleet: AgentFleet;
let client: Client;
let supervisor: StartedProcess | undefined;
beforeAll(async () => {
  cluster = await Cluster.start();
  fleet = await AgentFleet.start(cluster, { namespace: "main", leaseTtlMs: 600 });
});
afterAll(async () => {
  await supervisor?.kill("SIGTERM");
  await client.close();
  await fleet.stop();
  await cluster.stop();
});

const env = (): Record<string, string> => {
  const { user, password } = cluster.nats.credentials("operator");
  return {
    HOLDFAST_NATS_URL: cluster.nats.url,
    HOLDFAST_NATS_USER: cluster.nats.user,
    HOLDFAST_NATS_PASSWORD: cluster.nats.password,
    HOLDFAST_OPERATOR_USER: user ?? "",
    HOLDFAST_OPERATOR_PASSWORD: password ?? "",
  };
};
const typed = (...args: readonly string[]) => runCommand([...args, "--json"], { env: env() });

test("restart: planned, prepared and acknowledged, a conversation that is held otherwise comes back under its supervisor, and no node can say that in its place", async () => {
  supervisor = await startProcess(HOLDFAST_BIN, ["supervise"], {
    ...env(),
    ...fleet.nodeEnvironment("node-a"),
    HOLDFAST_HOLD_AFTER_CRASH: "conversation",
    HOLDFAST_DRAIN_GRACE_MS: "500",
  });
  client = await waitUntil("the namespace is there", () => fleet.client());
  const { holdfast } = client;
  const blocker = defineAgent({ name: "blocker", model: "blocker" });
  await holdfast.start("conversation", "c", { agent: blocker, prompt: "wait" }, { idempotencyKey: "c" });
  await fleet.model.wait({ model: "blocker", state: "blocked", count: 1 });
  const key = holdfast.key("conversation", "c");
  const startedAt = async () => (await holdfast.read.actor(key))?.record.genesis;
  const genesis = await startedAt();

  expect(await typed("restart", "plan")).toMatchObject({
    code: 0,
    json: { nodes: ["node-a"], actors: [{ key, node: "node-a", verdict: "returns" }] },
  });
  expect(await holdfast.restarts.plan(["node-a"], false)).toMatchObject({
    actors: [{ key, verdict: "held", why: "the restart is without resume" }],
  });
  expect(await typed("restart", "prepare", "node-a")).toMatchObject({
    code: 0,
    json: { node: "node-a", actors: 1, keeps: [{ key, verdict: "returns" }] },
  });
  await fleet.model.wait({ model: "blocker", state: "arrived", count: 2, timeoutMs: 30_000 });
  const stateOf = async () => (await holdfast.restarts.show("node-a"))?.state;
  await waitUntil("the restart is consumed", async () => (await stateOf()) === "consumed", { timeoutMs: 20_000 });
  const { restart } = (await holdfast.restarts.show("node-a")) ?? {};
  expect(restart?.acknowledgement).toMatchObject({ source: "supervisor", exit: { exitCode: 42 } });
  expect([await startedAt(), await holdfast.stuck.held()]).toEqual([genesis, []]);
  expect(await typed("restart", "list")).toMatchObject({ json: { restarts: [{ node: "node-a", state: "consumed" }] } });

  // What `client` has are the rights of a node.
  if (restart === undefined) throw new Error("it was just there");
  const forged = {
    v: 1,
    node: "node-a",
    generation: restart.generation,
    exitCode: 42,
    secret: "ab".repeat(16),
  } as const;
  await expect(holdfast.restarts.acknowledge(forged)).rejects.toMatchObject({ code: "HF-4007" });
  await supervisor.kill("SIGTERM"); // the node leaves as planned, and nobody starts it again
  expect(await supervisor.exited).toEqual({ code: 0, signal: null });
}, 90_000);
