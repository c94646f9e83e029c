import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { countDelegations } from "@holdfast/audit";
import { agentNamed } from "@holdfast/agents";
import { foldTranscript } from "@holdfast/machines";
import { startSimModel, type SimModel } from "@holdfast/sim-model";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";
import { runCommand } from "../scenarios/holdfast-command.ts";
import { writeSeededDocuments } from "../scenarios/seeded-documents.ts";

/** What a node waits for its first connection, and what a process needs around it, ms. */
const NODE_LIMIT_MS = 30_000;
const SLACK_MS = 15_000;
const SEED = 3;

/** A port nobody listens on. */
async function deadPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 1;
}

/** Started first and looked at last: all it does is wait for its limit. */
let silentStart: { readonly afterMs: number; readonly error: unknown } | undefined;
let silentEnd: Promise<void> | undefined;
beforeAll(async () => {
  const env = {
    HOLDFAST_NATS_URL: `nats://127.0.0.1:${await deadPort()}`,
    HOLDFAST_MODEL_BASE_URL: "http://127.0.0.1:1/v1",
  };
  const startedAtMs = performance.now();
  silentEnd = startProcess(fileURLToPath(import.meta.resolve("@holdfast/node-app/main")), ["--tied"], env).then(
    (node) => node.kill(),
    (error: unknown) => {
      silentStart = { afterMs: performance.now() - startedAtMs, error };
    },
  );
});

describe("NATS dies in the middle of a survey", () => {
  const documents = 6;
  let folder: string;
  let cluster: Cluster;
  let sim: SimModel;
  let fleet: AgentFleet;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "holdfast-outage-"));
    await writeSeededDocuments(join(folder, "documents"), documents, SEED);
    cluster = await Cluster.start();
    sim = await startSimModel({ thinkMs: 500 });
    fleet = await AgentFleet.start(cluster, {
      namespace: "outage",
      leaseTtlMs: 1500,
      modelBaseUrl: `${sim.url}/v1`,
      env: { HOLDFAST_ROOT: join(folder, "documents"), HOLDFAST_OUTPUT: join(folder, "reports") },
    });
    await fleet.startNode("node-a");
    await fleet.startNode("node-b");
  });
  afterAll(async () => {
    await fleet.stop();
    await sim.close();
    await cluster.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test(`what was accepted is done, once, and the survey finishes (seed ${SEED})`, async () => {
    await using client = await fleet.client();
    const { holdfast } = client;
    const key = holdfast.key("conversation", "survey");
    const say = (messageId: string, text: string) =>
      holdfast.send(key, { type: "userMessage", messageId, text }, { idempotencyKey: messageId });
    const prompt = `Survey the documents in "documents".`;
    await holdfast.start("conversation", "survey", { ...agentNamed("surveyor"), prompt }, { timeoutMs: 20_000 });
    await sim.waitForRequests({ model: "survey-reader", count: 3, timeoutMs: 30_000 });
    expect(await say("before", "Said before the outage.")).toMatchObject({ kind: "applied" });

    await cluster.nats.kill();
    const meanwhile = say("meanwhile", "Said in the outage.").catch(() => undefined);
    const outages = (): number => fleet.logs().split("nats.disconnected").length - 1;
    await waitUntil("both nodes have lost the server", () => outages() >= 2);
    await cluster.nats.restart();
    // Whoever was not told that it is stored says it again, under the same key.
    const taken = (await meanwhile) ?? (await say("meanwhile", "Said in the outage."));
    expect(["applied", "ignored", "accepted"]).toContain(taken.kind);

    const wait = await waitUntil(
      "the survey asks its question",
      async () => (await holdfast.read.headers("ownerWait")).find(({ status }) => status === "active"),
      { timeoutMs: 60_000, dump: () => fleet.logs().slice(-4000) },
    );
    const answer = { type: "answer", answerId: "a1", value: "words" };
    expect(await holdfast.send(wait.key, answer)).toMatchObject({ kind: "applied" });
    await waitUntil(
      "the survey rests",
      async () => (await holdfast.read.actor(key))?.header.list["status"] === "idle",
      { timeoutMs: 60_000, dump: () => fleet.logs().slice(-4000) },
    );

    const figures = countDelegations(await cluster.evidence("outage"), { delegatingTools: ["task"] });
    expect(figures).toMatchObject({
      decided: documents,
      created: documents,
      applied: documents,
      duplicates: 0,
      lost: 0,
    });
    expect(await cluster.figures()).toMatchObject({ applied: documents + 2, duplicateEffects: 0, lost: 0 });
    const transcript = foldTranscript((await holdfast.read.journal(key)).map(({ event }) => event));
    const said = transcript.flatMap((message) => (message.role === "user" ? [message.messageId] : []));
    expect(said).toEqual(["prompt", "before", "meanwhile"]);
  });
});

describe("no NATS at the start", () => {
  test("a command says so", async () => {
    const env = { HOLDFAST_NATS_URL: `nats://127.0.0.1:${await deadPort()}` };
    const { code, json, stderr } = await runCommand(["fleet", "--json"], { env });
    expect(code).toBe(1);
    expect(json).toMatchObject({ error: { code: "HF-4001" } });
    expect(stderr).toContain("HF-4001");
  });

  test("a node says so within its limit", async () => {
    await silentEnd;
    expect(String(silentStart?.error)).toMatch(/ended \(1\)[\s\S]*HF-4001: .*Start the server or correct the address/);
    expect(silentStart?.afterMs).toBeLessThan(NODE_LIMIT_MS + SLACK_MS);
  });
});
