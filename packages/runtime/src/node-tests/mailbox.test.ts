import { MAX_MAILBOX_MESSAGES } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { Mailbox } from "../mailbox.ts";
import { MemoryBudget } from "../memory-budget.ts";
import { storedEntries } from "./journal-replay.ts";
import { MemoryFleet } from "./memory-fleet.ts";

const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);

describe("the mailbox of an actor", () => {
  test("F43: a thousand messages while the actor is busy are all applied, once and in order", async () => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone();
    const key = await fleet.born("resting", "a");
    const busy = process.holdAt("before-commit", key);
    const sent: Promise<string>[] = [];
    for (const n of numbers(1000)) sent.push(fleet.send(key, { type: "ADD", n }));
    await Promise.all(sent);
    await fleet.happened("the actor is busy", busy.reached);
    await fleet.clock.advance(1000);
    const [owner] = [...process.node.partitions.values()].filter(({ partition }) => key.startsWith(`${partition}.`));
    expect(owner?.cursor.pending).toBe(1000);
    busy.release();
    await fleet.until("all are applied", () => fleet.record(key)?.rev === 1001);
    expect(fleet.context(key)).toEqual({ seen: numbers(1000) });
    expect(owner?.cursor.pending).toBe(0);
  });

  test("F43: only so many wait in memory, the rest is fetched when there is room", async () => {
    const fleet = new MemoryFleet();
    const key = fleet.key("resting", "a");
    for (const n of numbers(200)) await fleet.send(key, { type: "ADD", n });
    const mailbox = new Mailbox(key, fleet.outsider.log, new MemoryBudget(1_000_000));
    const inbox = await fleet.outsider.log.subscribe(key.slice(0, 3), 1, (message) => mailbox.offer(message));
    await inbox.readThrough(new AbortController().signal);
    const takeAll = (): readonly number[] => {
      const taken: number[] = [];
      for (let item = mailbox.next(); item !== undefined; item = mailbox.next())
        if (item.kind === "message") taken.push(item.message.seq);
      return taken;
    };
    const rounds = [takeAll()];
    while (await mailbox.refill()) rounds.push(takeAll());
    expect(rounds.map((round) => round.length)).toEqual([64, 64, 64, 8]);
    expect(rounds.flat()).toEqual(numbers(200).map((n) => n + 1));
    expect(mailbox.isEmpty).toBe(true);
    await inbox.stop();
  });

  test("F43: what waits for a busy actor holds up nobody else of its partition", async () => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone();
    const key = await fleet.born("resting", "a");
    let neighbour = "";
    for (let n = 0; !neighbour.startsWith(key.slice(0, 4)); n += 1) neighbour = fleet.key("resting", `x${n}`);
    await fleet.begin("resting", neighbour.slice(neighbour.lastIndexOf(".") + 1));
    const busy = process.holdAt("before-commit", key);
    for (const n of numbers(2 * MAX_MAILBOX_MESSAGES)) await fleet.send(key, { type: "ADD", n });
    const other = await fleet.send(neighbour, { type: "ADD", n: 1 });
    await fleet.until("the neighbour is served", () => fleet.outcomes(other).length > 0);
    busy.release();
    await fleet.until("so is the busy one", () => fleet.record(key)?.rev === 2 * MAX_MAILBOX_MESSAGES + 1);
  });

  test("F43: what was cut off comes although the stream cannot be read at first", async () => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone();
    const key = await fleet.born("resting", "a");
    const busy = process.holdAt("before-commit", key);
    for (const n of numbers(2 * MAX_MAILBOX_MESSAGES)) await fleet.send(key, { type: "ADD", n });
    await fleet.happened("the actor is busy", busy.reached);
    process.log.failReads(3);
    busy.release();
    await fleet.until("all are applied", () => fleet.record(key)?.rev === 2 * MAX_MAILBOX_MESSAGES + 1);
    expect(fleet.context(key)).toEqual({ seen: numbers(2 * MAX_MAILBOX_MESSAGES) });
  });

  test("F43: messages of the control lane that were cut off come back too, in order", async () => {
    const fleet = new MemoryFleet();
    const process = await fleet.alone();
    const boss = await fleet.born("boss", "b");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: {} });
    const helper = await fleet.child(boss, "h");
    await fleet.until("the helper is there", () => fleet.record(helper) !== undefined);
    const busy = process.holdAt("before-commit", helper);
    for (const n of numbers(2 * MAX_MAILBOX_MESSAGES)) await fleet.send(helper, { type: "WORD", n });
    const stop = fleet.codec.encodeEnvelope({ v: 1, kind: "stop", id: "stop" });
    await fleet.outsider.log.publish("control", helper, stop, "stop");
    await fleet.send(helper, { type: "WORD", n: "too late" });
    await fleet.happened("the helper is busy", busy.reached);
    busy.release();
    await fleet.until("it is stopped", () => fleet.record(helper)?.status === "stopped");
    expect(fleet.context(helper)).toMatchObject({ words: numbers(2 * MAX_MAILBOX_MESSAGES) });
  });

  test("F39: a message that was ignored is not looked at again in another state", async () => {
    const fleet = new MemoryFleet({ settings: { idleCleanMs: 600_000 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("tally", "a");
    const hint = await fleet.send(key, { type: "HINT" });
    await fleet.until("it is ignored", () => fleet.outcomes(hint).length > 0);
    expect(fleet.outcomes(hint)).toMatchObject([{ kind: "ignored", value: "shy" }]);
    await fleet.send(key, { type: "OPEN_UP" });
    await fleet.until("the actor has changed", () => fleet.record(key)?.snapshot.value === "open");
    first.kill(); // before the cursor was stored: everything is read again
    expect(fleet.lease(key.slice(0, 3))?.cursor).toBe(1);
    await fleet.alone("n2");
    await fleet.clock.advance(2000);
    expect(fleet.context(key)).toEqual({ seen: [] });
    expect(fleet.outcomes(hint)).toHaveLength(1);
  });

  test("an actor at rest gets its outbox cleared, so that a takeover does not even look at it", async () => {
    const fleet = new MemoryFleet({ settings: { idleCleanMs: 1000, cursorFlushMs: 500 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("resting", "a");
    await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("it is stored", () => fleet.record(key)?.rev === 2);
    expect(fleet.header(key)?.needsWork).toBe(true);
    await fleet.until("it costs nothing any more", () => fleet.header(key)?.needsWork === false);
    expect(fleet.record(key)).toMatchObject({ rev: 2, outbox: [] });
    await fleet.clock.advance(1000);
    first.kill();
    const second = await fleet.alone("n2");
    const reports = fleet.events("partition.taken", "n2").map(({ fields }) => fields["found"]);
    expect(reports).toEqual([0, 0, 0, 0]);
    expect([...second.node.partitions.values()].flatMap(({ cells }) => [...cells.keys()])).toEqual([]);
    await fleet.send(key, { type: "ADD", n: 2 });
    await fleet.until("it wakes up for a message", () => fleet.record(key)?.rev === 3);
    expect(fleet.context(key)).toEqual({ seen: [1, 2] });
  });
});

describe("what comes from outside", () => {
  test("F2: a message that is stored twice under one id is applied once, and its sender is told so", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const key = await fleet.born("tally", "a");
    await fleet.send(key, { type: "ADD", n: 1 }, "same");
    await fleet.until("it is answered", () => fleet.outcomes("same").length === 1);
    fleet.broker.forgetMessageIds();
    await fleet.send(key, { type: "ADD", n: 1 }, "same");
    await fleet.until("it is answered again", () => fleet.outcomes("same").length === 2);
    expect(fleet.outcomes("same").map(({ kind }) => kind)).toEqual(["applied", "ignored"]);
    expect(fleet.context(key)).toEqual({ seen: [1] });
  });

  test("F35: nobody outside can speak as an actor, or skip its messages", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const key = await fleet.born("tally", "a");
    const from = { key: "d-0.talker.far", genesis: "g1:9" };
    await fleet.outside(
      key,
      { kind: "send", from: { ...from, n: 9_007_199_254_740_991 }, event: { type: "ADD", n: "forged" } },
      "f1",
    );
    await fleet.until("it is taken for what it is", () => fleet.outcomes("f1").length > 0);
    expect(fleet.record(key)?.marks).toEqual({});
    const event = { type: "ADD", n: "genuine" };
    await fleet.publishInside(key, { v: 1, kind: "send", id: "far@1", from: { ...from, n: 1 }, event }, "far-1");
    await fleet.until("the genuine one is applied", () => fleet.record(key)?.rev === 3);
    expect(fleet.context(key)).toEqual({ seen: ["forged", "genuine"] });
  });

  test.each([
    ["an outcome", { kind: "settled", event: { type: "xstate.done.actor.h", output: "forged" } }],
    ["a failure", { kind: "settled", event: { type: "xstate.error.actor.h", error: "forged" } }],
    ["a stop", { kind: "stop" }],
    ["an event of the runtime", { kind: "send", event: { type: "xstate.done.actor.h", output: "forged" } }],
    ["a timer", { kind: "send", event: { type: "xstate.after.deadline.boss" } }],
  ])("F35: %s from outside changes nothing", async (_what, body) => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const boss = await fleet.born("boss", "b");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: {} });
    const helper = await fleet.child(boss, "h");
    const toGenesis = fleet.record(boss)?.genesis;
    await fleet.outside(boss, { toGenesis, childId: "h", childKey: helper, ...body }, "forged");
    const after = await fleet.send(boss, { type: "SAID", n: "after" });
    await fleet.until("what came after is applied", () => fleet.outcomes(after).length > 0);
    expect(fleet.context(boss)).toEqual({ said: ["after"], results: [], errors: [] });
    expect(fleet.record(boss)).toMatchObject({ status: "active", snapshot: { children: { h: { status: "active" } } } });
    if (body.kind === "send") expect(fleet.outcomes("forged")).toMatchObject([{ kind: "refused", code: "HF-1004" }]);
  });

  test("F35: who starts an actor is known from the subject, whoever the payload names", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const parent = { key: "d-0.boss.b", genesis: "g1:1", childId: "h", sync: true };
    const key = fleet.key("tally", "a");
    await fleet.outside(key, { kind: "start", parent, principal: { kind: "person", id: "root", roles: ["admin"] } });
    await fleet.until("it is there", () => fleet.record(key) !== undefined);
    expect(fleet.record(key)?.parent).toBeUndefined();
    expect(fleet.record(key)?.principal).toEqual({ kind: "person", id: "ada", roles: [] });
  });

  test("F35: the roles of a sender are those its node knows of, whatever it says of itself", async () => {
    const roles = { reviewer: ["person-ada", "person-ben"], operator: ["person-ben"] };
    const fleet = new MemoryFleet({ settings: { roles } });
    await fleet.alone();
    const principal = { kind: "person", id: "ben", roles: ["operator"] };
    const key = fleet.key("tally", "a");
    await fleet.outside(key, { kind: "start", principal });
    await fleet.until("it is there", () => fleet.record(key) !== undefined);
    expect(fleet.record(key)?.principal).toEqual({ kind: "person", id: "ada", roles: ["reviewer"] });
    await fleet.outside(key, { kind: "send", event: { type: "ADD", n: "1", principal } }, "added");
    await fleet.until("it is applied", () => fleet.outcomes("added").length > 0);
    const added = () => storedEntries(fleet, key).find(({ event }) => event.type === "ADD");
    await fleet.until("it is in the journal", () => added() !== undefined);
    expect(added()?.event["principal"]).toEqual({ kind: "person", id: "ada", roles: ["reviewer"] });
  });

  test.each(["hf.test.inbox.d-0.tally.a", "$KV.hf_test_actors_0.d-0.tally.a", "_INBOX.*", "_INBOX"])(
    "F35: an answer cannot be aimed at %s",
    async (replyTo) => {
      const fleet = new MemoryFleet();
      await fleet.alone();
      const key = await fleet.born("tally", "a");
      const heard: string[] = [];
      fleet.broker.listen(">", ({ subject }) => heard.push(subject));
      await fleet.outside(key, { kind: "send", event: { type: "ADD", n: "aimed" }, replyTo }, "aimed");
      const after = await fleet.send(key, { type: "ADD", n: "after" });
      await fleet.until("what came after is applied", () => fleet.outcomes(after).length > 0);
      expect(fleet.context(key)).toEqual({ seen: ["after"] });
      expect(heard).toEqual(["_INBOX.ada.1"]);
    },
  );

  test("what no actor of this type accepts is refused with the reason", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const nobody = await fleet.send(fleet.key("tally", "nobody"), { type: "ADD", n: 1 });
    await fleet.until("the sender was told", () => fleet.outcomes(nobody).length > 0);
    expect(fleet.outcomes(nobody)).toMatchObject([{ kind: "refused", code: "HF-3001" }]);
    const key = await fleet.born("tally", "a");
    await fleet.send(key, { type: "END" });
    const late = await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("the sender was told", () => fleet.outcomes(late).length > 0);
    expect(fleet.outcomes(late)).toMatchObject([{ kind: "refused", code: "HF-3009", status: "done" }]);
  });

  test("an event whose type is as long as a book is refused, and the actor is unharmed", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const key = await fleet.born("tally", "a");
    const long = await fleet.send(key, { type: "A".repeat(300) });
    const after = await fleet.send(key, { type: "ADD", n: "after" });
    await fleet.until("both senders were told", () => [long, after].every((id) => fleet.outcomes(id).length > 0));
    expect(fleet.outcomes(long)).toMatchObject([{ kind: "refused", code: "HF-1001" }]);
    expect(fleet.context(key)).toEqual({ seen: ["after"] });
  });
});
