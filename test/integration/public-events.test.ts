import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAgent, withDelegates } from "@holdfast/agents";
import { filteredHistory, connectNats } from "@holdfast/jetstream";
import { inboxPrefixOf } from "@holdfast/process";
import { subjectsOf } from "@holdfast/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";

const NAMESPACE = "main";
const blocker = defineAgent({ name: "blocker", model: "blocker" });
const delegator = withDelegates(defineAgent({ name: "delegator", model: "delegate-two" }), [blocker]);

const Heard = z.object({ id: z.string(), type: z.string(), actor: z.string(), on: z.string(), cursor: z.string() });
type Heard = z.infer<typeof Heard>;

let cluster: Cluster;
let fleet: AgentFleet;
let folder: string;
const services: StartedProcess[] = [];
const shells: ChildProcess[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-events-"));
  cluster = await Cluster.start(NAMESPACE);
  fleet = await AgentFleet.start(cluster, { namespace: NAMESPACE, leaseTtlMs: 600 });
});
afterAll(async () => {
  for (const shell of shells) shell.kill("SIGKILL");
  await Promise.all(services.map((service) => service.kill()));
  await fleet.stop();
  await cluster.stop();
  rmSync(folder, { recursive: true });
});

const guest = () => {
  const { user, password } = cluster.nats.credentials("subscriber");
  return { servers: [cluster.nats.url], user, password, inboxPrefix: inboxPrefixOf("subscriber") };
};

const fileOf = (name: string): string => join(folder, `${name}.jsonl`);
async function startService(name: string, subject: string): Promise<StartedProcess> {
  const options = { nats: guest(), namespace: NAMESPACE, subject, file: fileOf(name) };
  const service = await startProcess(join(import.meta.dirname, "../harness/event-service-under-test.ts"), [
    JSON.stringify(options),
  ]);
  services.push(service);
  return service;
}
function heardBy(name: string): readonly Heard[] {
  if (!existsSync(fileOf(name))) return [];
  const lines = readFileSync(fileOf(name), "utf8").split("\n").filter(Boolean);
  return lines.map((line) => Heard.parse(JSON.parse(line)));
}

/** Bash and a socket, nothing of this project. */
function startShell(subject: string): () => string {
  const { user, password } = guest();
  const script = join(import.meta.dirname, "../harness/plain-subscriber.sh");
  const shell = spawn("bash", [script, String(cluster.nats.port), subject], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env["PATH"] ?? "", NATS_USER: user, NATS_PASSWORD: password },
  });
  shells.push(shell);
  let text = "";
  shell.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  return () => text;
}
const idsIn = (text: string): readonly string[] => [...text.matchAll(/^ce-id: (\S+)$/gm)].map(([, id = ""]) => id);

/** What the stream holds, read without the readers that are tested: the first of every id. */
async function storedEvents(): Promise<readonly { readonly id: string; readonly on: string }[]> {
  const { user, password, servers, inboxPrefix } = guest();
  const link = await connectNats({ servers, user, pass: password, inboxPrefix, name: "judge" });
  const messages = await filteredHistory(link, { stream: subjectsOf(NAMESPACE).eventsStream(0), filters: [">"] });
  await link.close();
  const first = new Map<string, string>();
  for (const message of messages) {
    const id = message.header("ce-id") ?? "";
    if (!first.has(id)) first.set(id, message.subject);
  }
  return [...first].map(([id, on]) => ({ id, on }));
}

describe("public events, while services, nodes and the broker die", () => {
  test("three services hear each event once, in order per task; a shell drops repetitions by ce-id", async () => {
    const first = await fleet.startNode("node-a");
    await using client = await fleet.client();
    const { holdfast } = client;
    const tasks = startShell(`hf.${NAMESPACE}.task.>`);
    await waitUntil("the shell listens", () => tasks().includes("PONG"));
    await startService("tasks", "task.>");
    const mortal = await startService("all", ">");
    await startService("ends", `hf.${NAMESPACE}.task.*.*.completed`);
    const start = async (id: string): Promise<void> => {
      const input = { agent: delegator, agents: { blocker }, prompt: "Ask both children." };
      await holdfast.start("conversation", id, input, { idempotencyKey: id, timeoutMs: 30_000 });
    };
    await start("c1");
    await fleet.model.wait({ model: "blocker", state: "blocked", count: 2 });
    await waitUntil("the mortal one has heard of both tasks", () => heardBy("all").length >= 6);

    await mortal.kill();
    await first.kill();
    await fleet.startNode("node-b");
    await fleet.model.wait({ model: "blocker", state: "arrived", count: 4 });
    const beforeRestart = tasks();
    await cluster.nats.restart();
    await waitUntil("the shell listens again", () => tasks().slice(beforeRestart.length).includes("PONG"));
    await start("c2");
    await fleet.model.wait({ model: "blocker", state: "arrived", count: 6 });
    const risen = await startService("all", ">");
    expect(risen.hello["from"]).toBe(heardBy("all").at(-1)?.cursor ?? "none");
    for (const child of ["child A", "child B"]) await fleet.model.release(child);

    const isIdle = async (id: string): Promise<boolean> =>
      (await holdfast.read.header(holdfast.key("conversation", id)))?.list["status"] === "idle";
    await waitUntil("both are answered", async () => (await isIdle("c1")) && (await isIdle("c2")));
    const stored = await waitUntil("every idle is announced", async () => {
      const events = await storedEvents();
      return ["c1", "c2"].every((id) => events.some(({ on }) => on.endsWith(`.${id}.idle`))) && events;
    });
    const wanted = {
      tasks: stored.filter(({ on }) => on.startsWith(`hf.${NAMESPACE}.task.`)),
      all: stored,
      ends: stored.filter(({ on }) => on.endsWith(".completed")),
    };
    for (const [name, expected] of Object.entries(wanted)) {
      await waitUntil(`${name} has heard the last one`, () =>
        heardBy(name).some(({ id }) => id === expected.at(-1)?.id),
      );
      expect(heardBy(name).map(({ id, on }) => ({ id, on }))).toEqual(expected);
    }
    const lives = Map.groupBy(heardBy("tasks"), ({ actor }) => actor);
    expect([...lives.values()].map((life) => life.map(({ type }) => type.split(".").at(-1)))).toEqual(
      Array.from({ length: 4 }, () => ["created", "started", "completed"]),
    );

    // The shell was away while the broker was; what is published then, and acknowledged to nobody, is published again.
    const ids = idsIn(tasks());
    expect(ids.length).toBeGreaterThan(new Set(ids).size);
    expect(new Set(ids)).toEqual(new Set(wanted.tasks.map(({ id }) => id)));
  });
});
