import { MAX_MAILBOX_MESSAGES } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";
import { OperatorDesk } from "./operator-desk.ts";
import { testActors } from "./test-actors.ts";

const reportOf = ({ node }: MemoryProcess, key: string) =>
  [...node.partitions.values()].flatMap(({ reports }) => reports.get(key) ?? [])[0];
const word = (key: string, n: number, from = "d-0.talker.far", genesis = "g1:9") =>
  ({ v: 1, kind: "send", id: `${key}@${n}`, from: { key: from, genesis, n }, event: { type: "ADD", n } }) as const;

describe("messages that cannot be applied yet are set aside and come back", () => {
  test("F17: one that comes before its actor was started waits, and is applied before what came after the start", async () => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone();
    const key = fleet.key("tally", "a");
    await fleet.publishInside(key, word("w", 1), "w1");
    await fleet.until("it is set aside", () => reportOf(process, key)?.kind === "orphan-messages");
    const create = process.holdAt("before-create", key);
    await fleet.begin("tally", "a");
    await fleet.happened("the start is being carried out", create.reached);
    await fleet.send(key, { type: "ADD", n: "later" });
    await fleet.clock.settle();
    create.release();
    await fleet.until("both are applied", () => fleet.record(key)?.rev === 3);
    expect(fleet.context(key)).toEqual({ seen: [1, "later"] });
    expect(reportOf(process, key)).toBeUndefined();
    expect(await fleet.outsider.log.fetch("parked", key, 0, 10)).toEqual([]);
  });

  test("F17: it survives a takeover", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100 } });
    const first = await fleet.alone("n1");
    const key = fleet.key("tally", "a");
    await fleet.publishInside(key, word("w", 1), "w1");
    await fleet.until("it is set aside", () => reportOf(first, key) !== undefined);
    await fleet.clock.advance(500);
    first.kill();
    await fleet.alone("n2");
    await fleet.begin("tally", "a");
    await fleet.until("it is applied", () => fleet.record(key)?.rev === 2);
    expect(fleet.context(key)).toEqual({ seen: [1] });
  });

  test("F17: one whose actor is never started becomes a dead letter, however often its partition changes hands meanwhile", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100, sweepMs: 500, orphanMs: 20_000 } });
    const operator = await OperatorDesk.open(fleet);
    const first = await fleet.alone("n1");
    const key = fleet.key("tally", "a");
    await fleet.publishInside(key, word("w", 1), "w1");
    const sentMs = fleet.clock.wallMs();
    await fleet.clock.advance(12_000);
    expect(operator.entries.size).toBe(0);
    first.kill();
    const second = await fleet.alone("n2");
    await fleet.until("it is a dead letter", () => operator.entries.size > 0);
    expect(fleet.clock.wallMs() - sentMs).toBeGreaterThanOrEqual(20_000);
    expect(fleet.clock.wallMs() - sentMs).toBeLessThan(22_000);
    expect(operator.message(key, "w1")).toMatchObject({ code: "HF-3103", subject: "message", state: "quarantined" });
    expect(await operator.bytes(key, "w1")).toBeDefined();
    expect(reportOf(second, key)).toBeUndefined();
    expect(await fleet.outsider.log.fetch("parked", key, 0, 10)).toEqual([]);

    expect(await operator.command("retry", key)).toMatchObject({ kind: "refused", code: "HF-3103" });
    await fleet.begin("tally", "a");
    expect(await operator.command("retry", key)).toMatchObject({ kind: "done" });
    await fleet.until("it is applied", () => fleet.record(key)?.rev === 2);
    expect(fleet.context(key)).toEqual({ seen: [1] });
    await fleet.until("its entry is gone", () => operator.entries.size === 0);
  });

  test("F17: a dead letter can be skipped", async () => {
    const fleet = new MemoryFleet({ settings: { sweepMs: 500, orphanMs: 2000 } });
    const operator = await OperatorDesk.open(fleet);
    await fleet.alone("n1");
    const key = fleet.key("tally", "a");
    await fleet.publishInside(key, word("w", 1), "w1");
    await fleet.until("it is a dead letter", () => operator.entries.size > 0);
    expect(await operator.command("skip", key)).toMatchObject({ kind: "done" });
    await fleet.until("nothing is kept", () => operator.entries.size === 0);
    expect(await operator.bytes(key, "w1")).toBeUndefined();
  });

  test("F17: a start that lay unread for longer than a message may wait comes in time", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100, sweepMs: 500, orphanMs: 2000 } });
    const operator = await OperatorDesk.open(fleet);
    const first = await fleet.alone("n1");
    const key = fleet.key("tally", "a");
    await fleet.publishInside(key, word("w", 1), "w1");
    await fleet.until("it is set aside", () => reportOf(first, key) !== undefined);
    await fleet.clock.advance(500);
    first.kill();
    await fleet.begin("tally", "a");
    await fleet.clock.advance(5000);
    await fleet.alone("n2");
    await fleet.until("it is applied", () => fleet.record(key)?.rev === 2);
    expect(operator.entries.size).toBe(0);
  });

  test("what cannot be applied again is kept, however often it is offered, when others of its actor are applied", async () => {
    const fleet = new MemoryFleet({ settings: { passivateMs: 100, sweepMs: 200, idleCleanMs: 50 } });
    const process = await fleet.alone();
    const key = await fleet.born("resting", "a");
    const inMemory = (): boolean => [...process.node.partitions.values()].some(({ cells }) => cells.has(key));
    await fleet.publishInside(key, word("ahead", 2), "ahead");
    await fleet.until("it is set aside", () => reportOf(process, key) !== undefined);
    for (let round = 1; round <= 4; round += 1) {
      await fleet.until("the actor has left memory", () => !inMemory());
      await fleet.publishInside(key, word("other", round + 1, "d-0.talker.other"), `other-${round}`);
      await fleet.publishInside(key, word("third", round, "d-0.talker.third"), `third-${round}`);
      await fleet.until("it was offered again", () => fleet.record(key)?.rev === round + 1);
      fleet.broker.forgetMessageIds();
      await fleet.until("the actor has left memory again", () => !inMemory());
    }
    const kept = await fleet.outsider.log.fetch("parked", key, 0, 100);
    expect(kept).toHaveLength(5);
    await fleet.publishInside(key, word("ahead", 1), "ahead-1");
    await fleet.publishInside(key, word("other", 1, "d-0.talker.other"), "other-0");
    await fleet.until("all are applied", () => fleet.record(key)?.rev === 12);
    expect(fleet.context(key)).toMatchObject({ seen: expect.arrayContaining([1, 2, 3, 4, 5]) });
    expect(await fleet.outsider.log.fetch("parked", key, 0, 100)).toEqual([]);
  });

  test("P1: however many wait, one page of them is in memory, and they are applied in their order", async () => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone();
    const operator = await OperatorDesk.open(fleet);
    const key = await fleet.born("tally", "a");
    await operator.command("park", key);
    const count = 3 * MAX_MAILBOX_MESSAGES + 7;
    for (let n = 1; n <= count; n += 1) await fleet.send(key, { type: "ADD", n });
    await fleet.until("all are set aside", () => fleet.broker.messagesOf("parked", key).length === count);
    const commit = process.holdAt("before-commit", key);
    await operator.leave("retry", key);
    await fleet.happened("the first is being applied", commit.reached);
    await fleet.send(key, { type: "ADD", n: "later" });
    await fleet.clock.settle();
    commit.release();
    await fleet.until("all are applied", () => fleet.record(key)?.rev === count + 2);
    expect(fleet.context(key)).toEqual({ seen: [...Array.from({ length: count }, (_, n) => n + 1), "later"] });
    expect(process.log.largestParkedPage).toBe(MAX_MAILBOX_MESSAGES);
    expect(await fleet.outsider.log.fetch("parked", key, 0, 10)).toEqual([]);
  });

  test("P2: those that cannot be applied again are set aside again once each, beyond a page, too", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100, sweepMs: 600_000 } });
    const process = await fleet.alone("n1");
    const key = await fleet.born("tally", "a");
    const count = MAX_MAILBOX_MESSAGES + 6;
    for (let n = 2; n <= count + 1; n += 1) await fleet.publishInside(key, word("ahead", n), `ahead-${n}`);
    const copies = (): number => fleet.broker.messagesOf("parked", key).length;
    await fleet.until("they are set aside", () => copies() === count);
    await fleet.clock.advance(500);
    process.kill();
    await fleet.alone("n2");
    await fleet.until("they are set aside again", () => copies() === 2 * count);
    await fleet.clock.advance(5000);
    expect(copies()).toBe(2 * count);
    await fleet.publishInside(key, word("ahead", 1), "ahead-1");
    await fleet.until("all are applied", () => fleet.record(key)?.rev === count + 2);
    expect(fleet.context(key)).toEqual({ seen: Array.from({ length: count + 1 }, (_, n) => n + 1) });
    expect(await fleet.outsider.log.fetch("parked", key, 0, 10)).toEqual([]);
  });

  test("C1: what was set aside and is offered again never moves the cursor past a message that nobody has considered", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100, sweepMs: 600_000 } });
    let process = await fleet.alone("n1");
    const key = await fleet.born("tally", "a");
    for (const n of [2, 3, 4, 5]) await fleet.publishInside(key, word("ahead", n), `ahead-${n}`);
    const parked = (): readonly number[] => fleet.broker.messagesOf("parked", key).map(({ seq }) => seq);
    await fleet.until("they are set aside", () => parked().length === 4);
    await fleet.clock.advance(500);
    process.kill();
    process = await fleet.alone("n2"); // every takeover offers them again, and sets them aside again
    await fleet.until("they are set aside again", () => parked().length === 8);
    await fleet.clock.advance(500);
    process.kill();
    for (const n of [6, 7, 8]) await fleet.send(key, { type: "ADD", n });
    const fresh = fleet.broker.messagesOf("inbox", key).slice(-3);
    expect(parked().slice(-4)).toEqual(expect.arrayContaining(fresh.map(({ seq }) => seq))); // or this test shows nothing
    process = await fleet.start("n3");
    const last = process.holdAt("before-commit", key, 2);
    await fleet.happened("only the last one is not stored", last.reached);
    await fleet.clock.advance(5000);
    process.kill();
    await fleet.alone("n4");
    await fleet.until("all are applied", () => JSON.stringify(fleet.context(key)) === '{"seen":[6,7,8]}');
  });

  test("I13: a start for a type that no node serves waits until one does", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100 } });
    const without = testActors(fleet.desk).filter(({ type }) => type !== "helper");
    const first = await fleet.alone("n1", { definitions: without });
    const boss = await fleet.born("boss", "b");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: {} });
    const helper = await fleet.child(boss, "h");
    await fleet.until("it is reported", () => reportOf(first, helper)?.kind === "unserved");
    await fleet.clock.advance(500);
    first.kill();
    await fleet.alone("n2");
    await fleet.until("the helper is there", () => fleet.record(helper) !== undefined);
  });

  test("F35: an outside message that was set aside comes back as one from outside, applied once", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100 } });
    const process = await fleet.alone("n1");
    const key = await fleet.born("boss", "b");
    await fleet.send(key, { type: "DELEGATE", id: "h", input: {} });
    const helper = await fleet.child(key, "h");
    await fleet.until("the helper is there", () => fleet.record(helper) !== undefined);
    await fleet.clock.advance(500);
    const good = fleet.broker.writesOf(key).at(-1);
    process.kill();
    const damaged = new Uint8Array(good?.bytes ?? []);
    damaged[damaged.length - 1] = (damaged.at(-1) ?? 0) ^ 0xff;
    const write = async (bytes: Uint8Array): Promise<void> => {
      const expectedSeq = fleet.broker.writesOf(key).at(-1)?.seq ?? 0;
      await fleet.outsider.records.commit({ key, bytes, expectedSeq, token: "operator", needsWork: true });
    };
    await write(damaged);
    const second = await fleet.alone("n2");
    await fleet.until("it is quarantined", () => reportOf(second, key)?.kind === "quarantined");
    const genesis = fleet.codec.decodeHeader(good?.bytes ?? damaged).genesis;
    const forged = { kind: "settled", toGenesis: genesis, childId: "h", childKey: helper };
    await fleet.outside(key, { ...forged, event: { type: "xstate.done.actor.h", output: "forged" } }, "forged");
    const said = await fleet.send(key, { type: "SAID", n: "honest" });
    await fleet.until("both are set aside", () => fleet.broker.messagesOf("parked", key).length === 2);
    await write(good?.bytes ?? damaged);
    await fleet.send(key, { type: "SAID", n: "later" });
    await fleet.until("what was honest is applied", () => fleet.outcomes(said).length > 0);
    await fleet.clock.advance(1000);
    expect(fleet.context(key)).toEqual({ said: ["honest", "later"], results: [], errors: [] });
    expect(fleet.record(key)?.snapshot.children["h"]?.status).toBe("active");
    expect(fleet.outcomes(said)).toMatchObject([{ kind: "applied" }]);
    expect(reportOf(second, key)).toBeUndefined();
  });
});
