import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectNats, filteredHistory } from "@holdfast/jetstream";
import { inboxPrefixOf } from "@holdfast/process";
import { AuditEntry, subjectsOf } from "@holdfast/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { runCommand } from "../scenarios/holdfast-command.ts";

const Seen = z.object({ seen: z.array(z.unknown()) });
const Rows = z.object({ stuck: z.array(z.looseObject({ key: z.string(), kind: z.string() })) });
const Exported = z.object({
  key: z.string(),
  record: z.object({ seq: z.number(), bytes: z.string() }),
  entries: z.array(z.looseObject({ code: z.string() })),
  messages: z.array(z.object({ place: z.string(), bytes: z.string() })),
});

let cluster: Cluster;
let folder: string;
const nodes: StartedProcess[] = [];
beforeAll(async () => {
  cluster = await Cluster.start();
  folder = mkdtempSync(join(tmpdir(), "holdfast-poison-"));
});
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.kill()));
  await cluster.stop();
  rmSync(folder, { recursive: true });
});

async function startNode(
  namespace: string,
  name: string,
  isHealed: boolean,
  runtime: Readonly<Record<string, number>> = {},
): Promise<StartedProcess> {
  const { url, user, password } = cluster.nats;
  const settings = {
    nats: { servers: [url], user, password, inboxPrefix: inboxPrefixOf("node") },
    namespace,
    name,
    ledgerUrl: cluster.ledgerUrl,
    isHealed,
    runtime: { leaseTtlMs: 600, movesAtOnce: 0, ...runtime },
  };
  const node = await startProcess(join(import.meta.dirname, "../harness/poison-node-under-test.ts"), [
    JSON.stringify(settings),
  ]);
  nodes.push(node);
  return node;
}

/** Runs `holdfast` beside the stack, its operator's commands with the rights of `user`. */
async function holdfast(user: "client" | "operator", ...args: readonly string[]) {
  const home = join(folder, user);
  mkdirSync(home, { recursive: true });
  const credentials = (name: "client" | "operator") => ({
    ...cluster.nats.credentials(name),
    inboxPrefix: inboxPrefixOf(name),
  });
  const stack = {
    v: 1,
    pid: process.pid,
    durabilityClass: "F",
    modelUrl: cluster.ledgerUrl,
    ledgerUrl: cluster.ledgerUrl,
    root: folder,
    nodes: [],
    natsUrl: cluster.nats.url,
    namespace: "main",
    client: credentials("client"),
    operator: credentials(user),
  };
  writeFileSync(join(home, "stack.json"), JSON.stringify(stack));
  return runCommand([...args, "--json"], { env: { HOLDFAST_HOME: home } });
}

const stuckRows = async (...args: readonly string[]) =>
  Rows.parse((await holdfast("operator", "stuck", ...args)).json).stuck;

describe("a message that a build cannot take, in a real fleet", () => {
  // It runs a dozen commands, each a process of its own: on a busy machine that takes long.
  test(
    "is taken out, listed when its node is gone, exported, parked, and applied once by a build that can",
    { timeout: 240_000 },
    async () => {
      const first = await startNode("main", "n1", false);
      await using client = await cluster.client("main");
      const key = client.holdfast.key("vault", "v1");
      const seen = async (id = "v1"): Promise<readonly unknown[]> =>
        Seen.parse((await client.holdfast.read.actor(client.holdfast.key("vault", id)))?.record.snapshot.context).seen;
      for (const id of ["v1", "v2"]) await client.holdfast.start("vault", id, {}, { idempotencyKey: id });
      const options = { idempotencyKey: "poison", timeoutMs: 300 };
      expect(await client.holdfast.send(key, { type: "BREAK", n: "poison" }, options)).toEqual({ kind: "accepted" });
      for (const id of ["v1", "v2"]) {
        const sent = await client.holdfast.send({ type: "vault", id }, { type: "ADD", n: 1 });
        expect(sent).toMatchObject({ kind: "applied" });
        expect(await seen(id)).toEqual([1]);
      }
      await first.kill();

      const listed = { key, kind: "quarantined", code: "HF-3101", attempts: 3, node: "n1" };
      expect(await stuckRows()).toMatchObject([listed]);
      expect(await stuckRows("--kind", "parked")).toEqual([]);
      expect(await stuckRows("--type", "vault")).toHaveLength(1);
      const file = join(folder, "v1.json");
      expect(await holdfast("operator", "stuck", "export", "vault/v1", "--to", file)).toMatchObject({ code: 0 });
      const exported = Exported.parse(JSON.parse(readFileSync(file, "utf8")));
      expect(exported).toMatchObject({ key, entries: [{ code: "HF-3101" }], messages: [{}] });
      expect(Buffer.from(exported.messages[0]?.bytes ?? "", "base64").includes("BREAK")).toBe(true);
      expect(statSync(file).mode & 0o777).toBe(0o600);

      const waits = await holdfast("operator", "stuck", "park", "vault/v1", "--timeout", "300");
      expect(waits).toMatchObject({ code: 0, json: { key, verb: "park", outcome: { kind: "waiting" } } });
      const again = await holdfast("operator", "stuck", "retry", "vault/v1", "--timeout", "300");
      expect(again).toMatchObject({ code: 1, json: { error: { code: "HF-3105" } } });
      await startNode("main", "n2", true);
      await waitUntil("it is parked", async () => (await client.holdfast.stuck.entries(key)).length === 2);
      expect(await client.holdfast.send(key, { type: "ADD", n: 2 }, { timeoutMs: 300 })).toEqual({ kind: "accepted" });
      expect(await seen()).toEqual([1]);
      const skipped = await holdfast("operator", "stuck", "skip", "vault/v1");
      expect(skipped).toMatchObject({ code: 1, json: { error: { code: "HF-3104" } } });
      const retried = await holdfast("operator", "stuck", "retry", key);
      expect(retried).toMatchObject({ code: 0, json: { key, verb: "retry", outcome: { kind: "done" } } });
      await waitUntil("everything is applied", async () => (await seen()).length === 3);
      expect(new Set(await seen())).toEqual(new Set([1, 2, "poison"]));
      expect(await stuckRows()).toEqual([]);
      await client.holdfast.send(key, { type: "BREAK", n: "poison" }, options);
      expect(await seen()).toHaveLength(3);

      const link = await connectNats({
        servers: [cluster.nats.url],
        user: "operator",
        pass: cluster.nats.credentials("operator").password,
        inboxPrefix: inboxPrefixOf("operator"),
        name: "auditor",
      });
      const lines = await filteredHistory(link, { stream: subjectsOf("main").auditStream, filters: [">"] });
      await link.close();
      const entries = lines.map(({ bytes }) => AuditEntry.parse(JSON.parse(Buffer.from(bytes).toString("utf8"))));
      expect(entries.map(({ verb, by, node }) => `${verb} ${by} ${node.split(":")[0]}`)).toEqual([
        "park person-local n2",
        "skip person-local n2",
        "retry person-local n2",
      ]);
    },
  );

  test("only an operator may say what happens to it", async () => {
    const refused = await holdfast("client", "stuck", "park", "vault/v2");
    expect(refused).toMatchObject({ code: 1, json: { error: { code: "HF-4007" } } });
    expect(refused.stderr).toContain("stuck.command.");
    expect((await holdfast("client", "stuck")).code).toBe(0);
  });
});

describe("a message that ends the process of whoever takes it, in a real fleet", () => {
  test(
    "takes down three nodes unnoticed and two alone, then it is set aside, and a build that survives it takes it after retry",
    { timeout: 120_000 },
    async () => {
      const limits = { maxAttempts: 2 };
      const deaths: Promise<unknown>[] = [];
      const begin = async (name: string): Promise<void> => {
        deaths.push((await startNode("loop", name, false, limits)).exited);
      };
      await begin("l1");
      await using client = await cluster.client("loop");
      const [poisoned, neighbour] = [client.holdfast.key("vault", "p"), client.holdfast.key("vault", "q")];
      const seen = async (key: string): Promise<readonly unknown[]> =>
        Seen.parse((await client.holdfast.read.actor(key))?.record.snapshot.context).seen;
      for (const id of ["p", "q"]) await client.holdfast.start("vault", id, {}, { idempotencyKey: id });
      const lost = { idempotencyKey: "crash", timeoutMs: 100 };
      expect(await client.holdfast.send(poisoned, { type: "CRASH", n: "crash" }, lost)).toEqual({ kind: "accepted" });
      for (const key of [poisoned, neighbour])
        await client.holdfast.send(key, { type: "ADD", n: 1 }, { idempotencyKey: `add-${key}`, timeoutMs: 100 });
      for (const name of ["l2", "l3", "l4", "l5", "l6"]) {
        await deaths.at(-1);
        await begin(name);
      }
      await waitUntil("both go on", async () => (await seen(poisoned)).length + (await seen(neighbour)).length === 2);
      const [entry, ...others] = await client.holdfast.stuck.entries();
      expect(entry).toMatchObject({
        key: poisoned,
        subject: "message",
        code: "HF-3102",
        state: "quarantined",
        attempts: 2,
      });
      expect(entry?.history.map(({ node }) => node.split(":")[0])).toEqual(["l4", "l5"]);
      expect(others).toEqual([]);

      await nodes.at(-1)?.kill();
      await startNode("loop", "l7", true, limits);
      expect(await client.holdfast.stuck.command("retry", poisoned)).toMatchObject({ kind: "done" });
      await waitUntil("it is applied", async () => (await seen(poisoned)).length === 2);
      expect(await seen(poisoned)).toEqual([1, "crash"]);
      await waitUntil("nothing is stuck", async () => (await client.holdfast.stuck.entries()).length === 0);
    },
  );
});
