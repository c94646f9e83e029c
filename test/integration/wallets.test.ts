import { defineAgent } from "@holdfast/agents";
import { WalletTeller, type HoldfastClient } from "@holdfast/client";
import { connectNats, readLast, streamPosition, type Link } from "@holdfast/jetstream";
import { inboxPrefixOf } from "@holdfast/process";
import { FLEET_PRINCIPAL, parseActorKey, shardOf, subjectsOf, type Payer, type WalletState } from "@holdfast/protocol";
import { createClient, type Client } from "holdfast";
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import type { StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";
import { runCommand, type CommandResult } from "../scenarios/holdfast-command.ts";

// Wallets on real processes. The rules are tested in packages/machines; here it is money across a SIGKILL, and many who want it at once.

/** A microdollar a token. */
const price = { inputMicroUsd: 1_000_000, outputMicroUsd: 1_000_000 };
const limits = { maxOutputTokens: 100 };
const blocker = defineAgent({ name: "blocker", model: "blocker", limits, prices: { blocker: price } });
const echo = defineAgent({ name: "echo", model: "echo", limits, prices: { echo: price } });
const budget = { wallet: "w1" };

const Shown = z.looseObject({
  open: z.record(z.string(), z.unknown()),
  unresolved: z.record(z.string(), z.unknown()),
  settled: z.looseObject({ calls: z.number(), microUsd: z.number() }),
  balance: z.looseObject({ accounted: z.looseObject({ microUsd: z.number() }) }),
  ledger: z.looseObject({ agrees: z.boolean() }),
});

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster.stop());

function holdfastCommand(namespace: string, ...args: readonly string[]): Promise<CommandResult> {
  const { url, user, password } = cluster.nats;
  const env = { HOLDFAST_NATS_URL: url, HOLDFAST_NATS_USER: user, HOLDFAST_NATS_PASSWORD: password };
  return runCommand([...args, "--json"], { env: { ...env, HOLDFAST_NAMESPACE: namespace } });
}

async function withLink<T>(work: (link: Link) => Promise<T>): Promise<T> {
  const { url, user, password } = cluster.nats;
  const inboxPrefix = inboxPrefixOf("node");
  const link = await connectNats({ servers: [url], user, pass: password, inboxPrefix, name: "reader" });
  try {
    return await work(link);
  } finally {
    await link.close();
  }
}

/** The bytes of an actor's record, as they are stored. */
const storedBytes = (holdfast: HoldfastClient, namespace: string, key: string): Promise<string> =>
  withLink(async (link) => {
    const shard = shardOf(holdfast.manifest, parseActorKey(key).partition);
    const subjects = subjectsOf(namespace);
    const stored = await readLast(link, subjects.actorsStream(shard), subjects.actorSubject(shard, key));
    return Buffer.from(stored?.bytes ?? []).toString("base64");
  });

/** Messages that were ever stored for any actor of a namespace. */
const inboxMessages = (holdfast: HoldfastClient, namespace: string): Promise<number> =>
  withLink(async (link) => {
    let messages = 0;
    for (let shard = 0; shard < holdfast.manifest.shards; shard += 1)
      messages += (await streamPosition(link, subjectsOf(namespace).inboxStream(shard))).lastSeq;
    return messages;
  });

test("money across SIGKILLs: an attempt that died is unresolved, a fence stays byte for byte, and only a person lets work go on", async () => {
  const namespace = "wallets";
  const fleet = await AgentFleet.start(cluster, { namespace, leaseTtlMs: 600 });
  let client: Client | undefined;
  try {
    let node: StartedProcess = await fleet.startNode("node-0");
    const replaceNode = async (name: string): Promise<void> => {
      process.kill(node.pid, "SIGKILL");
      await node.exited;
      node = await fleet.startNode(name);
    };
    client = await fleet.client();
    const { holdfast } = client;
    const command = (...args: readonly string[]) => holdfastCommand(namespace, ...args);
    const wallet = async () => (await holdfast.wallets.get("w1")).state;
    const resume = (id: string) => holdfast.send({ type: "conversation", id }, { type: "resume" });
    const start = (id: string, agent: typeof echo) =>
      holdfast.conversations.start(id, { agent, prompt: `prompt of ${id}`, budget });
    const listed = async (id: string) => (await holdfast.read.header(holdfast.key("conversation", id)))?.list ?? {};
    const until = (id: string, status: string) =>
      waitUntil(`${id} is ${status}`, async () => (await listed(id))["status"] === status, {
        timeoutMs: 20_000,
        dump: () => fleet.logs().slice(-4000),
      });

    expect((await command("budget", "set", "w1", "--usd", "0.001")).code).toBe(0);
    // Who has no budget asks nobody: a turn is the start and the outcome of the model call, and not a message more.
    const messages = await inboxMessages(holdfast, namespace);
    await holdfast.conversations.start("c0", { agent: echo, prompt: "prompt of c0" });
    await until("c0", "idle");
    expect((await inboxMessages(holdfast, namespace)) - messages).toBe(2);
    // Where nobody can say whether it may be spent, nothing is.
    const unknown = { wallet: "nobody" };
    await holdfast.conversations.start("c9", { agent: echo, prompt: "prompt of c9", budget: unknown });
    await until("c9", "error");
    expect((await fleet.model.requests()).map(({ lastUser }) => lastUser)).toEqual(["prompt of c0"]);
    await start("c1", blocker);
    await fleet.model.wait({ model: "blocker", state: "blocked", count: 1 });
    const [first = ""] = Object.keys((await wallet()).open);
    expect(first).toMatch(/:1$/);
    await replaceNode("node-1");
    await fleet.model.wait({ model: "blocker", state: "arrived", count: 2 });
    expect(await wallet()).toMatchObject({ open: { [first.replace(/1$/, "2")]: {} }, unresolved: { [first]: {} } });
    await fleet.model.release("prompt of c1");
    await until("c1", "idle");
    const { settled, unresolved } = await wallet();
    expect([settled.calls, Object.keys(unresolved)]).toEqual([1, [first]]);
    expect((await command("budget", "close", "w1", first, "--usd", "0.00005", "--tokens", "50")).code).toBe(0);
    const closed = Shown.parse((await command("budget", "show", "w1")).json);
    expect(closed).toMatchObject({ unresolved: {}, settled: { calls: 2 }, ledger: { agrees: true } });
    expect(closed.balance.accounted.microUsd).toBe(settled.microUsd + 50);

    await holdfast.wallets.set("w1", { microUsd: 100 });
    await start("c2", echo);
    await until("c2", "waiting");
    expect(await listed("c2")).toMatchObject({ waitingOn: "budget" });
    const key = holdfast.wallets.key("w1");
    await waitUntil("the wallet is at rest", async () => (await holdfast.read.actor(key))?.record.outbox.length === 0);
    const before = await storedBytes(holdfast, namespace, key);
    expect((await wallet()).fence).toMatchObject({
      fenceId: "fence-1",
      status: "paused",
      scope: "root",
      autoResume: false,
    });
    await replaceNode("node-2");
    await start("c3", echo);
    await until("c3", "waiting");
    expect(await storedBytes(holdfast, namespace, key)).toBe(before);

    await holdfast.wallets.set("w1", { microUsd: 10_000 });
    await start("c4", echo);
    await until("c4", "waiting"); // a raised limit lifts no fence, and wakes nobody
    expect([await listed("c2"), await listed("c3")]).toMatchObject([{ status: "waiting" }, { status: "waiting" }]);
    await resume("c2");
    await until("c2", "idle");
    expect(await listed("c3")).toMatchObject({ status: "waiting", waitingOn: "budget" });
    expect((await command("budget", "resume", "w1")).code).toBe(0);
    expect(await listed("c3")).toMatchObject({ status: "waiting" });
    await resume("c3");
    await until("c3", "idle");
    expect((await wallet()).settled.calls).toBe(4);
    const { json } = await command("budget", "list");
    expect(json).toMatchObject({
      wallets: expect.arrayContaining([expect.objectContaining({ id: "w1", status: "open" })]),
    });
  } finally {
    await client?.close();
    await fleet.stop();
  }
});

test("150 who want money at once, of ten roots below one limit: none is refused what comes back, none is lost; who is refused is told by which wallet", async () => {
  const namespace = "crowd";
  const fleet = await AgentFleet.start(cluster, { namespace, leaseTtlMs: 2000 });
  const clients: Client[] = [];
  try {
    await fleet.startNode("node-0");
    const { url, user, password } = cluster.nats;
    const open = async (principal: typeof FLEET_PRINCIPAL): Promise<HoldfastClient> => {
      const nats = { servers: [url], user, password, inboxPrefix: inboxPrefixOf("node") };
      const client = await createClient({ nats, namespace, principal });
      clients.push(client);
      return client.holdfast;
    };
    const owner = await open({ kind: "person", id: "local", roles: [] });
    const roots = Array.from({ length: 10 }, (_, index) => `root-${index}`);
    // 40 calls at a time, and in the end all but a few: what is settled is far below what is held.
    await owner.wallets.set("global", { microUsd: 4000 });
    for (const root of roots) await owner.wallets.set(root, {});
    const tellers = [
      new WalletTeller(await open(FLEET_PRINCIPAL), hex),
      new WalletTeller(await open(FLEET_PRINCIPAL), hex),
    ];
    const amount = { microUsd: 100, tokens: 10 };
    const { signal } = new AbortController();
    const calls = Array.from({ length: 150 }, async (_, index) => {
      const teller = tellers[index % 2];
      const wallet = roots[index % roots.length] ?? "";
      const request = { payer: { wallet }, job: `job-${index}`, estimate: amount, maximum: amount, signal };
      const money = await teller?.reserve(request);
      await money?.settle({ microUsd: 20, tokens: 5 }, 19_999.5);
    });
    await Promise.all(calls);
    const states = await Promise.all(roots.map(async (root) => (await owner.wallets.get(root)).state));
    const total = (of: (state: WalletState) => number): number => states.reduce((sum, state) => sum + of(state), 0);
    expect(total(({ settled }) => settled.calls)).toBe(150);
    expect(total(({ settled }) => settled.microUsd)).toBe(3000);
    expect(total(({ open: running, unresolved }) => Object.keys(running).length + Object.keys(unresolved).length)).toBe(
      0,
    );
    const { state: global } = await owner.wallets.get("global");
    const lent = Object.values(global.lent).reduce((sum, one) => sum + one.lent.microUsd - one.returned.microUsd, 0);
    expect(lent).toBeLessThanOrEqual(4000);
    expect(lent).toBeGreaterThanOrEqual(3000);

    // 1000 are left of all: what wants more is refused by the wallet above, which has no fence, and gets it once the limit is raised.
    const [teller] = tellers;
    const ask = (payer: Payer, microUsd: number | undefined) => {
      const maximum = { ...(microUsd !== undefined && { microUsd }), tokens: 10 };
      return teller?.reserve({ payer, job: `big-${microUsd ?? "unpriced"}`, estimate: maximum, maximum, signal });
    };
    const refusedBy = (code: string, scope: string, wallet: string) => ({ code, facts: { scope, wallet } });
    await expect(ask({ wallet: "root-0" }, 2000)).rejects.toMatchObject(refusedBy("HF-5301", "global", "global"));
    await expect(ask({ wallet: "root-0" }, undefined)).rejects.toMatchObject(refusedBy("HF-5303", "global", "global"));
    expect((await owner.wallets.get("global")).state.fence).toBeUndefined();
    await owner.wallets.set("global", { microUsd: 10_000 });
    await (await ask({ wallet: "root-0" }, 2000))?.release("not needed");

    // A task with a wallet of its own: its own limit first, then that of the root, which is fenced for all below it.
    const own = { id: "task-a", limit: { microUsd: 900 } };
    await expect(ask({ wallet: "root-1", own }, 1000)).rejects.toMatchObject(refusedBy("HF-5301", "task", "task-a"));
    const money = await ask({ wallet: "root-1", own }, 800);
    await money?.settle({ microUsd: 700, tokens: 5 });
    const { state: above } = await owner.wallets.get("root-1");
    expect(above.lent[owner.wallets.key("task-a")]?.lent.microUsd).toBeGreaterThanOrEqual(800);
    await owner.wallets.set("root-1", { microUsd: 1050 }); // 300 of its own and 700 of the task are spent
    const other = { id: "task-b", limit: {} };
    await expect(ask({ wallet: "root-1", own: other }, 90)).rejects.toMatchObject(
      refusedBy("HF-5301", "root", "root-1"),
    );
    expect((await owner.wallets.get("root-1")).state.fence).toMatchObject({ scope: "root", wallet: "root-1" });
    await owner.wallets.set("root-1", { microUsd: 100_000 });
    for (const payer of [{ wallet: "root-1" }, { wallet: "root-1", own: other }])
      await expect(ask(payer, 5000)).rejects.toMatchObject(refusedBy("HF-5304", "root", "root-1"));
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    await fleet.stop();
  }
});

const hex = (bytes: number): string => randomBytes(bytes).toString("hex");
