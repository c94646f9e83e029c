import { ASK_OWNER, defineAgent, withDelegates } from "@holdfast/agents";
import { WalletTeller, type HoldfastClient } from "@holdfast/client";
import { connectNats, publishStored, readLast, streamPosition, type Link } from "@holdfast/jetstream";
import { inboxPrefixOf } from "@holdfast/process";
import { FLEET_PRINCIPAL, parseActorKey, shardOf, subjectsOf, type Payer, type WalletState } from "@holdfast/protocol";
import { createClient, type Client } from "holdfast";
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";
import { runCommand, type CommandResult } from "../scenarios/holdfast-command.ts";

// Wallets and cancels on real processes. The rules are tested in packages/machines; here it is what outlives a SIGKILL, and many who want money at once.

/** A microdollar a token. */
const price = { inputMicroUsd: 1_000_000, outputMicroUsd: 1_000_000 };
const limits = { maxOutputTokens: 100 };
const blocker = defineAgent({ name: "blocker", model: "blocker", limits, prices: { blocker: price } });
const echo = defineAgent({ name: "echo", model: "echo", limits, prices: { echo: price } });
const boss = defineAgent({ name: "chief", model: "puppet", limits, prices: { puppet: price } });
const chief = withDelegates(boss, [blocker], {});
const asker = defineAgent({ name: "asker", model: "puppet", tools: [ASK_OWNER], limits, prices: { puppet: price } });
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

/** Overwrites the record of an actor with bytes that are none. */
const damage = (holdfast: HoldfastClient, namespace: string, key: string): Promise<void> =>
  withLink(async (link) => {
    const subject = subjectsOf(namespace).actorSubject(shardOf(holdfast.manifest, parseActorKey(key).partition), key);
    const stored = await publishStored(link, { subject, bytes: new Uint8Array([1, 2, 3]), retryForMs: 5000 });
    if (stored.kind !== "accepted") throw new Error(`${key}: ${stored.kind}`);
  });

/** Messages that were ever stored for any actor of a namespace. */
const inboxMessages = (holdfast: HoldfastClient, namespace: string): Promise<number> =>
  withLink(async (link) => {
    let messages = 0;
    for (let shard = 0; shard < holdfast.manifest.shards; shard += 1)
      messages += (await streamPosition(link, subjectsOf(namespace).inboxStream(shard))).lastSeq;
    return messages;
  });

const task = (prompt: string) => ({ name: "task", arguments: { subagent: "blocker", prompt, description: prompt } });
const Refused = z.looseObject({ refusal: z.looseObject({ code: z.string(), scope: z.string() }) });

const Asked = z.looseObject({ conversationId: z.string() });

/** What the tests of one fleet ask again and again. */
class Talk {
  readonly #fleet: AgentFleet;
  readonly #holdfast: HoldfastClient;

  constructor(fleet: AgentFleet, { holdfast }: Client) {
    this.#fleet = fleet;
    this.#holdfast = holdfast;
  }

  async wallet(): Promise<WalletState> {
    return (await this.#holdfast.wallets.get("w1")).state;
  }

  async listed(id: string): Promise<Readonly<Record<string, unknown>>> {
    return (await this.#holdfast.read.header(this.#holdfast.key("conversation", id)))?.list ?? {};
  }

  async until(id: string, status: string): Promise<void> {
    const dump = () => this.#fleet.logs().slice(-4000);
    const isSo = async () => (await this.listed(id))["status"] === status;
    await waitUntil(`${id} is ${status}`, isSo, { timeoutMs: 20_000, dump });
  }

  /** Why the last model call of a conversation got no money. */
  async refusal(id: string): Promise<{ readonly code: string; readonly scope: string }> {
    const stored = await this.#holdfast.read.actor(this.#holdfast.key("conversation", id));
    const { code, scope } = Refused.parse(stored?.record.snapshot.context).refusal;
    return { code, scope };
  }

  async tasks(): Promise<Readonly<Record<string, { readonly key: string; readonly status: unknown }>>> {
    const headers = await this.#holdfast.read.headers("task");
    return Object.fromEntries(headers.map(({ key, list }) => [list["title"], { key, status: list["status"] }]));
  }

  /** Key of the open question of a conversation, once it stands. */
  question(id: string): Promise<string> {
    return waitUntil(`the question of ${id} is open`, async () => {
      const waits = (await this.#holdfast.read.headers("ownerWait")).filter(({ list }) => list["status"] === "open");
      const asked = await Promise.all(waits.map(({ key }) => this.#holdfast.read.actor(key)));
      return asked.find((one) => Asked.parse(one?.record.snapshot.context).conversationId === id)?.record.key;
    });
  }

  async answer(question: string, value: string): Promise<string> {
    return (await this.#holdfast.send(question, { type: "answer", answerId: "a1", value })).kind;
  }
}

test.concurrent("a fence stays over a SIGKILL byte for byte: what is queued stays queued, an answer arrives and its next call is refused, and only a person lets work go on", async () => {
  const namespace = "fences";
  const env = { HOLDFAST_TASK_CONCURRENCY: "1" };
  const fleet = await AgentFleet.start(cluster, { namespace, leaseTtlMs: 600, env });
  let client: Client | undefined;
  try {
    const node = await fleet.startNode("node-0");
    client = await fleet.client();
    const { holdfast } = client;
    const talk = new Talk(fleet, client);
    const start = (id: string, agent: typeof echo, more: object = {}) =>
      holdfast.conversations.start(id, { agent, prompt: `prompt of ${id}`, budget, ...more });
    const resume = (id: string) => holdfast.send({ type: "conversation", id }, { type: "resume" });
    const statusOf = async (title: string) => (await talk.tasks())[title]?.status;

    await holdfast.wallets.set("w1", { microUsd: 1_000_000 });
    const prompt = JSON.stringify([[task("first"), task("second")]]);
    await start("c1", chief, { agents: { blocker }, prompt });
    const asking = [{ name: "ask_owner", arguments: { question: "left or right?" } }];
    await start("c2", asker, { prompt: JSON.stringify([asking]) });
    await fleet.model.wait({ model: "blocker", state: "blocked", count: 1 });
    const [question, isFirst] = [await talk.question("c2"), (await statusOf("first")) === "running"];
    const [running, queued] = isFirst ? ["first", "second"] : ["second", "first"];

    await holdfast.wallets.set("w1", { microUsd: 1 });
    await start("c3", echo, { budget: { ...budget, whenSpent: "ask" } });
    await talk.until("c3", "waiting");
    expect(await talk.listed("c3")).toMatchObject({ waitingOn: "budget" });
    const raise = await talk.question("c3");
    await fleet.model.release(running);
    await waitUntil("the task that runs has ended", async () => (await statusOf(running)) === "completed");
    const key = holdfast.wallets.key("w1");
    await waitUntil("the wallet is at rest", async () => (await holdfast.read.actor(key))?.record.outbox.length === 0);
    const before = await storedBytes(holdfast, namespace, key);
    expect(await talk.wallet()).toMatchObject({
      open: {},
      fence: { fenceId: "fence-1", status: "paused", scope: "root", autoResume: false },
    });

    process.kill(node.pid, "SIGKILL");
    await node.exited;
    await fleet.startNode("node-1");
    await start("c4", echo);
    expect(await talk.answer(question, "left")).toBe("applied");
    for (const id of ["c2", "c4"]) {
      await talk.until(id, "waiting");
      await waitUntil(`${id} waits for money`, async () => (await talk.listed(id))["waitingOn"] === "budget");
      expect(await talk.refusal(id)).toEqual({ code: "HF-5304", scope: "root" });
    }
    expect(await statusOf(queued)).toBe("queued");
    expect(await storedBytes(holdfast, namespace, key)).toBe(before);

    await holdfast.wallets.set("w1", { microUsd: 1_000_000 });
    expect(await talk.answer(raise, "The limit is raised, go on")).toBe("applied"); // lets through whom it was asked for
    await talk.until("c3", "idle");
    expect([await talk.listed("c2"), await talk.listed("c4")]).toMatchObject([
      { status: "waiting" },
      { status: "waiting" },
    ]);
    expect(await statusOf(queued)).toBe("queued");
    expect((await fleet.model.requests()).map(({ lastUser }) => lastUser)).not.toContain(queued);

    expect((await holdfastCommand(namespace, "budget", "resume", "w1")).code).toBe(0);
    await fleet.model.release(queued);
    await talk.until("c1", "idle");
    expect(await talk.listed("c4")).toMatchObject({ status: "waiting" });
    for (const id of ["c2", "c4"]) {
      await resume(id);
      await talk.until(id, "idle");
    }
    expect((await talk.wallet()).fence).toBeUndefined();
    const said: string[] = [];
    for await (const { event } of holdfast.events({ subject: "wallet.w1.*", from: "first", follow: false }))
      said.push(`${event.type} ${String(event.data["fenceId"])}`);
    expect(said).toEqual(["holdfast.wallet.fenced fence-1", "holdfast.wallet.fenceLifted fence-1"]);
  } finally {
    await client?.close();
    await fleet.stop();
  }
});

test.concurrent("150 who want money at once, of ten roots below one limit: none is refused what comes back, none is lost; who is refused is told by which wallet", async () => {
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

    // Where the record of a wallet cannot be read nothing is spent, and nothing ends.
    await damage(owner, namespace, owner.wallets.key("root-2"));
    const client = await fleet.client();
    clients.push(client);
    const talk = new Talk(fleet, client);
    const spender = { agent: echo, prompt: "prompt of c1", budget: { wallet: "root-2", whenSpent: "stop" } } as const;
    await client.holdfast.conversations.start("c1", spender);
    await talk.until("c1", "waiting");
    expect(await talk.refusal("c1")).toEqual({ code: "HF-5308", scope: "root" });
    expect(await fleet.model.requests()).toEqual([]);
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    await fleet.stop();
  }
});

/** Every outcome of a task that a conversation has applied, by call. */
async function outcomes(holdfast: HoldfastClient, id: string): Promise<readonly (readonly [string, unknown])[]> {
  const entries = await holdfast.read.journal(holdfast.key("conversation", id));
  return entries.flatMap(({ event }) => {
    const output = event["output"];
    const isTask = typeof output === "object" && output !== null && "taskId" in output && "status" in output;
    return isTask ? [[event.type.replace("xstate.done.actor.", ""), output.status] as const] : [];
  });
}

test.concurrent("a cancel that nobody was alive to read ends its task once; attempts that died are unresolved until a person closes them; work that was done counts", async () => {
  const namespace = "cancels";
  const fleet = await AgentFleet.start(cluster, { namespace, leaseTtlMs: 600 });
  let client: Client | undefined;
  try {
    const node = await fleet.startNode("node-0");
    client = await fleet.client();
    const { holdfast } = client;
    const talk = new Talk(fleet, client);
    await holdfast.wallets.set("w1", { microUsd: 100_000 });

    // Who has no budget asks nobody: a turn is the start and the outcome of the model call, and not a message more.
    const messages = await inboxMessages(holdfast, namespace);
    await holdfast.conversations.start("c0", { agent: echo, prompt: "prompt of c0" });
    await talk.until("c0", "idle");
    expect((await inboxMessages(holdfast, namespace)) - messages).toBe(2);
    // Where nobody can say whether it may be spent, nothing is.
    await holdfast.conversations.start("c9", { agent: echo, prompt: "prompt of c9", budget: { wallet: "nobody" } });
    await talk.until("c9", "error");
    expect((await fleet.model.requests()).map(({ lastUser }) => lastUser)).toEqual(["prompt of c0"]);

    const prompt = JSON.stringify([["lost", "done", "kept"].map(task)]);
    await holdfast.conversations.start("c1", { agent: chief, agents: { blocker }, prompt, budget });
    await fleet.model.wait({ model: "blocker", state: "blocked", count: 3 });
    const { lost, done } = await talk.tasks();
    const begun = Object.keys((await talk.wallet()).open);
    expect(begun).toHaveLength(3);

    process.kill(node.pid, "SIGKILL");
    await node.exited;
    // Twice, since its sender has no answer: it counts once.
    for (const key of [lost?.key ?? "", done?.key ?? "", lost?.key ?? ""])
      expect(await holdfast.send(key, { type: "cancel", reason: "enough" }, { timeoutMs: 300 })).toEqual({
        kind: "accepted",
      });
    await fleet.model.release("done");
    await fleet.startNode("node-1");

    const ended = (title: string) =>
      waitUntil(
        `task ${title} has ended`,
        async () => {
          const status = (await talk.tasks())[title]?.status;
          return (status === "cancelled" || status === "completed" || status === "failed") && status;
        },
        { timeoutMs: 20_000, dump: () => fleet.logs().slice(-4000) },
      );
    expect(await ended("lost")).toBe("cancelled");
    const how = await ended("done");
    expect(how).toMatch(/^(cancelled|completed)$/);
    expect((await talk.tasks())["kept"]?.status).toBe("running");
    await fleet.model.release("kept");
    await talk.until("c1", "idle");

    // One outcome for each call, and the same that the task itself says.
    const told = await outcomes(holdfast, "c1");
    expect(new Set(told.map(([call]) => call)).size).toBe(3);
    expect(told.map(([, status]) => String(status)).toSorted()).toEqual(["cancelled", how, "completed"].toSorted());
    const answer = await holdfast.conversations.finalAnswer("c1");
    expect(answer?.text.match(/result of kept/g)).toHaveLength(1);
    expect(answer?.text).not.toContain("result of lost");

    // A call that was begun again before its conversation heard of the end is stopped, and nothing stays held unseen.
    const again = (await fleet.model.requests()).filter(({ lastUser }) => lastUser === "lost");
    expect(again.length).toBeLessThanOrEqual(2);
    expect(again.every(({ answered }) => !answered)).toBe(true);
    // What is still open was begun by the process that was killed, and was not begun again: the wallet gives it up after half an hour.
    const held = await waitUntil("no call holds money that could have told its end", async () => {
      const { open, unresolved } = await talk.wallet();
      const isOver = Object.keys(open).every((id) => begun.includes(id));
      return isOver ? [...Object.keys(open), ...Object.keys(unresolved)] : undefined;
    });
    expect(held.filter((id) => begun.includes(id))).toHaveLength(3);

    const { settled, unresolved } = await talk.wallet();
    const [left = ""] = Object.keys(unresolved);
    const command = (...args: readonly string[]) => holdfastCommand(namespace, "budget", ...args);
    expect((await command("close", "w1", left, "--usd", "0.00005", "--tokens", "50")).code).toBe(0);
    const closed = Shown.parse((await command("show", "w1")).json);
    expect(closed).toMatchObject({
      settled: { calls: settled.calls + 1, microUsd: settled.microUsd + 50 },
      ledger: { agrees: true },
    });
    expect(Object.keys(closed.unresolved)).not.toContain(left);
  } finally {
    await client?.close();
    await fleet.stop();
  }
});

const hex = (bytes: number): string => randomBytes(bytes).toString("hex");
