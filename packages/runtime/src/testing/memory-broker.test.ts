import { sha256Hex, type ActorKey } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import type { CommitOutcome, InboxMessage } from "../ports/index.ts";
import { bytesOf, soon, textOf } from "./contracts/contract-setup.ts";
import { MemoryBroker, type NodePorts } from "./memory-broker.ts";
import { jsonToken } from "./memory-fleet-registry.ts";
import { waitUntil } from "./wait-until.ts";

const KEY = "d-0.probe.a";

const recordBytes = (token: string): Uint8Array => bytesOf(JSON.stringify({ token }));
const commit = (node: NodePorts, token: string, expectedSeq = 0, key: ActorKey = KEY): Promise<CommitOutcome> =>
  node.records.commit({ key, bytes: recordBytes(token), expectedSeq, token, needsWork: true });
const tokensOf = (broker: MemoryBroker, key: ActorKey = KEY): readonly (string | undefined)[] =>
  broker.writesOf(key).map((write) => jsonToken(write.bytes));
const stored = (broker: MemoryBroker): readonly (string | undefined)[] =>
  broker.messagesOf("inbox", KEY).map((message) => textOf(message.bytes));

/** What has become of a promise once nothing moves any more. */
async function fateOf<T>(broker: MemoryBroker, promise: Promise<T>): Promise<T | "pending"> {
  await broker.clock.settle();
  return Promise.race([promise, Promise.resolve("pending" as const)]);
}

describe("the broker keeps its distance", () => {
  test("nothing is stored, answered or delivered inside the call, nor in its promise jobs", async () => {
    const node = new MemoryBroker().connect("a");
    const received: InboxMessage[] = [];
    await node.log.subscribe("d-0", 1, (message) => received.push(message));
    let answered = false;
    const publishing = node.log.publish("inbox", KEY, bytesOf("m"), "1").then(() => (answered = true));
    for (let job = 0; job < 100; job += 1) await Promise.resolve();
    expect({ answered, received }).toEqual({ answered: false, received: [] });
    await publishing;
  });

  test("bytes are copied when handed in: changing them after the call changes nothing", async () => {
    const broker = new MemoryBroker();
    const node = broker.connect("a");
    const record = recordBytes("t");
    const [message, blob, heartbeat] = [bytesOf("m"), bytesOf("b"), bytesOf("h")];
    const name = sha256Hex(blob);
    const calls = Promise.all([
      node.records.commit({ key: KEY, bytes: record, expectedSeq: 0, token: "t", needsWork: true }),
      node.log.publish("inbox", KEY, message, "1"),
      node.journal.append(KEY, message, "1"),
      node.blobs.put(name, blob),
      node.fleet.put("node.a", heartbeat),
    ]);
    for (const bytes of [record, message, blob, heartbeat]) bytes.fill(0);
    await calls;
    expect(tokensOf(broker)).toEqual(["t"]);
    expect(stored(broker)).toEqual(["m"]);
    expect(broker.journalOf(KEY).map((line) => textOf(line.bytes))).toEqual(["m"]);
    expect(textOf(await node.blobs.get(name))).toBe("b");
    expect(textOf((await node.fleet.get("node.a"))?.bytes)).toBe("h");
  });

  test("broker time is that of the clock and never goes back", async () => {
    const broker = new MemoryBroker();
    const { fleet } = broker.connect("a");
    const first = await fleet.put("node.a", bytesOf("1"));
    await broker.clock.advance(1000);
    const second = await fleet.put("node.a", bytesOf("2"));
    broker.clock.jumpWall(-60_000);
    const third = await fleet.put("node.a", bytesOf("3"));
    expect(second?.storedAtMs).toBe((first?.storedAtMs ?? 0) + 1000);
    expect(third?.storedAtMs).toBe(second?.storedAtMs);
  });

  test("watch resolves on an empty bucket", async () => {
    const seen: unknown[] = [];
    const watching = await new MemoryBroker().connect("a").fleet.watch((value) => seen.push(value));
    expect(seen).toEqual([]);
    await watching.stop();
  });
});

describe("scripted faults", () => {
  test("a refused commit is tried again and commits", async () => {
    const broker = new MemoryBroker();
    broker.faults.nextCommit({ kind: "refuse", times: 3 });
    expect(await commit(broker.connect("a"), "t")).toMatchObject({ kind: "committed" });
    expect(tokensOf(broker)).toEqual(["t"]);
  });

  test("a publish is refused as often as the script says, not stored, and accepted then", async () => {
    const broker = new MemoryBroker();
    const { log } = broker.connect("a");
    const refusal = broker.faults.nextPublish({ kind: "refuse", times: 2 });
    const send = (): unknown => log.publish("inbox", KEY, bytesOf("m"), "1");
    const refused = { kind: "refused", reason: "no responders", retryable: true };
    expect(await send()).toEqual(refused);
    expect(await fateOf(broker, refusal.happened)).toBe("pending");
    expect(await send()).toEqual(refused);
    await refusal.happened;
    expect(stored(broker)).toEqual([]);
    expect(await send()).toMatchObject({ kind: "accepted", duplicate: false });
  });

  test.for([
    { fault: { kind: "lostAck", giveUp: true }, expected: ["t"] },
    { fault: { kind: "lateWrite", giveUp: true }, expected: ["t"] },
    { fault: { kind: "refuse", giveUp: true }, expected: [] },
  ] as const)(
    "a commit that gives up after $fault.kind is unknown, and $expected is stored",
    async ({ fault, expected }) => {
      const broker = new MemoryBroker();
      broker.faults.nextCommit(fault);
      expect(await commit(broker.connect("a"), "t")).toMatchObject({ kind: "unknown" });
      await broker.clock.settle();
      expect(tokensOf(broker)).toEqual(expected);
    },
  );

  test("a write that arrives late does so only when released, and loses against what came before it", async () => {
    const broker = new MemoryBroker();
    const [a, b] = [broker.connect("a"), broker.connect("b")];
    const late = broker.faults.nextCommit({ kind: "lateWrite", hold: true, giveUp: true });
    expect(await commit(a, "late")).toMatchObject({ kind: "unknown" });
    expect(await commit(b, "b")).toMatchObject({ kind: "committed" });
    late.release();
    await broker.clock.settle();
    expect(tokensOf(broker)).toEqual(["b"]);
  });

  test("a hanging commit stores nothing until released, and then finds what the other owner did", async () => {
    const broker = new MemoryBroker();
    const [a, b] = [broker.connect("a"), broker.connect("b")];
    const hang = broker.faults.nextCommit({ kind: "hang" }, { node: "a" });
    const hanging = commit(a, "a");
    await hang.happened;
    expect(await fateOf(broker, hanging)).toBe("pending");
    expect(await commit(b, "b")).toMatchObject({ kind: "committed" });
    hang.release();
    expect(await hanging).toMatchObject({ kind: "stale" });
  });

  test("a fault hits the request it is aimed at, once, and no other", async () => {
    const broker = new MemoryBroker();
    const [a, b] = [broker.connect("a"), broker.connect("b")];
    broker.faults.nextPublish({ kind: "refuse" }, { node: "a", about: "control" });
    const sends = [
      b.log.publish("control", KEY, bytesOf("m"), "1"),
      a.log.publish("inbox", KEY, bytesOf("m"), "2"),
      a.log.publish("control", KEY, bytesOf("m"), "3"),
      a.log.publish("control", KEY, bytesOf("m"), "4"),
    ];
    const kinds = (await Promise.all(sends)).map((outcome) => outcome.kind);
    expect(kinds).toEqual(["accepted", "accepted", "refused", "accepted"]);
  });
});

describe("nodes that stop", () => {
  test("a paused node is not told, and what it does afterwards meets what happened meanwhile", async () => {
    const broker = new MemoryBroker();
    const [a, b] = [broker.connect("a"), broker.connect("b")];
    broker.pauseNode("a");
    const paused = commit(a, "a");
    expect(await fateOf(broker, paused)).toBe("pending");
    expect(await commit(b, "b")).toMatchObject({ kind: "committed" });
    broker.resumeNode("a");
    expect(await paused).toMatchObject({ kind: "stale" });
    expect(tokensOf(broker)).toEqual(["b"]);
  });

  test("what a node sent before it was paused is stored; it learns so when it goes on", async () => {
    const broker = new MemoryBroker();
    const a = broker.connect("a");
    const lost = broker.faults.nextPublish({ kind: "lostAck" });
    const publishing = a.log.publish("inbox", KEY, bytesOf("m"), "1");
    await lost.happened;
    broker.pauseNode("a");
    expect(await fateOf(broker, publishing)).toBe("pending");
    expect(stored(broker)).toEqual(["m"]);
    broker.resumeNode("a");
    expect(await publishing).toMatchObject({ kind: "unknown" });
  });

  test("a paused node gets the messages of the pause when it goes on", async () => {
    const broker = new MemoryBroker();
    const [a, b] = [broker.connect("a"), broker.connect("b")];
    const received: string[] = [];
    const inbox = await a.log.subscribe("d-0", 1, (message) => received.push(textOf(message.bytes) ?? ""));
    broker.pauseNode("a");
    await b.log.publish("inbox", KEY, bytesOf("meanwhile"), "1");
    await broker.clock.settle();
    expect(received).toEqual([]);
    broker.resumeNode("a");
    await inbox.readThrough(soon());
    expect(received).toEqual(["meanwhile"]);
  });

  test("a killed node's calls never settle, nothing of it is stored and nothing is delivered to it", async () => {
    const broker = new MemoryBroker();
    const [a, b] = [broker.connect("a"), broker.connect("b")];
    const received: InboxMessage[] = [];
    await a.log.subscribe("d-0", 1, (message) => received.push(message));
    const before = commit(a, "before");
    broker.killNode("a");
    const after = [a.log.publish("inbox", KEY, bytesOf("m"), "1"), a.records.load(KEY), a.fleet.get("node.a")];
    await b.log.publish("inbox", KEY, bytesOf("from b"), "2");
    expect(await fateOf(broker, before)).toBe("pending");
    for (const call of after) expect(await fateOf<unknown>(broker, call)).toBe("pending");
    expect({ records: tokensOf(broker), messages: stored(broker), received }).toEqual({
      records: [],
      messages: ["from b"],
      received: [],
    });
  });

  test("a late write of a killed node still arrives", async () => {
    const broker = new MemoryBroker();
    const a = broker.connect("a");
    const late = broker.faults.nextCommit({ kind: "lateWrite", hold: true });
    const committing = commit(a, "late");
    await late.happened;
    broker.killNode("a");
    late.release();
    expect(await fateOf(broker, committing)).toBe("pending");
    expect(tokensOf(broker)).toEqual(["late"]);
  });

  test("a second incarnation of a name lives when the first is killed", async () => {
    const broker = new MemoryBroker();
    const first = broker.connect("a");
    broker.killNode("a");
    const second = broker.connect("a");
    expect(await commit(second, "second")).toMatchObject({ kind: "committed" });
    const third = broker.connect("a");
    second.link.kill();
    expect(await commit(third, "third", broker.writesOf(KEY)[0]?.seq)).toMatchObject({ kind: "committed" });
    expect(await fateOf(broker, first.records.load(KEY))).toBe("pending");
  });
});

describe("connections and restarts", () => {
  test("without a connection writes are unknown and not stored, and reads fail with a code", async () => {
    const broker = new MemoryBroker();
    const a = broker.connect("a");
    broker.disconnectNode("a");
    expect(await a.log.publish("inbox", KEY, bytesOf("m"), "1")).toMatchObject({ kind: "unknown" });
    expect(await commit(a, "t")).toMatchObject({ kind: "unknown" });
    expect(await a.fleet.put("node.a", bytesOf("1"))).toBeUndefined();
    await expect(a.records.load(KEY)).rejects.toMatchObject({ code: "HF-4008" });
    broker.reconnectNode("a");
    expect({ records: tokensOf(broker), messages: stored(broker) }).toEqual({ records: [], messages: [] });
  });

  test("an answer on its way is lost with the connection, though the message is stored", async () => {
    const broker = new MemoryBroker();
    const a = broker.connect("a");
    const publishing = a.log.publish("inbox", KEY, bytesOf("m"), "1");
    await waitUntil("the message is stored", () => stored(broker).length > 0);
    broker.restart();
    expect(await publishing).toMatchObject({ kind: "unknown" });
    await broker.clock.settle();
    expect(await a.log.publish("inbox", KEY, bytesOf("m"), "1")).toMatchObject({ kind: "accepted", duplicate: true });
  });

  test("after a restart the ids of stored messages are known, those of trimmed ones are forgotten", async () => {
    const broker = new MemoryBroker();
    const { log } = broker.connect("a");
    await log.publish("inbox", KEY, bytesOf("trimmed"), "1");
    await log.publish("inbox", KEY, bytesOf("kept"), "2");
    await log.trim("inbox", "d-0", 2);
    expect(await log.publish("inbox", KEY, bytesOf("trimmed"), "1")).toMatchObject({ duplicate: true });
    broker.restart();
    await broker.clock.settle();
    expect(await log.publish("inbox", KEY, bytesOf("trimmed"), "1")).toMatchObject({ duplicate: false, seq: 3 });
    expect(await log.publish("inbox", KEY, bytesOf("kept"), "2")).toMatchObject({ duplicate: true, seq: 2 });
  });

  test("an id is known for the window and no longer", async () => {
    const broker = new MemoryBroker({ dedupeWindowMs: 1000 });
    const { log } = broker.connect("a");
    const send = (): unknown => log.publish("inbox", KEY, bytesOf("m"), "1");
    await send();
    await broker.clock.advance(1000);
    expect(await send()).toMatchObject({ duplicate: true });
    await broker.clock.advance(1);
    expect(await send()).toMatchObject({ duplicate: false });
    broker.forgetMessageIds();
    expect(await send()).toMatchObject({ duplicate: false });
  });

  test("a stream that is full by bytes refuses and keeps what it has", async () => {
    const broker = new MemoryBroker();
    const { log } = broker.connect("a");
    broker.limit("inbox", { maxBytes: 10 });
    expect(await log.publish("inbox", KEY, bytesOf("12345678"), "1")).toMatchObject({ kind: "accepted" });
    expect(await log.publish("inbox", KEY, bytesOf("123"), "2")).toMatchObject({ kind: "refused", retryable: true });
    expect(await log.publish("inbox", KEY, bytesOf("12"), "3")).toMatchObject({ kind: "accepted" });
    expect(stored(broker)).toEqual(["12345678", "12"]);
  });

  test("a lost tail gives its sequences again, and a subscriber beyond it hears nothing of them", async () => {
    const broker = new MemoryBroker();
    const { log } = broker.connect("a");
    for (const id of ["1", "2", "3"]) await log.publish("inbox", KEY, bytesOf(id), id);
    const received: number[] = [];
    const beyond = await log.subscribe("d-0", 4, (message) => received.push(message.seq));
    broker.loseInboxTail("d-0", 1);
    broker.setGeneration("g2");
    expect(await log.position("d-0")).toEqual({ generation: "g2", lastSeq: 1, lineage: [] });
    for (const id of ["4", "5", "6"]) await log.publish("inbox", KEY, bytesOf(id), id);
    await broker.clock.settle();
    expect(stored(broker)).toEqual(["1", "2", "3", "4", "5", "6"]);
    expect(broker.messagesOf("inbox", KEY).map((message) => message.seq)).toEqual([1, 2, 3, 2, 3, 4]);
    expect(received).toEqual([4]);
    await beyond.stop();
  });

  test("a record that is replaced behind the barrier before the reader comes is left to the next scan", async () => {
    const broker = new MemoryBroker();
    const [a, b] = [broker.connect("a"), broker.connect("b")];
    for (let n = 0; n < 10; n += 1) await commit(a, `first ${n}`, 0, `d-0.probe.r${n}`);
    const last = "d-0.probe.r9";
    let replacing: Promise<CommitOutcome> | undefined;
    const seen: string[] = [];
    const visit = ({ key }: { readonly key: string }): void => {
      seen.push(key);
      replacing ??= commit(b, "second", broker.writesOf(last)[0]?.seq, last);
    };
    const barrier = await a.records.scan({ parts: [{ partition: "d-0", fromSeq: 1 }], visit, signal: soon() });
    expect(await replacing).toMatchObject({ kind: "committed" });
    expect(seen).toEqual(Array.from({ length: 9 }, (_, n) => `d-0.probe.r${n}`));
    const seenNext: string[] = [];
    await a.records.scan({
      parts: [{ partition: "d-0", fromSeq: barrier }],
      visit: ({ key }) => seenNext.push(key),
      signal: soon(),
    });
    expect(seenNext).toEqual([last]);
  });
});
