import { describe, expect, test } from "vitest";
import { defineActor } from "../actor-definition.ts";
import { bossMachine, helperMachine, managerMachine } from "./boss.machine.ts";
import { MemoryFleet } from "./memory-fleet.ts";
import { testActors } from "./test-actors.ts";

const errorsOf = (fleet: MemoryFleet, boss: string): readonly unknown[] => {
  const context = fleet.context(boss);
  return typeof context === "object" && context !== null && "errors" in context && Array.isArray(context.errors)
    ? context.errors
    : [];
};

describe("every start ends in a record, or in an error at the parent", () => {
  test("F28: input that the stream never takes", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const boss = await fleet.born("boss", "b");
    fleet.broker.faults.nextPublish({ kind: "refuse", retryable: false }, { about: ".helper." });
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: {} });
    await fleet.until("the parent was told", () => errorsOf(fleet, boss).length > 0);
    expect(errorsOf(fleet, boss)).toMatchObject([{ code: "HF-4004" }]);
    expect(fleet.record(boss)?.snapshot.children["h"]?.status).toBe("error");
    await fleet.send(boss, { type: "DELEGATE", id: "h2", input: {} });
    const next = await fleet.child(boss, "h2");
    await fleet.until("the next start goes its way", () => fleet.record(next) !== undefined);
  });

  test("F28: a first state that is too large to be stored", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const boss = await fleet.born("boss", "b");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: { bulk: 600_000 } });
    await fleet.until("the parent was told", () => errorsOf(fleet, boss).length > 0);
    expect(errorsOf(fleet, boss)).toMatchObject([{ code: "HF-2004" }]);
    expect(fleet.record(await fleet.child(boss, "h"))).toBeUndefined();
  });

  test("F28: a first state that is too large, when telling the parent fails at first and the node dies", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const boss = await fleet.born("boss", "b");
    const told = fleet.broker.faults.nextPublish({ kind: "hang" }, { node: "n1", about: ".boss." });
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: { bulk: 600_000 } });
    await fleet.happened("the parent is being told", told.happened);
    await fleet.clock.advance(6000); // cursors are flushed
    first.kill();
    await fleet.start("n2");
    await fleet.until("the parent was told", () => errorsOf(fleet, boss).length > 0);
    await fleet.clock.advance(5000);
    expect(errorsOf(fleet, boss)).toMatchObject([{ code: "HF-2004" }]);
  });

  test("F28: a throw in the first state", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const boss = await fleet.born("boss", "b");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: { breaks: true } });
    await fleet.until("the parent was told", () => errorsOf(fleet, boss).length > 0);
    expect(errorsOf(fleet, boss)).toMatchObject([{ message: "cannot begin" }]);
    expect(fleet.record(await fleet.child(boss, "h"))?.status).toBe("error");
  });

  test("F28: a first state that wants a child in a pool the namespace does not have", async () => {
    const fleet = new MemoryFleet();
    const elsewhere = [
      ...testActors(fleet.desk).filter(({ type }) => type !== "boss"),
      defineActor({
        type: "boss",
        machine: bossMachine,
        childActors: { helper: { type: "manager" }, stranger: { type: "helper" } },
      }),
      defineActor({ type: "manager", machine: managerMachine, childActors: { assistant: { type: "away" } } }),
      defineActor({ type: "away", pool: "moon", machine: helperMachine }),
    ];
    await fleet.alone("n1", { definitions: elsewhere });
    const boss = await fleet.born("boss", "b");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: {} });
    await fleet.until("the parent was told", () => errorsOf(fleet, boss).length > 0);
    expect(errorsOf(fleet, boss)).toMatchObject([{ code: "HF-1002" }]);
  });
});

describe("a start that comes again", () => {
  test("does not harm the living actor; its sender is told that there is one", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const key = await fleet.born("tally", "a");
    await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("it has counted", () => fleet.record(key)?.rev === 2);
    const again = await fleet.begin("tally", "a");
    await fleet.until("the sender was told", () => fleet.outcomes(again).length > 0);
    expect(fleet.outcomes(again)).toMatchObject([{ kind: "ignored", rev: 2, status: "active" }]);
    expect(fleet.context(key)).toEqual({ seen: [1] });
  });

  test("F9: makes an ended actor send its result again, and starts nothing", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const boss = await fleet.born("boss", "b");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: { works: true } });
    const helper = await fleet.child(boss, "h");
    await fleet.until("it works", () => fleet.desk.of("labour").length === 1);
    fleet.desk.of("labour")[0]?.finish("done");
    await fleet.until("the parent has the result", () => fleet.record(boss)?.snapshot.children["h"]?.status === "done");
    const [start] = fleet.broker.messagesOf("inbox", helper);
    const before = fleet.broker.messagesOf("inbox", boss).length;
    fleet.broker.forgetMessageIds();
    await fleet.outsider.log.publish("inbox", helper, start?.bytes ?? new Uint8Array(), "again");
    await fleet.until("it is sent again", () => fleet.broker.messagesOf("inbox", boss).length === before + 1);
    await fleet.clock.advance(5000);
    expect(fleet.context(boss)).toEqual({ said: [], results: [{ words: [] }], errors: [] });
    expect(fleet.desk.of("labour")).toHaveLength(1);
    expect(fleet.record(helper)?.status).toBe("done");
  });
});

describe("a start from outside", () => {
  const told = async (fleet: MemoryFleet, id: string) => {
    await fleet.until(`${id} was answered`, () => fleet.outcomes(id).length > 0);
    return fleet.outcomes(id)[0];
  };

  test("the same id with the same content finds the actor, with other content it is refused and changes nothing", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const key = await fleet.born("helper", "h", { b: 1, a: { x: [1], y: new Date(0) } });
    const same = await fleet.begin("helper", "h", { a: { y: new Date(0), x: [1] }, b: 1 });
    expect(await told(fleet, same)).toMatchObject({ kind: "ignored" });
    const other = await fleet.begin("helper", "h", { b: 1, a: { x: [1], y: new Date(1) } });
    expect(await told(fleet, other)).toMatchObject({ kind: "refused", code: "HF-3012" });
    first.kill();
    await fleet.start("n2");
    expect(await told(fleet, await fleet.begin("helper", "h", {}))).toMatchObject({ code: "HF-3012" });
    expect(fleet.record(key)?.rev).toBe(1);
  });

  test("for whom it was started stands in the record, in the header, and in those of its children; a person acts for itself", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const boss = fleet.key("boss", "b");
    await fleet.outside(boss, { kind: "start", onBehalf: { user: "eve", tenant: "acme" } });
    await fleet.until("the boss exists", () => fleet.record(boss) !== undefined);
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: {} });
    const helper = await fleet.child(boss, "h");
    await fleet.until("the helper exists", () => fleet.record(helper) !== undefined);
    for (const key of [boss, helper]) {
      expect(fleet.record(key)?.principal).toMatchObject({ kind: "person", id: "ada", tenant: "acme" });
      expect(fleet.header(key)?.list).toMatchObject({ user: "ada", tenant: "acme" });
    }
  });
});
