import { describe, expect, test } from "vitest";
import { defineActor, type ActorDefinition } from "../actor-definition.ts";
import { crateMachine } from "./crate.machine.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";
import { OperatorDesk } from "./operator-desk.ts";
import { testActors } from "./test-actors.ts";
import { brittleVersion, restingVersion } from "./versions.machine.ts";

const reportOf = ({ node }: MemoryProcess, key: string) =>
  [...node.partitions.values()].flatMap(({ reports }) => reports.get(key) ?? [])[0];

/** Puts bytes where a record is, as another build, a bad disk or a bad tool would. */
async function overwrite(fleet: MemoryFleet, key: string, change: (bytes: Uint8Array) => void): Promise<Uint8Array> {
  const last = fleet.broker.writesOf(key).at(-1);
  const bytes = new Uint8Array(last?.bytes ?? []);
  change(bytes);
  await fleet.outsider.records.commit({ key, bytes, expectedSeq: last?.seq ?? 0, token: "other", needsWork: true });
  return bytes;
}

/** Ids of two actors of a type that live in the same partition. */
function neighbours(fleet: MemoryFleet, type: string): readonly [string, string] {
  const first = fleet.key(type, "a");
  for (let n = 0; ; n += 1) if (fleet.key(type, `x${n}`).startsWith(first.slice(0, 4))) return ["a", `x${n}`];
}

const tallyOf = (id: string, version: string, states: readonly string[]): ActorDefinition =>
  defineActor({ type: "resting", machine: restingVersion(id, version, states) });

describe("a record that cannot be used", () => {
  test.each([
    ["I13: damaged bytes are quarantined", "quarantined", (bytes: Uint8Array) => bytes.set([0xff], bytes.length - 1)],
    ["I13: bytes of a newer build are parked", "parked", (bytes: Uint8Array) => bytes.set([200], 2)],
  ] as const)("%s, untouched; its messages wait, others and the cursor go on", async (_title, kind, change) => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100, idleCleanMs: 100 } });
    const first = await fleet.alone("n1");
    const [bad, good] = neighbours(fleet, "tally");
    const key = await fleet.born("tally", bad);
    const neighbour = await fleet.born("tally", good);
    await fleet.clock.advance(1000);
    first.kill();
    const bytes = await overwrite(fleet, key, change);
    const second = await fleet.alone("n2");
    expect(reportOf(second, key)?.kind).toBe(kind);
    const message = await fleet.send(key, { type: "ADD", n: 1 });
    const other = await fleet.send(neighbour, { type: "ADD", n: 2 });
    await fleet.until("the neighbour goes on", () => fleet.outcomes(other).length > 0);
    await fleet.until("the message is set aside", () => fleet.broker.messagesOf("parked", key).length === 1);
    expect(reportOf(second, key)?.kind).toBe(kind);
    const { seq } = fleet.broker.messagesOf("inbox", neighbour).at(-1) ?? { seq: 0 };
    await fleet.until("the cursor is past both", () => (fleet.lease(key.slice(0, 3))?.cursor ?? 0) > seq);
    await fleet.clock.advance(60_000);
    expect(fleet.broker.writesOf(key).at(-1)?.bytes).toEqual(bytes);
    expect(fleet.outcomes(message)).toEqual([]);
    const [report] = fleet
      .events("partition.taken", "n2")
      .filter(({ fields }) => fields["partition"] === key.slice(0, 3));
    expect(report?.fields).toMatchObject({ [kind]: 1, held: [{ key }] });
  });

  test("I13: one that needs a machine this build does not have is parked, and goes on where it is known", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100, idleCleanMs: 100 } });
    const others = testActors(fleet.desk).filter(({ type }) => type !== "resting");
    const first = await fleet.alone("n1", { definitions: [...others, tallyOf("resting", "1", ["one", "two"])] });
    const key = await fleet.born("resting", "a");
    first.kill();
    const second = await fleet.alone("n2", { definitions: [...others, tallyOf("other", "1", ["one", "two"])] });
    const message = await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("it is parked", () => reportOf(second, key)?.kind === "parked");
    await fleet.until("so is the message", () => fleet.broker.messagesOf("parked", key).length > 0);
    second.kill();
    await fleet.alone("n3", { definitions: [...others, tallyOf("resting", "2", ["one", "two", "three"])] });
    await fleet.until("the message is applied", () => fleet.outcomes(message).length > 0);
    expect(fleet.context(key)).toEqual({ seen: [1] });
    expect(fleet.record(key)?.machine.version).toBe("2");
  });

  test("I13: one whose state this build's machine does not have is parked", async () => {
    const fleet = new MemoryFleet();
    const others = testActors(fleet.desk).filter(({ type }) => type !== "resting");
    const first = await fleet.alone("n1", { definitions: [...others, tallyOf("resting", "1", ["gone", "one"])] });
    const key = await fleet.born("resting", "a");
    first.kill();
    const revisions = fleet.revisions(key).length;
    const second = await fleet.alone("n2", { definitions: [...others, tallyOf("resting", "2", ["one"])] });
    await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("it is parked", () => reportOf(second, key)?.kind === "parked");
    await fleet.clock.advance(5000);
    expect(fleet.revisions(key)).toHaveLength(revisions);
  });

  test("I13: while its repair for a new build cannot be stored, its senders are told nothing that is not so", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100 } });
    const others = testActors(fleet.desk).filter(({ type }) => type !== "resting");
    const first = await fleet.alone("n1", { definitions: [...others, tallyOf("resting", "1", ["one"])] });
    const key = await fleet.born("resting", "a");
    await fleet.until("it sleeps", () => fleet.header(key)?.needsWork === false);
    await fleet.clock.advance(500);
    first.kill();
    await fleet.alone("n2", { definitions: [...others, tallyOf("resting", "2", ["one", "two"])] });
    fleet.broker.faults.nextCommit({ kind: "refuse", giveUp: true }, { about: key });
    const message = await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("the sender was told", () => fleet.outcomes(message).length > 0);
    expect(fleet.outcomes(message)).toMatchObject([{ kind: "applied" }]);
    expect(fleet.record(key)?.machine.version).toBe("2");
  });

  test("I12: one whose repair breaks is parked, and the takeover of its partition goes on without it", async () => {
    const fleet = new MemoryFleet();
    const others = testActors(fleet.desk).filter(({ type }) => type !== "resting");
    const first = await fleet.alone("n1", { definitions: [...others, tallyOf("resting", "1", ["one"])] });
    const key = await fleet.born("resting", "a");
    const job = await fleet.born("errand", "e");
    await fleet.send(job, { type: "RUN", src: "free" });
    await fleet.until("a job runs", () => fleet.desk.of("free").length === 1);
    first.kill();
    const second = await fleet.alone("n2", {
      definitions: [...others, defineActor({ type: "resting", machine: brittleVersion })],
    });
    expect(reportOf(second, key)).toMatchObject({ kind: "parked" });
    await fleet.until("others go on", () => fleet.desk.of("free", "n2").length === 1);
    expect(fleet.record(key)?.machine.version).toBe("1");
  });
});

describe("a message that cannot be applied at all", () => {
  test("F10: one that would make the record too large is refused, the actor is unharmed, and its link goes on", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const key = await fleet.born("tally", "a");
    const big = "x".repeat(300_000);
    const outside: string[] = [];
    for (const n of ["small", big, big, "also small"]) {
      outside.push(await fleet.send(key, { type: "ADD", n }));
    }
    await fleet.until("all were answered", () => outside.every((id) => fleet.outcomes(id).length === 1));
    expect(outside.map((id) => fleet.outcomes(id)[0]?.kind)).toEqual(["applied", "applied", "refused", "applied"]);
    expect(fleet.outcomes(outside[2] ?? "")).toMatchObject([{ code: "HF-2004" }]);
    const from = { key: "d-0.talker.far", genesis: "g1:9" };
    for (const [n, value] of [1, big, 3].entries()) {
      const event = { type: "ADD", n: value };
      const id = `far@${n}`;
      await fleet.publishInside(key, { v: 1, kind: "send", id, from: { ...from, n: n + 1 }, event }, id);
    }
    await fleet.until("the link goes on", () => fleet.record(key)?.marks["d-0.talker.far^g1:9"] === 3);
    expect(fleet.context(key)).toEqual({ seen: ["small", big, "also small", 1, 3] });
  });

  test("F10: what would make the record too large is kept with its bytes, and taken after retry once there is room", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone("n1", {
      definitions: [...testActors(fleet.desk), defineActor({ type: "crate", machine: crateMachine })],
    });
    const operator = await OperatorDesk.open(fleet);
    const key = await fleet.born("crate", "c");
    const [big, from] = ["x".repeat(300_000), { key: "d-0.talker.far", genesis: "g1:9" }];
    const put = (n: number, value: string) =>
      fleet.publishInside(
        key,
        { v: 1, kind: "send", id: `far@${n}`, from: { ...from, n }, event: { type: "PUT", value } },
        `far-${n}`,
      );
    await fleet.send(key, { type: "PUT", value: big });
    await put(1, big);
    const outside = await fleet.send(key, { type: "PUT", value: `${big}!` });
    await put(2, "small");
    await fleet.until("the link goes on", () => fleet.record(key)?.marks["d-0.talker.far^g1:9"] === 2);
    for (const id of ["far-1", outside]) {
      expect(operator.message(key, id)).toMatchObject({ code: "HF-2004", state: "quarantined", attempts: 1 });
      expect((await operator.bytes(key, id))?.length).toBeGreaterThan(300_000);
    }
    expect(await operator.command("retry", key, "far-1")).toMatchObject({ kind: "refused", code: "HF-2004" });
    await fleet.send(key, { type: "EMPTY" });
    expect(await operator.command("retry", key, "far-1")).toMatchObject({ kind: "done" });
    await fleet.until("it is applied", () => JSON.stringify(fleet.context(key)) === JSON.stringify({ held: [big] }));
    await fleet.send(key, { type: "EMPTY" });
    expect(await operator.command("skip", key, outside)).toMatchObject({ kind: "done" });
    await fleet.until("nothing is kept", () => operator.entries.size === 0);
    expect(fleet.context(key)).toEqual({ held: [] });
  });

  test("F10: its link goes on even when that could not be stored at first", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const key = await fleet.born("tally", "a");
    fleet.broker.faults.nextCommit({ kind: "refuse", giveUp: true }, { about: key });
    const from = { key: "d-0.talker.far", genesis: "g1:9" };
    for (const [n, value] of ["x".repeat(600_000), 2].entries()) {
      const event = { type: "ADD", n: value };
      const id = `far@${n}`;
      await fleet.publishInside(key, { v: 1, kind: "send", id, from: { ...from, n: n + 1 }, event }, id);
    }
    await fleet.until("the link goes on", () => fleet.record(key)?.marks["d-0.talker.far^g1:9"] === 2);
    expect(fleet.context(key)).toEqual({ seen: [2] });
  });

  test("F10: an outcome too large to be kept becomes the error of its job", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.until("the job runs", () => fleet.desk.of("free").length === 1);
    fleet.desk.of("free")[0]?.finish("x".repeat(600_000));
    await fleet.until("the actor goes on", () => fleet.record(key)?.snapshot.value === "waiting");
    expect(fleet.context(key)).toMatchObject({ results: [], errors: [{ code: "HF-2004" }] });
  });

  test("F10: an outcome that the stream never takes becomes the error of its job", async () => {
    const fleet = new MemoryFleet({ maxPayloadBytes: 100_000 });
    await fleet.alone();
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.until("the job runs", () => fleet.desk.of("free").length === 1);
    fleet.desk.of("free")[0]?.finish("x".repeat(110_000));
    await fleet.until("the actor goes on", () => fleet.record(key)?.snapshot.value === "waiting");
    expect(fleet.context(key)).toMatchObject({ results: [], errors: [{ code: "HF-4004" }] });
  });

  test("F10: one that no step can be made of on this node is set aside, and the cursor goes on", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100 } });
    const wrong = testActors(fleet.desk).map((definition) =>
      definition.type === "helper" ? defineActor({ ...definition, pool: "moon" }) : definition,
    );
    const first = await fleet.alone("n1", { definitions: wrong });
    const boss = await fleet.born("boss", "b");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: {} });
    const said = await fleet.send(boss, { type: "SAID", n: 1 });
    await fleet.until("what is behind it is applied", () => fleet.outcomes(said).length > 0);
    await fleet.until("the cursor is past it", () => (fleet.lease(boss.slice(0, 3))?.cursor ?? 0) > 3);
    expect(reportOf(first, boss)).toMatchObject({ kind: "orphan-messages", why: expect.stringContaining("HF-1002") });
    first.kill();
    await fleet.alone("n2");
    await fleet.until("a node that can takes it up", () => fleet.record(boss)?.snapshot.children["h"] !== undefined);
  });
});
