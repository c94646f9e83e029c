import type { AfterCrash } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { defineActor, type ActorDefinition } from "../actor-definition.ts";
import { choreMachine } from "./chore.machine.ts";
import { deadlineMachine } from "./deadline.machine.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";
import { OperatorDesk } from "./operator-desk.ts";

const actors = (fleet: MemoryFleet, afterCrash: AfterCrash): readonly ActorDefinition[] => [
  defineActor({
    type: "chore",
    machine: choreMachine,
    afterCrash,
    jobs: { labour: fleet.desk.job("labour", { crashPolicy: "idempotent" }) },
  }),
  defineActor({ type: "deadline", machine: deadlineMachine, afterCrash }),
];

/** A chore whose job runs on the only node, and the next node, which is not started yet. */
async function working(afterCrash: AfterCrash, settings: { readonly keepHeldMs?: number } = {}) {
  const fleet = new MemoryFleet({ settings: { sweepMs: 1000, ...settings } });
  const operator = await OperatorDesk.open(fleet);
  const definitions = actors(fleet, afterCrash);
  const first = await fleet.alone("n1", { definitions });
  const key = await fleet.born("chore", "c");
  await fleet.until("the job runs", () => fleet.desk.of("labour").length === 1);
  const next = (name = "n2"): Promise<MemoryProcess> => fleet.alone(name, { definitions });
  const stateOf = () => fleet.record(key)?.snapshot.value;
  return { fleet, operator, definitions, first, key, next, stateOf };
}

describe("after a node has died", () => {
  test("resume: its work is taken up", async () => {
    const { fleet, operator, first, key, next, stateOf } = await working("resume");
    first.kill();
    await next();
    await fleet.until("it runs again", () => fleet.desk.of("labour", "n2").length === 1);
    fleet.desk.of("labour", "n2")[0]?.finish(1);
    await fleet.until("it is done", () => stateOf() === "done");
    expect(operator.actor(key)).toBeUndefined();
  });

  test("hold: nothing of it runs, neither job nor deadline nor message, over further deaths; it is listed with why; resumed it runs once", async () => {
    const { fleet, operator, first, key, next, stateOf } = await working("hold");
    const timed = await fleet.born("deadline", "d", { waitMs: 3000 });
    first.kill();
    const second = await next();
    await fleet.clock.advance(10_000);
    for (const each of [key, timed])
      expect(operator.actor(each)).toMatchObject({
        code: "HF-3106",
        reason: `its node ${first.node.incarnation} ended without having left`,
      });
    const late = await fleet.send(timed, { type: "NOISE" });
    second.kill();
    await next("n3");
    await fleet.clock.advance(10_000);
    expect([fleet.desk.of("labour").length, stateOf(), fleet.record(timed)?.rev]).toEqual([1, "working", 1]);
    expect(fleet.outcomes(late)).toEqual([]);

    expect(await operator.command("resume", key)).toMatchObject({ kind: "done" });
    await fleet.until("it runs again", () => fleet.desk.of("labour", "n3").length === 1);
    fleet.desk.of("labour", "n3")[0]?.finish(1);
    await fleet.until("it is done", () => stateOf() === "done");
    expect(fleet.desk.of("labour")).toHaveLength(2);
    await operator.command("resume", timed);
    await fleet.until("its deadline has passed", () => fleet.record(timed)?.snapshot.value === "expired");
    expect(operator.entries.size).toBe(0);
  });

  test("hold: of a node that has left nothing is held", async () => {
    const { fleet, operator, definitions, first, key } = await working("hold");
    const second = await fleet.start("n2", { definitions });
    const left = first.node.drain();
    await fleet.serving(second);
    fleet.desk.of("labour")[0]?.finish(1);
    await fleet.happened("it has left", left);
    await fleet.until("it is done", () => fleet.record(key)?.snapshot.value === "done");
    expect(operator.entries.size).toBe(0);
  });

  test("hold: an owner that dies before it has set them aside leaves that to the next one", async () => {
    const { fleet, operator, definitions, first, key } = await working("hold");
    first.kill();
    const second = fleet.make("n2", { definitions });
    const claimed = second.stopAt("after-lease-claim", key.split(".")[0]);
    void second.node.start();
    await fleet.happened("it has claimed the partition", claimed.reached);
    second.kill();
    expect(operator.actor(key)).toBeUndefined();
    await fleet.alone("n3", { definitions });
    await fleet.until("it is held", () => operator.actor(key) !== undefined);
    expect(operator.actor(key)?.reason).toContain(first.node.incarnation);
    expect(fleet.desk.of("labour")).toHaveLength(1);
  });
});

describe("what does not come back after a death, held or not", () => {
  test.each(["resume", "hold"] as const)("%s: what ended before", async (afterCrash) => {
    const { fleet, operator, first, key, next, stateOf } = await working(afterCrash);
    fleet.desk.of("labour")[0]?.finish(1);
    await fleet.until(
      "it has left everything behind",
      () => stateOf() === "done" && fleet.header(key)?.needsWork === false,
    );
    first.kill();
    await next();
    await fleet.clock.advance(5000);
    expect([fleet.desk.of("labour").length, operator.actor(key)]).toEqual([1, undefined]);
  });

  test.each(["resume", "hold"] as const)("%s: what was called off while nobody owned it", async (afterCrash) => {
    const { fleet, operator, first, key, next, stateOf } = await working(afterCrash);
    first.kill();
    await fleet.send(key, { type: "CALL_OFF" });
    await next();
    if (afterCrash === "hold") await operator.command("resume", key);
    await fleet.until("it is called off", () => stateOf() === "calledOff");
    await fleet.clock.advance(5000);
    expect(fleet.desk.of("labour")).toHaveLength(1);
  });

  test.each(["resume", "hold"] as const)("%s: what is past its deadline", async (afterCrash) => {
    const { fleet, operator, first, key, next, stateOf } = await working(afterCrash);
    first.kill();
    await fleet.clock.advance(61_000);
    await next();
    if (afterCrash === "hold") await operator.command("resume", key);
    await fleet.until("it has expired", () => stateOf() === "expired");
    await fleet.clock.advance(5000);
    expect(fleet.desk.of("labour")).toHaveLength(1);
  });

  test("hold: what has a damaged record: it stays held, and is quarantined when it is resumed", async () => {
    const { fleet, operator, first, key, next } = await working("hold");
    await fleet.clock.advance(1000);
    first.kill();
    await next();
    await fleet.until("it is held", () => operator.actor(key) !== undefined);
    const stored = await fleet.outsider.records.load(key);
    const bytes = new Uint8Array(stored?.bytes ?? []);
    bytes[bytes.length - 1] = (bytes[bytes.length - 1] ?? 0) ^ 0xff;
    await fleet.outsider.records.commit({
      key,
      bytes,
      expectedSeq: stored?.seq ?? 0,
      token: "damage",
      needsWork: true,
      waits: false,
    });
    expect(await operator.command("cancel", key)).toMatchObject({ kind: "refused", code: "HF-2002" });
    expect(operator.actor(key)?.code).toBe("HF-3106");
    expect(await operator.command("resume", key)).toMatchObject({ kind: "refused", code: "HF-2002" });
    expect(fleet.desk.of("labour")).toHaveLength(1);
  });
});

describe("who is held", () => {
  test("cancelled: its job ends with HF-5203 and does not run again", async () => {
    const { fleet, operator, first, key, next, stateOf } = await working("hold");
    first.kill();
    await next();
    await fleet.until("it is held", () => operator.actor(key) !== undefined);
    expect(await operator.command("cancel", key)).toMatchObject({ kind: "done" });
    await fleet.until("it was told", () => stateOf() === "failed");
    expect(fleet.context(key)).toEqual({ result: undefined, failure: "HF-5203" });
    expect([fleet.desk.of("labour").length, operator.actor(key)]).toEqual([1, undefined]);
    expect(operator.audited().map(({ verb }) => verb)).toEqual(["cancel"]);
  });

  test("cancelled by an owner that dies in the middle of it: its job does not run again", async () => {
    const { fleet, operator, first, key, next, stateOf } = await working("hold");
    first.kill();
    const second = await next();
    await fleet.until("it is held", () => operator.actor(key) !== undefined);
    const told = second.stopAt("before-commit", key);
    await operator.leave("cancel", key);
    await fleet.happened("it is about to be told", told.reached);
    expect(operator.actor(key)).toBeUndefined();
    second.kill();
    await next("n3");
    await fleet.until("it was told", () => stateOf() === "failed" || operator.actor(key) !== undefined);
    await fleet.clock.advance(5000);
    expect(fleet.desk.of("labour")).toHaveLength(1);
  });

  test("without a pending job cannot be cancelled, who is not held neither resumed nor cancelled: HF-3105", async () => {
    const { fleet, operator, first, key, next } = await working("hold");
    expect(await operator.command("resume", key)).toMatchObject({ kind: "refused", code: "HF-3105" });
    expect(await operator.command("cancel", key)).toMatchObject({ kind: "refused", code: "HF-3105" });
    const timed = await fleet.born("deadline", "d");
    first.kill();
    await next();
    await fleet.until("it is held", () => operator.actor(timed) !== undefined);
    expect(await operator.command("cancel", timed)).toMatchObject({ kind: "refused", code: "HF-3105" });
    expect(operator.actor(timed)).toBeDefined();
  });

  test("for too long: its jobs end as cancelled, as if an operator had said so", async () => {
    const { fleet, operator, first, key, next, stateOf } = await working("hold", { keepHeldMs: 30_000 });
    first.kill();
    await next();
    await fleet.until("it is held", () => operator.actor(key) !== undefined);
    await fleet.clock.advance(20_000);
    expect(stateOf()).toBe("working");
    await fleet.until("its time is over", () => stateOf() === "failed");
    expect(fleet.events("held.expired")).toHaveLength(1);
    expect(fleet.desk.of("labour")).toHaveLength(1);
  });
});
