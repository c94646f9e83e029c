import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAgent, withDelegates } from "@holdfast/agents";
import type { FamilyEntry } from "@holdfast/client";
import { filteredHistory, connectNats } from "@holdfast/jetstream";
import { inboxPrefixOf } from "@holdfast/process";
import { subjectsOf } from "@holdfast/protocol";
import type { Client } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";
import { runCommand } from "../scenarios/holdfast-command.ts";

const NAMESPACE = "main";
const blocker = defineAgent({ name: "blocker", model: "blocker" });
const delegator = withDelegates(defineAgent({ name: "delegator", model: "delegate-two" }), [blocker]);

const Heard = z.object({ id: z.string(), type: z.string(), actor: z.string(), on: z.string(), cursor: z.string() });
type Heard = z.infer<typeof Heard>;

let cluster: Cluster;
let fleet: AgentFleet;
let folder: string;
let client: Client;
const services: StartedProcess[] = [];
const shells: ChildProcess[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-events-"));
  cluster = await Cluster.start(NAMESPACE);
  fleet = await AgentFleet.start(cluster, { namespace: NAMESPACE, leaseTtlMs: 600 });
  await fleet.startNode("node-a");
  client = await fleet.client();
  await play();
});
afterAll(async () => {
  await client.close();
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

const shell = { text: (): string => "" };
/** What a reader that was there all the time saw of the family of c1: revision by revision, with a cursor each. */
const followed: { readonly place: string; readonly cursor: string }[] = [];
const placeOf = (item: FamilyEntry): string => (item.kind === "absent" ? item.key : `${item.key}@${item.entry.rev}`);
const rootOf = (id: string): string => client.holdfast.key("conversation", id);

/** Two conversations that delegate. Meanwhile a service, a node and the broker die, and a reader of the family stays. */
async function play(): Promise<void> {
  const { holdfast } = client;
  const [first] = fleet.nodes;
  shell.text = startShell(`hf.${NAMESPACE}.task.>`);
  await waitUntil("the shell listens", () => shell.text().includes("PONG"));
  await startService("tasks", "task.>");
  const mortal = await startService("all", ">");
  await startService("ends", `hf.${NAMESPACE}.task.*.*.completed`);
  const start = async (id: string): Promise<void> => {
    const input = { agent: delegator, agents: { blocker }, prompt: "Ask both children." };
    await holdfast.start("conversation", id, input, { idempotencyKey: id, timeoutMs: 30_000 });
  };
  await start("c1");
  const enough = new AbortController();
  const following = (async () => {
    for await (const item of holdfast.family({ root: rootOf("c1"), follow: true, signal: enough.signal }))
      followed.push({ place: placeOf(item), cursor: item.cursor });
  })();
  await fleet.model.wait({ model: "blocker", state: "blocked", count: 2 });
  await waitUntil("the mortal one has heard of both tasks", () => heardBy("all").length >= 6);

  await mortal.kill();
  await first?.kill();
  await fleet.startNode("node-b");
  await fleet.model.wait({ model: "blocker", state: "arrived", count: 4 });
  const beforeRestart = shell.text();
  await cluster.nats.restart();
  await waitUntil("the shell listens again", () => shell.text().slice(beforeRestart.length).includes("PONG"));
  await start("c2");
  await fleet.model.wait({ model: "blocker", state: "arrived", count: 6 });
  const risen = await startService("all", ">");
  expect(risen.hello["from"]).toBe(heardBy("all").at(-1)?.cursor ?? "none");
  for (const child of ["child A", "child B"]) await fleet.model.release(child);

  const isIdle = async (id: string): Promise<boolean> =>
    (await holdfast.read.header(rootOf(id)))?.list["status"] === "idle";
  await waitUntil("both are answered", async () => (await isIdle("c1")) && (await isIdle("c2")));
  const last = (await holdfast.read.header(rootOf("c1")))?.rev;
  await waitUntil(
    "the reader of the family has seen that",
    () => followed.at(-1)?.place === `${rootOf("c1")}@${last}`,
    {
      dump: () => followed.map(({ place }) => place),
    },
  );
  enough.abort();
  await following;
}

describe("public events, while services, nodes and the broker die", () => {
  test("three services hear each event once, in order per task; a shell drops repetitions by ce-id", async () => {
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

    // What the dead node had not seen acknowledged is published again, and plain NATS delivers that too.
    const ids = idsIn(shell.text());
    expect(ids.length).toBeGreaterThan(new Set(ids).size);
    expect(new Set(ids)).toEqual(new Set(wanted.tasks.map(({ id }) => id)));
  });
});

describe("the family of a conversation, after all that", () => {
  const read = async (from?: string): Promise<readonly string[]> => {
    const places: string[] = [];
    for await (const item of client.holdfast.family({ root: rootOf("c1"), from })) places.push(placeOf(item));
    return places;
  };

  test("is every step of it once, read later as by the one who was there; from each cursor the rest", async () => {
    const { journals, actors } = await cluster.evidence(NAMESPACE);
    const parents = new Map(actors.map(({ key, parent }) => [key, parent?.key]));
    const isOfFamily = (key: string | undefined): boolean =>
      key !== undefined && (key === rootOf("c1") || isOfFamily(parents.get(key)));
    const wanted = [...journals.values()].flat().filter(({ key }) => isOfFamily(key));
    expect(new Set(wanted.map(({ key }) => key)).size).toBe(5); // two tasks and their conversations
    const places = wanted.map(({ key, rev }) => `${key}@${rev}`).toSorted();
    expect(followed.map(({ place }) => place).toSorted()).toEqual(places);
    expect((await read()).toSorted()).toEqual(places);

    for (const at of [0, 3, Math.floor(followed.length / 2), followed.length - 1]) {
      const rest = followed.slice(at + 1).map(({ place }) => place);
      expect((await read(followed[at]?.cursor)).toSorted()).toEqual(rest.toSorted());
    }
  });

  test("has a ledger of its calls: decided, created, done again after the crash, settled, applied once", async () => {
    const rows = await client.holdfast.delegations(rootOf("c1"));
    expect(rows).toHaveLength(2);
    for (const row of rows) {
      expect(row).toMatchObject({ src: "task", attempts: 1, reissued: 1, appliedTimes: 1 });
      expect(row).toMatchObject({
        created: { node: "node-a" },
        settled: { status: "done" },
        applied: { outcome: "done" },
      });
    }
    const later = await client.holdfast.delegations(rootOf("c2"));
    expect(later.map(({ reissued, created }) => [reissued, created?.node])).toEqual([
      [0, "node-b"],
      [0, "node-b"],
    ]);
  });

  test("is what the commands print", async () => {
    const { user, password, url } = cluster.nats;
    const env = {
      HOLDFAST_HOME: folder,
      HOLDFAST_NATS_URL: url,
      HOLDFAST_NATS_USER: user,
      HOLDFAST_NATS_PASSWORD: password,
      HOLDFAST_NAMESPACE: NAMESPACE,
    };
    const half = followed[Math.floor(followed.length / 2)]?.cursor ?? "";
    const [family, ledger] = await Promise.all([
      runCommand(["family", "c1", "--from", half], { env }),
      runCommand(["delegations", "conversation/c1", "--json"], { env }),
    ]);
    expect([family.code, ledger.code], family.stderr + ledger.stderr).toEqual([0, 0]);
    expect([...family.stdout.matchAll(/^\S+  \S+  (\S+@\d+)  /gm)].map(([, place]) => place)).toEqual(await read(half));
    expect(ledger.json).toMatchObject({
      root: rootOf("c1"),
      delegations: await client.holdfast.delegations(rootOf("c1")),
    });
  });
});
