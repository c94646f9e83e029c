import { describe, expect, test } from "vitest";
import type { CommitOutcome, PublishOutcome } from "../ports/index.ts";
import { bytesOf, soon, textOf } from "./contracts/contract-setup.ts";
import type { FaultRates } from "./fault-plan.ts";
import { MemoryBroker, type NodePorts } from "./memory-broker.ts";
import { jsonToken } from "./memory-fleet-registry.ts";

const KEY = "d-0.probe.a";
const SEEDS = [1, 2, 3, 4, 5] as const;
const STORM: FaultRates = {
  lostAckRate: 0.15,
  lateWriteRate: 0.15,
  refuseThenAcceptRate: 0.15,
  disconnectRate: 0.03,
  readFailureRate: 0.1,
  jitterTurns: 4,
};

interface Attempt {
  readonly token: string;
  readonly outcome: CommitOutcome;
}

/** One owner of the key: loads, commits on top of what it saw, again and again. */
async function own(node: NodePorts, name: string, rounds: number): Promise<readonly Attempt[]> {
  const attempts: Attempt[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const token = `${name}${round}`;
    const expectedSeq = await node.records.load(KEY).then(
      (value) => value?.seq ?? 0,
      () => undefined,
    );
    if (expectedSeq === undefined) continue;
    const bytes = bytesOf(JSON.stringify({ token }));
    attempts.push({
      token,
      outcome: await node.records.commit({ key: KEY, bytes, expectedSeq, token, needsWork: false }),
    });
  }
  return attempts;
}

async function stormOfCommits(
  seed: number,
): Promise<{ readonly broker: MemoryBroker; readonly attempts: readonly Attempt[] }> {
  const broker = new MemoryBroker({ maxAttempts: 3 });
  const [a, b] = [broker.connect("a", { ...STORM, seed }), broker.connect("b", { ...STORM, seed })];
  const attempts = (await Promise.all([own(a, "a", 60), own(b, "b", 60)])).flat();
  await broker.clock.settle();
  return { broker, attempts };
}

describe.for(SEEDS)("seed %i", (seed) => {
  test("B1: of two owners' commits, committed ones are stored once where they say, stale ones never", async () => {
    const { broker, attempts } = await stormOfCommits(seed);
    const writes = broker.writesOf(KEY).map((write) => ({ token: jsonToken(write.bytes), seq: write.seq }));
    const claimed = attempts.flatMap(({ token, outcome }) =>
      outcome.kind === "committed" ? [{ token, seq: outcome.seq }] : [],
    );
    const stale = new Set(attempts.flatMap(({ token, outcome }) => (outcome.kind === "stale" ? [token] : [])));
    expect(writes).toEqual(expect.arrayContaining(claimed));
    expect(writes.filter(({ token }) => token !== undefined && stale.has(token))).toEqual([]);
    expect(new Set(writes.map(({ token }) => token)).size).toBe(writes.length);
    const kinds = new Set(attempts.map(({ outcome }) => outcome.kind));
    expect([...kinds].toSorted()).toEqual(["committed", "stale", "unknown"]);
  });

  test("B1: accepted messages are stored once where they say, refused ones not by that call", async () => {
    const broker = new MemoryBroker();
    const node = broker.connect("a", { ...STORM, seed });
    const outcomes: { readonly id: string; readonly outcome: PublishOutcome }[] = [];
    for (let n = 0; n < 80; n += 1) {
      const id = `m${n}`;
      for (let tries = 0; tries < 2; tries += 1) {
        outcomes.push({ id, outcome: await node.log.publish("inbox", KEY, bytesOf(id), id) });
      }
    }
    await broker.clock.settle();
    const stored = broker.messagesOf("inbox", KEY);
    const places = stored.map(({ messageId, seq }) => ({ id: messageId, seq }));
    const accepted = outcomes.flatMap(({ id, outcome }) =>
      outcome.kind === "accepted" ? [{ id, seq: outcome.seq }] : [],
    );
    expect(places).toEqual(expect.arrayContaining(accepted));
    expect(new Set(places.map(({ id }) => id)).size).toBe(places.length);
    const refusedTwice = outcomes.filter(({ id }) =>
      outcomes.every((other) => other.id !== id || other.outcome.kind === "refused"),
    );
    for (const { id } of refusedTwice) expect(stored.some((message) => message.messageId === id)).toBe(false);
    expect(new Set(outcomes.map(({ outcome }) => outcome.kind)).size).toBe(3);
  });

  test("delivery stays ordered and without a gap through broken connections, repeating messages only in a row", async () => {
    const broker = new MemoryBroker();
    const receiver = broker.connect("a", { seed, duplicateDeliveryRate: 0.2, jitterTurns: 4 });
    const sender = broker.connect("b", { seed, jitterTurns: 4 });
    const received: number[] = [];
    const inbox = await receiver.log.subscribe("d-0", 1, (message) => received.push(message.seq));
    for (let n = 1; n <= 60; n += 1) {
      await sender.log.publish("inbox", KEY, bytesOf("m"), `m${n}`);
      if (n % 10 === 0) receiver.link.blink();
    }
    await inbox.readThrough(soon());
    expect(received.length).toBeGreaterThan(60);
    expect([...new Set(received)]).toEqual(Array.from({ length: 60 }, (_, n) => n + 1));
    expect(received).toEqual(received.toSorted((x, y) => x - y));
    await inbox.stop();
  });

  test("requests of one node arrive in the order in which they were sent, however long their way", async () => {
    const broker = new MemoryBroker();
    const node = broker.connect("a", { seed, jitterTurns: 6 });
    const ids = Array.from({ length: 40 }, (_, n) => `m${n}`);
    await Promise.all(ids.map((id) => node.log.publish("inbox", KEY, bytesOf(id), id)));
    expect(broker.messagesOf("inbox", KEY).map((message) => message.messageId)).toEqual(ids);
  });
});

describe("rates", () => {
  test("B2: the same seed gives the same run, another seed another one", async () => {
    const [first, again, other] = [await stormOfCommits(7), await stormOfCommits(7), await stormOfCommits(8)];
    expect(again.attempts).toEqual(first.attempts);
    expect(other.attempts).not.toEqual(first.attempts);
  });

  test("a stale read answers with the value before the latest, and a commit on top of it is stale", async () => {
    const broker = new MemoryBroker();
    const [a, lagging] = [broker.connect("a"), broker.connect("b", { staleReadRate: 1 })];
    await own(a, "a", 2);
    const read = await lagging.records.load(KEY);
    expect(jsonToken(read?.bytes ?? new Uint8Array())).toBe("a0");
    const [attempt] = await own(lagging, "b", 1);
    expect(attempt?.outcome).toEqual({ kind: "stale", currentSeq: broker.writesOf(KEY)[1]?.seq });
    await a.journal.append(KEY, bytesOf("one"), "1");
    await a.journal.append(KEY, bytesOf("two"), "2");
    expect((await lagging.journal.read(KEY, soon())).map((line) => textOf(line.bytes))).toEqual(["one"]);
  });

  test("a message whose id was forgotten between two sends is stored twice under one id", async () => {
    const broker = new MemoryBroker();
    const node = broker.connect("a", { duplicateStoreRate: 1 });
    await node.log.publish("inbox", KEY, bytesOf("m"), "1");
    expect(broker.messagesOf("inbox", KEY).map(({ seq, messageId }) => ({ seq, messageId }))).toEqual([
      { seq: 1, messageId: "1" },
      { seq: 2, messageId: "1" },
    ]);
  });

  test("core messages can be lost, stored ones of the same node are not", async () => {
    const broker = new MemoryBroker();
    const node = broker.connect("a", { coreLossRate: 1 });
    const heard: string[] = [];
    broker.listen("_INBOX.>", ({ subject }) => heard.push(subject));
    node.journal.reply("_INBOX.caller", bytesOf("outcome"));
    expect(await node.journal.append(KEY, bytesOf("one"), "1")).toMatchObject({ kind: "accepted" });
    await broker.clock.settle();
    expect(heard).toEqual([]);
    broker.connect("b").journal.reply("_INBOX.caller", bytesOf("outcome"));
    await broker.clock.settle();
    expect(heard).toEqual(["_INBOX.caller"]);
  });
});
