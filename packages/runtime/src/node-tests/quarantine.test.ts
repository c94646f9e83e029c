import { RuntimeFault } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { defineActor, type ActorDefinition } from "../actor-definition.ts";
import { tryParked } from "../parked-message.ts";
import { fragileMachine, type Fragility } from "./fragile.machine.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";
import { OperatorDesk } from "./operator-desk.ts";
import { testActors } from "./test-actors.ts";

const QUICK = { cursorFlushMs: 100, idleCleanMs: 100 };
const reportOf = ({ node }: MemoryProcess, key: string) =>
  [...node.partitions.values()].flatMap(({ reports }) => reports.get(key) ?? [])[0];

const withFragile = (fleet: MemoryFleet, fragility: Fragility, extra: Partial<ActorDefinition> = {}) => [
  ...testActors(fleet.desk),
  defineActor({ type: "fragile", machine: fragileMachine(fragility), ...extra }),
];

/** A fleet with one node whose fragile actor `f` lives, a neighbour of its partition, and an operator. */
async function withOneNode(extra: Partial<ActorDefinition> = {}) {
  const fleet = new MemoryFleet({ settings: QUICK });
  const fragility = { breaks: true };
  const definitions = withFragile(fleet, fragility, extra);
  const process = await fleet.alone("n1", { definitions });
  const operator = await OperatorDesk.open(fleet);
  const key = await fleet.born("fragile", "f");
  return { fleet, fragility, definitions, process, operator, key };
}

const told = async (fleet: MemoryFleet, id: string): Promise<void> =>
  fleet.until(`${id} is answered`, () => fleet.outcomes(id).length > 0);
const word = (from: string, n: number, type = "ADD") =>
  ({ v: 1, kind: "send", id: `${from}@${n}`, from: { key: from, genesis: "g1:9", n }, event: { type, n } }) as const;

describe("a machine that throws", () => {
  test("is tried three times, then the message is taken out with bytes, reason and history; its actor and the cursor go on", async () => {
    const { fleet, process, operator, key } = await withOneNode();
    const poison = await fleet.send(key, { type: "BREAK", n: "poison" });
    const good = await fleet.send(key, { type: "ADD", n: "good" });
    await told(fleet, good);
    expect(fleet.context(key)).toEqual({ seen: ["good"] });
    expect(fleet.record(key)?.status).toBe("active");
    expect(fleet.outcomes(poison)).toEqual([]);
    const entry = operator.message(key, poison);
    expect(entry).toMatchObject({
      key,
      subject: "message",
      state: "quarantined",
      code: "HF-3101",
      reason: expect.stringContaining("cannot take it"),
      attempts: 3,
      messageId: poison,
      principal: "person-ada",
    });
    expect(entry?.reason).not.toContain("second line");
    expect(entry?.history.map(({ node, code }) => [node, code])).toEqual(
      Array.from({ length: 3 }, () => [process.node.incarnation, "HF-3101"]),
    );
    expect(entry?.firstMs).toBeLessThanOrEqual(entry?.lastMs ?? 0);
    const [stored] = fleet.broker.messagesOf("inbox", key).filter(({ messageId }) => messageId === poison);
    const kept = await operator.bytes(key, poison);
    if (stored === undefined || kept === undefined) throw new Error("nothing was kept");
    expect(tryParked(fleet.codec, { ...stored, bytes: kept })?.bytes).toEqual(stored.bytes);
    await fleet.until("the cursor is past it", () => (fleet.lease(key.slice(0, 3))?.cursor ?? 0) > stored.seq);
  });

  test("what is told of it outlives its node, and the next owner does not try the message again", async () => {
    const { fleet, definitions, process, operator, key } = await withOneNode();
    const poison = await fleet.send(key, { type: "BREAK", n: 1 });
    await fleet.until("it is taken out", () => operator.message(key, poison) !== undefined);
    await fleet.clock.advance(500);
    process.kill();
    expect(operator.message(key, poison)?.attempts).toBe(3);
    await fleet.alone("n2", { definitions });
    await told(fleet, await fleet.send(key, { type: "ADD", n: 2 }));
    expect(fleet.context(key)).toEqual({ seen: [2] });
    expect(fleet.events("actor.failed", "n2")).toEqual([]);
    expect(operator.message(key, poison)?.attempts).toBe(3);
  });

  test("retry applies it once the build no longer throws, and nothing of it is left", async () => {
    const { fleet, fragility, operator, key } = await withOneNode();
    const poison = await fleet.send(key, { type: "BREAK", n: "late" });
    await fleet.until("it is taken out", () => operator.message(key, poison) !== undefined);
    expect(await operator.command("retry", key)).toMatchObject({ kind: "refused", code: "HF-3101" });
    expect(operator.message(key, poison)).toMatchObject({ attempts: 6, state: "quarantined" });
    fragility.breaks = false;
    expect(await operator.command("retry", key)).toMatchObject({ kind: "done" });
    expect(fleet.context(key)).toEqual({ seen: ["late"] });
    expect(fleet.outcomes(poison)).toMatchObject([{ kind: "applied" }]);
    await fleet.until("the entry is gone", () => operator.message(key, poison) === undefined);
    expect(await operator.bytes(key, poison)).toBeUndefined();
    expect(await fleet.outsider.log.fetch("parked", key, 0, 10)).toEqual([]);
    await fleet.clock.advance(5000);
    expect(fleet.context(key)).toEqual({ seen: ["late"] });
  });

  test("a link stands still behind it until it is skipped, and then goes on in order", async () => {
    const { fleet, operator, key } = await withOneNode();
    const from = "d-0.talker.far";
    await fleet.publishInside(key, word(from, 1, "BREAK"), "far-1");
    await fleet.publishInside(key, word(from, 2), "far-2");
    await fleet.publishInside(key, word("d-0.talker.near", 1), "near-1");
    await fleet.until("others go on", () => fleet.record(key)?.marks["d-0.talker.near^g1:9"] === 1);
    await fleet.until("it is taken out", () => operator.message(key, "far-1") !== undefined);
    await fleet.publishInside(key, word(from, 3), "far-3");
    await fleet.clock.advance(1000);
    expect(fleet.context(key)).toEqual({ seen: [1] });
    expect(await operator.command("skip", key)).toMatchObject({ kind: "done", what: "message far-1 passed over" });
    await fleet.until("the link goes on", () => fleet.record(key)?.marks[`${from}^g1:9`] === 3);
    expect(fleet.context(key)).toEqual({ seen: [1, 2, 3] });
    expect(operator.entries.size).toBe(0);
  });

  test("a deadline that makes it throw holds the actor: its messages wait, and are applied after a retry", async () => {
    const { fleet, fragility, process, operator, key } = await withOneNode();
    await told(fleet, await fleet.send(key, { type: "WAIT" }));
    await fleet.until("it is held", () => operator.actor(key) !== undefined);
    expect(operator.actor(key)).toMatchObject({ subject: "actor", state: "quarantined", code: "HF-3101", attempts: 3 });
    const waits = await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("its message is set aside", () => fleet.broker.messagesOf("parked", key).length === 1);
    expect(reportOf(process, key)).toMatchObject({ kind: "quarantined", why: expect.stringContaining("HF-3101") });
    await fleet.clock.advance(60_000);
    expect(fleet.events("actor.failed")).toHaveLength(3);
    fragility.breaks = false;
    expect(await operator.command("retry", key)).toMatchObject({ kind: "done" });
    await told(fleet, waits);
    await fleet.until("its deadline comes", () => fleet.record(key)?.snapshot.value === "calm");
    expect(fleet.context(key)).toEqual({ seen: [1, "xstate.after.1000.fragile.waiting"] });
    expect(operator.actor(key)).toBeUndefined();
    expect(reportOf(process, key)).toBeUndefined();
  });

  test("a type that wants it so ends with status error, as in memory", async () => {
    const { fleet, operator, key } = await withOneNode({ onThrow: "fail" });
    const poison = await fleet.send(key, { type: "BREAK", n: 1 });
    await told(fleet, poison);
    expect(fleet.record(key)?.status).toBe("error");
    expect(operator.entries.size).toBe(0);
  });

  test("code of its definition that throws at a commit is no different, and harms nobody else", async () => {
    const { fleet, operator, key } = await withOneNode({
      listFields: (context) => {
        if (JSON.stringify(context).includes("unlisted")) throw new TypeError("no such field");
        return {};
      },
    });
    const poison = await fleet.send(key, { type: "ADD", n: "unlisted" });
    await told(fleet, await fleet.send(key, { type: "ADD", n: 2 }));
    expect(fleet.context(key)).toEqual({ seen: [2] });
    expect(operator.message(key, poison)).toMatchObject({ code: "HF-3101", reason: "no such field" });
  });

  test("a public event that cannot be made of an emitted one is left out; what comes behind it leaves", async () => {
    const fleet = new MemoryFleet({ settings: QUICK });
    const [tally, ...others] = testActors(fleet.desk);
    if (tally === undefined) throw new Error("no tally");
    const publicEvent = (): undefined => {
      throw new TypeError("no such event");
    };
    await fleet.alone("n1", { definitions: [...others, { ...tally, publicEvent }] });
    const key = await fleet.born("tally", "a");
    await told(fleet, await fleet.send(key, { type: "EMIT" }));
    await fleet.until("its outbox is empty", () => fleet.record(key)?.outbox.length === 0);
    expect(fleet.events("actor.event-failed")).toHaveLength(1);
    expect(fleet.broker.events()).toEqual([]);
  });

  test("a broker that does not answer is no attempt", async () => {
    const { fleet, process, operator, key } = await withOneNode();
    const { quarantine } =
      [...process.node.partitions.values()].flatMap((owner) => owner.cells.get(key) ?? [])[0] ?? {};
    const failing = (error: unknown) => quarantine?.failed({ kind: "clean" }, error);
    const unanswered = new RuntimeFault("HF-4008", "nobody answered");
    for (let n = 0; n < 6; n += 1) expect(await failing(unanswered)).toBe(false);
    expect(operator.entries.size).toBe(0);
    const tries = [
      await failing(new Error("a bug")),
      await failing(new Error("a bug")),
      await failing(new Error("a bug")),
    ];
    expect(tries).toEqual([false, false, true]);
    await fleet.clock.settle();
    expect(operator.actor(key)).toMatchObject({ code: "HF-3101", attempts: 3 });
  });
});

describe("bytes that cannot be read", () => {
  test("a message that is none is taken out at once, and costs the actor nothing", async () => {
    const { fleet, operator, key } = await withOneNode();
    await fleet.outsider.log.publish("inbox", key, new Uint8Array([0xc1, 1, 2]), "garbage");
    await told(fleet, await fleet.send(key, { type: "ADD", n: 1 }));
    expect(fleet.context(key)).toEqual({ seen: [1] });
    expect(operator.message(key, "garbage")).toMatchObject({ state: "quarantined", code: "HF-1001", attempts: 1 });
    expect(await operator.command("skip", key, "garbage")).toMatchObject({ kind: "done" });
    expect(operator.entries.size).toBe(0);
  });

  test.each([
    ["of a newer schema", { v: 2, kind: "send", id: "new", event: { type: "ADD", n: 9 } }],
    ["of a kind that this build does not know", { v: 1, kind: "whisper", id: "new" }],
  ])("I13: a message %s is parked, listed, and offered again to the next owner", async (_title, envelope) => {
    const { fleet, definitions, process, operator, key } = await withOneNode();
    const bytes = fleet.codec.encodeValue(envelope);
    await fleet.outsider.log.publish("inbox", key, bytes, "newer");
    await told(fleet, await fleet.send(key, { type: "ADD", n: 1 }));
    expect(operator.message(key, "newer")).toMatchObject({ state: "parked", code: "HF-2003", attempts: 1 });
    process.kill();
    const second = await fleet.alone("n2", { definitions });
    await fleet.until("it was tried there, too", () => operator.message(key, "newer")?.attempts === 2);
    expect(operator.message(key, "newer")?.history.map(({ node }) => node)).toEqual([
      process.node.incarnation,
      second.node.incarnation,
    ]);
    expect(await operator.command("skip", key, "newer")).toMatchObject({ kind: "done" });
    expect(operator.entries.size).toBe(0);
    expect(await fleet.outsider.log.fetch("parked", key, 0, 10)).toEqual([]);
  });

  test("I13: a damaged record is listed with where its bytes are, whoever lives; retry takes it up once it is restored", async () => {
    const { fleet, definitions, process, operator, key } = await withOneNode();
    await told(fleet, await fleet.send(key, { type: "ADD", n: 1 }));
    await fleet.clock.advance(1000);
    process.kill();
    const good = fleet.broker.writesOf(key).at(-1);
    const write = async (bytes: Uint8Array): Promise<void> => {
      const expectedSeq = fleet.broker.writesOf(key).at(-1)?.seq ?? 0;
      await fleet.outsider.records.commit({ key, bytes, expectedSeq, token: "other", needsWork: true });
    };
    const damaged = new Uint8Array(good?.bytes ?? []);
    damaged[damaged.length - 1] = (damaged.at(-1) ?? 0) ^ 0xff;
    await write(damaged);
    const second = await fleet.alone("n2", { definitions });
    await fleet.until("it is listed", () => operator.actor(key) !== undefined);
    const { seq } = fleet.broker.writesOf(key).at(-1) ?? { seq: 0 };
    expect(operator.actor(key)).toMatchObject({ state: "quarantined", code: "HF-2002", seq, size: damaged.length });
    const waits = await fleet.send(key, { type: "ADD", n: 2 });
    await fleet.until("its message waits", () => fleet.broker.messagesOf("parked", key).length === 1);
    second.kill();
    expect(operator.actor(key)).toBeDefined();
    await fleet.alone("n3", { definitions });
    expect(await operator.command("retry", key)).toMatchObject({ kind: "refused", code: "HF-2002" });
    await write(good?.bytes ?? damaged);
    expect(await operator.command("retry", key)).toMatchObject({ kind: "done" });
    await told(fleet, waits);
    expect(fleet.context(key)).toEqual({ seen: [1, 2] });
    expect(operator.entries.size).toBe(0);
  });
});
