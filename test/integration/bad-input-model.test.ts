import { readFileSync } from "node:fs";
import { defineAgent, withDelegates } from "@holdfast/agents";
import { startSimModel, type Fault, type Script, type SimModel } from "@holdfast/sim-model";
import type { Client } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";

const KEY = "sk-planted-key-77aa";
const PROMPT = "planted-prompt-5e3d";
const GO_ON = "Go on.";

/** Endpoints like to quote what they were sent. */
const quoting = `Bad request: key ${KEY}, prompt ${PROMPT}`;
const status = (code: number, type: string, retryAfterSeconds?: number): Fault => ({
  kind: "status",
  status: code,
  type,
  message: quoting,
  ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
});

/** Model → how it fails, and what the conversation says about it. */
const FAULTS = {
  "bad-401": { fault: status(401, "authentication_error"), code: "HF-5001" },
  "bad-429": { fault: status(429, "rate_limit_error", 0), code: "HF-5002" },
  "bad-500": { fault: status(500, "server_error"), code: "HF-5003" },
  "bad-garbage": { fault: { kind: "garbage" }, code: "HF-5004" },
  "bad-never": { fault: { kind: "never" }, code: "HF-5005" },
  "bad-idle": { fault: { kind: "idle" }, code: "HF-5005" },
  "bad-cut": { fault: { kind: "cut" }, code: "HF-5006" },
} as const satisfies Record<string, { readonly fault: Fault; readonly code: string }>;

/** Fails until somebody says {@link GO_ON}. */
const failing =
  (fault: Fault): Script =>
  ({ messages }) =>
    messages.some((message) => message.role === "user" && message.text === GO_ON)
      ? { text: "Back again." }
      : { fault, text: "This answer does not get to its end." };

const Failed = z.looseObject({ lastFailure: z.object({ cause: z.string(), code: z.string(), message: z.string() }) });
const Answered = z.looseObject({ lastText: z.string() });

let cluster: Cluster;
let sim: SimModel;
let fleet: AgentFleet;
let client: Client;
beforeAll(async () => {
  cluster = await Cluster.start();
  sim = await startSimModel({
    apiKey: KEY,
    scripts: Object.fromEntries(Object.entries(FAULTS).map(([name, { fault }]) => [name, failing(fault)])),
  });
  fleet = await AgentFleet.start(cluster, {
    namespace: "models",
    leaseTtlMs: 600,
    modelBaseUrl: `${sim.url}/v1`,
    env: {
      HOLDFAST_MODEL_API_KEY: KEY,
      HOLDFAST_MODEL_CONNECT_MS: "400",
      HOLDFAST_MODEL_FIRST_TOKEN_MS: "400",
      HOLDFAST_MODEL_IDLE_MS: "400",
      HOLDFAST_LOG_LEVEL: "debug",
    },
  });
  await fleet.startNode("node-a");
  client = await fleet.client();
});
afterAll(async () => {
  await client.close();
  await fleet.stop();
  await sim.close();
  await cluster.stop();
});

/** Starts a conversation with an agent that uses a model. */
async function converse(model: string, id = model): Promise<void> {
  const agent = defineAgent({ name: "tester", model });
  await client.holdfast.start("conversation", id, { agent, prompt: PROMPT }, { timeoutMs: 20_000 });
}

/** Waits until a conversation has one of the statuses. @returns its list fields and its context */
function untilRests(id: string, expected: string) {
  return waitUntil(
    `${id} is ${expected}`,
    async () => {
      const actor = await client.holdfast.read.actor(client.holdfast.key("conversation", id));
      if (actor?.header.list["status"] !== expected) return undefined;
      return { list: actor.header.list, context: actor.record.snapshot.context };
    },
    { timeoutMs: 20_000, dump: () => fleet.logs().slice(-3000) },
  );
}

describe.concurrent("an endpoint that fails", () => {
  test.each(Object.entries(FAULTS))(
    "%s ends in status error with a cause, and a message goes on",
    async (model, { code }) => {
      await converse(model);
      const { list, context } = await untilRests(model, "error");
      expect(list).toMatchObject({ status: "error", cause: "modelError" });
      expect(Failed.parse(context).lastFailure).toMatchObject({ cause: "modelError", code });

      const message = { type: "userMessage", messageId: "m1", text: GO_ON };
      expect(await client.holdfast.send({ type: "conversation", id: model }, message)).toMatchObject({
        kind: "applied",
      });
      expect(Answered.parse((await untilRests(model, "idle")).context).lastText).toBe("Back again.");
    },
  );

  test("a rate limit that passes costs a second try and nothing else", async () => {
    await converse("fault-429-once");
    const { context } = await untilRests("fault-429-once", "idle");
    expect(Answered.parse(context).lastText).toBe("Answered after the rate limit.");
    expect(sim.requests().filter(({ model }) => model === "fault-429-once")).toHaveLength(2);
  });

  test("a model that does not exist is named by its cause", async () => {
    await converse("no-such-model");
    const { context } = await untilRests("no-such-model", "error");
    expect(Failed.parse(context).lastFailure).toMatchObject({ cause: "modelError", code: "HF-5003" });
  });

  test("sub-agents that cannot reach their model fail their tasks, and the parent goes on with the reasons", async () => {
    const child = defineAgent({ name: "blocker", model: "bad-401" });
    const agent = withDelegates(defineAgent({ name: "tester", model: "delegate-two" }), [child]);
    await client.holdfast.start("conversation", "delegating", { agent, agents: { blocker: child }, prompt: PROMPT });
    const { context } = await untilRests("delegating", "idle");
    const { lastText } = Answered.parse(context);
    expect(lastText).toContain("Both children answered.");
    expect(lastText.split("HF-5001")).toHaveLength(3);
    const tasks = await client.holdfast.read.headers("task");
    expect(tasks.map(({ list }) => [list["status"], list["cause"]])).toEqual([
      ["failed", "modelError"],
      ["failed", "modelError"],
    ]);
  });
});

test("neither a prompt nor a key is in a log or in a failure", async () => {
  const logs = fleet.logs() + readFileSync(cluster.nats.logFile, "utf8") + cluster.ledger.log();
  expect(logs).toContain("model.retried");
  const failures = await Promise.all(
    Object.keys(FAULTS).map(async (id) => {
      const actor = await client.holdfast.read.actor(client.holdfast.key("conversation", id));
      return JSON.stringify([Failed.parse(actor?.record.snapshot.context).lastFailure, actor?.header]);
    }),
  );
  for (const secret of [KEY, PROMPT]) for (const text of [logs, ...failures]) expect(text).not.toContain(secret);
});
