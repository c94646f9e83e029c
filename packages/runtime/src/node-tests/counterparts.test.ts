import type { ActorRecord } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { defineActor } from "../actor-definition.ts";
import { buildEffect } from "../testing/index.ts";
import { bossMachine } from "./boss.machine.ts";
import { MemoryFleet, type StartOptions } from "./memory-fleet.ts";
import { OperatorDesk } from "./operator-desk.ts";
import { rewrite, StuckBoard } from "./stuck-board.ts";
import { testActors } from "./test-actors.ts";

const SWEEP_MS = 30_000;

/** One node, and a boss with a helper that listens. */
async function withHelper(options: StartOptions = {}) {
  const fleet = new MemoryFleet({ settings: { idleCleanMs: 100 } });
  const process = await fleet.alone("n1", options);
  const board = await StuckBoard.open(fleet);
  const boss = await fleet.born("boss", "b");
  await fleet.send(boss, { type: "DELEGATE", id: "h", input: {} });
  const helper = await fleet.child(boss, "h");
  await fleet.until("the helper is there", () => fleet.record(helper)?.outbox.length === 0);
  return { fleet, process, board, boss, helper };
}

const oneMoreSweep = (fleet: MemoryFleet): Promise<void> => fleet.clock.advance(SWEEP_MS + 2000);

describe("I9: what waits without a counterpart is listed within one sweep", () => {
  test("child-missing: a child without a record, of which no start is on the way; until the record is back", async () => {
    const { fleet, board, boss, helper } = await withHelper();
    fleet.broker.loseRecord(helper);
    const row = await board.listed("n1", boss, "child-missing");
    expect(row.why).toContain(helper);
    expect(row.fix).toContain(boss);
    expect(row.sinceMs).toBeLessThanOrEqual(fleet.clock.wallMs());
    await rewrite(fleet, helper, (record) => record);
    await board.gone("n1", boss, "child-missing");
  });

  test("child-missing: another actor under the key of the child", async () => {
    const { fleet, board, boss, helper } = await withHelper();
    await rewrite(fleet, helper, ({ parent, ...record }) => ({
      ...record,
      ...(parent !== undefined && { parent: { ...parent, genesis: "g1:999" } }),
    }));
    expect((await board.listed("n1", boss, "child-missing")).why).toContain("another actor");
  });

  test("child-ended: a child that ended without telling anybody, and has nothing left to tell", async () => {
    const { fleet, process, board, boss, helper } = await withHelper();
    await fleet.send(helper, { type: "FINISH" });
    await fleet.until("the parent knows", () => fleet.record(boss)?.snapshot.children["h"]?.status === "done");
    await fleet.until("all is at rest", () => fleet.record(boss)?.outbox.length === 0);
    process.kill();
    await rewrite(fleet, boss, withActiveChild, { needsWork: true });
    await rewrite(fleet, helper, withoutSettled);
    await fleet.alone("n2");
    expect((await board.listed("n2", boss, "child-ended")).why).toContain("done");
  });

  test("F28: child-set-aside: its child was quarantined", async () => {
    const { fleet, board, boss, helper } = await withHelper();
    await rewrite(fleet, helper, (record) => record, { damaged: true });
    await fleet.send(helper, { type: "GO" });
    const operator = await OperatorDesk.open(fleet);
    await fleet.until("the child is quarantined", () => operator.actor(helper)?.code === "HF-2002");
    const row = await board.listed("n1", boss, "child-set-aside");
    expect(row.why).toContain("HF-2002");
    expect(row.fix).toContain(helper);
  });

  test("F28: child-set-aside: no node can take the start of its child", async () => {
    const { fleet, board, boss } = await withHelper();
    await fleet.send(boss, { type: "DELEGATE", id: "s", src: "stranger", input: {} });
    const stranger = await fleet.child(boss, "s");
    expect((await board.listed("n1", boss, "child-set-aside")).why).toContain(stranger);
  });

  test("parent-gone: a child whose parent has no record any more", async () => {
    const { fleet, board, boss, helper } = await withHelper();
    fleet.broker.loseRecord(boss);
    expect((await board.listed("n1", helper, "parent-gone")).why).toContain(boss);
  });

  test("parent-gone: a child that its parent does not know", async () => {
    const { fleet, board, boss, helper } = await withHelper();
    await rewrite(fleet, boss, (record) => ({ ...record, snapshot: { ...record.snapshot, children: {} } }));
    expect((await board.listed("n1", helper, "parent-gone")).why).toContain(boss);
  });

  test("unsent: effects that a stream does not take", async () => {
    const { fleet, board, boss } = await withHelper();
    fleet.broker.faults.nextPublish({ kind: "refuse", times: 100_000 }, { about: ".helper." });
    await fleet.send(boss, { type: "DELEGATE", id: "h2", input: {} });
    const next = await fleet.child(boss, "h2");
    expect((await board.listed("n1", boss, "unsent")).why).toContain(next);
  });

  test("unsent: effects in a record that nobody dispatches", async () => {
    const { fleet, board, boss } = await withHelper();
    await rewrite(fleet, boss, (record) => ({ ...record, outbox: [buildEffect("send", { id: "1#7" })] }), {
      needsWork: true,
    });
    expect((await board.listed("n1", boss, "unsent")).why).toContain("1#7");
  });

  test("overdue: a deadline that is not acted on, until it is", async () => {
    const { fleet, process, board } = await withHelper();
    const key = await fleet.born("deadline", "d", { waitMs: 5000 });
    process.log.lag();
    await fleet.clock.advance(6000);
    expect((await board.listed("n1", key, "overdue")).why).toContain("was due at");
    await process.log.goOn();
    await fleet.until("it has expired", () => fleet.record(key)?.snapshot.value === "expired");
    await board.gone("n1", key, "overdue");
    expect(fleet.record(key)?.rev).toBe(2);
  });

  test("unrun: a job that no process runs, however often it is asked for", async () => {
    const { fleet, process, board } = await withHelper();
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.until("it runs", () => fleet.desk.of("free").length === 1);
    const jobKey = await fleet.child(key, "free");
    const stopping = setInterval(() => process.node.jobs.stop(jobKey, "planted"), 0);
    try {
      expect((await board.listed("n1", key, "unrun")).why).toContain("free");
    } finally {
      clearInterval(stopping);
    }
  });

  test("unwoken: an actor that waits for a message and nothing else, in a state that nobody tagged; also after a takeover", async () => {
    const { fleet, process, board } = await withHelper();
    const key = await fleet.born("resting", "r");
    await fleet.until("it is at rest", () => fleet.header(key)?.needsWork === false);
    expect((await board.listed("n1", key, "unwoken")).fix).toContain("idle");
    await fleet.send(key, { type: "ADD", n: 1 });
    await board.gone("n1", key, "unwoken");
    await fleet.clock.advance(SWEEP_MS);
    process.kill();
    await fleet.alone("n2");
    await board.listed("n2", key, "unwoken");
  });
});

describe("I9: what a node can repair by itself is repaired, and not listed", () => {
  test("a child that has ended tells its parent again", async () => {
    const { fleet, process, board, boss, helper } = await withHelper();
    await fleet.send(helper, { type: "FINISH" });
    await fleet.until("the parent knows", () => fleet.record(boss)?.snapshot.children["h"]?.status === "done");
    await fleet.until("all is at rest", () => fleet.record(boss)?.outbox.length === 0);
    process.kill();
    await rewrite(fleet, boss, withActiveChild, { needsWork: true });
    await fleet.alone("n2");
    await fleet.until("it knows again", () => fleet.record(boss)?.snapshot.children["h"]?.status === "done");
    expect(fleet.events("counterpart.repaired")).toMatchObject([{ fields: { key: boss, by: "resettle" } }]);
    await oneMoreSweep(fleet);
    expect(board.row("n2", boss, "child-ended")).toBeUndefined();
  });

  test("a timer that nobody holds is armed again, and fires at its time", async () => {
    const { fleet, process, board } = await withHelper();
    const key = await fleet.born("deadline", "d", { waitMs: 60_000 });
    for (const owner of process.node.partitions.values()) owner.timers.forget(key);
    await fleet.until("it has expired", () => fleet.record(key)?.snapshot.value === "expired", 62_000);
    expect(fleet.events("counterpart.repaired")).toMatchObject([{ fields: { key, by: "arm" } }]);
    expect(board.rows("n1").filter((row) => row.key === key)).toEqual([]);
  });

  test("a job that nobody runs is run", async () => {
    const { fleet, process, board } = await withHelper();
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.until("it runs", () => fleet.desk.of("free").length === 1);
    process.node.jobs.stop(await fleet.child(key, "free"), "planted");
    await fleet.until("it runs again", () => fleet.desk.of("free").length === 2, SWEEP_MS);
    fleet.desk.of("free")[1]?.finish("done");
    await fleet.until("it is done", () => fleet.record(key)?.snapshot.value === "waiting");
    expect(board.row("n1", key, "unrun")).toBeUndefined();
  });
});

describe("I9: what goes its way is never listed", () => {
  test("children, jobs, timers, and states in which an actor may rest", async () => {
    const { fleet, board, boss, helper } = await withHelper();
    await fleet.send(helper, { type: "GO" });
    await fleet.born("tally", "t");
    await fleet.born("deadline", "d", { waitMs: 3_600_000 });
    await fleet.until("the helper works", () => fleet.desk.of("labour").length === 1);
    for (let sweep = 0; sweep < 3; sweep += 1) await oneMoreSweep(fleet);
    expect(board.rows("n1")).toEqual([]);
    expect(fleet.events("counterpart.repaired")).toEqual([]);
    expect(fleet.record(boss)?.snapshot.children["h"]?.status).toBe("active");
  });

  test("a start that is on its way, however long it takes", async () => {
    const { fleet, process, board, boss } = await withHelper();
    const create = process.holdAt("before-create", ".helper.");
    await fleet.send(boss, { type: "DELEGATE", id: "slow", input: {} });
    await fleet.happened("the start is being carried out", create.reached);
    await oneMoreSweep(fleet);
    await oneMoreSweep(fleet);
    expect(board.row("n1", boss, "child-missing")).toBeUndefined();
    create.release();
  });

  test("effects that have left, and that the record still has", async () => {
    const fleet = new MemoryFleet({ settings: { idleCleanMs: 600_000 } });
    await fleet.alone();
    const board = await StuckBoard.open(fleet);
    const key = await fleet.born("tally", "t");
    for (let sweep = 0; sweep < 2; sweep += 1) await oneMoreSweep(fleet);
    expect(fleet.record(key)?.outbox).not.toEqual([]);
    expect(board.rows("n1")).toEqual([]);
  });

  test("who waits for a message that lies in its inbox", async () => {
    const { fleet, process, board } = await withHelper();
    const key = await fleet.born("resting", "r");
    await fleet.until("it is at rest", () => fleet.header(key)?.needsWork === false);
    process.log.lag();
    await fleet.send(key, { type: "ADD", n: 1 });
    for (let sweep = 0; sweep < 2; sweep += 1) await oneMoreSweep(fleet);
    expect(board.row("n1", key, "unwoken")).toBeUndefined();
    await process.log.goOn();
  });

  test("a job that another node keeps", async () => {
    const { fleet, process, board } = await withHelper({ settings: { drainGraceMs: 600_000 } });
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.until("it runs", () => fleet.desk.of("free").length === 1);
    const second = await fleet.start("n2");
    void process.node.drain();
    await fleet.serving(second);
    for (let sweep = 0; sweep < 2; sweep += 1) await oneMoreSweep(fleet);
    expect(board.row("n2", key, "unrun")).toBeUndefined();
    expect(fleet.desk.of("free")).toHaveLength(1);
  });

  test("a child that lives on after its parent has ended, where that is what its parent wants", async () => {
    const fleet = new MemoryFleet({ settings: { idleCleanMs: 100 } });
    const definitions = [
      ...testActors(fleet.desk).filter(({ type }) => type !== "boss"),
      defineActor({
        type: "boss",
        machine: bossMachine,
        childActors: { helper: { type: "helper", closePolicy: "detach" }, stranger: { type: "stranger" } },
      }),
    ];
    await fleet.alone("n1", { definitions });
    const board = await StuckBoard.open(fleet);
    const boss = await fleet.born("boss", "b");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: { works: true } });
    await fleet.until("the helper works", () => fleet.desk.of("labour").length === 1);
    await rewrite(fleet, boss, (record) => ({ ...record, snapshot: { ...record.snapshot, children: {} } }));
    for (let sweep = 0; sweep < 2; sweep += 1) await oneMoreSweep(fleet);
    expect(board.row("n1", await helperOf(fleet), "parent-gone")).toBeUndefined();
  });
});

test("one look reads no more than it may, and the next ones come by everybody", async () => {
  const fleet = new MemoryFleet({ settings: { idleCleanMs: 100, counterpartReads: 4 } });
  const process = await fleet.alone("n1");
  const board = await StuckBoard.open(fleet);
  const keys: string[] = [];
  for (let n = 0; n < 20; n += 1) keys.push(await fleet.born("resting", `r${n}`));
  const { records } = process.ports;
  const load = records.load.bind(records);
  const loads: number[] = [];
  records.load = (key) => {
    loads.push(fleet.clock.monotonicMs());
    return load(key);
  };
  await fleet.until(
    "all are listed",
    () => keys.every((key) => board.row("n1", key, "unwoken") !== undefined),
    600_000,
  );
  const perLook = [...Map.groupBy(loads, (atMs) => Math.floor(atMs / (SWEEP_MS / 2))).values()];
  expect(Math.max(...perLook.map(({ length }) => length))).toBe(4);
});

function withoutSettled(record: ActorRecord): ActorRecord {
  const changed = { ...record };
  delete changed.settled;
  return changed;
}

function withActiveChild<R extends { readonly snapshot: { readonly children: Readonly<Record<string, object>> } }>(
  record: R,
): R {
  const { h = {}, ...others } = record.snapshot.children;
  return { ...record, snapshot: { ...record.snapshot, children: { ...others, h: { ...h, status: "active" } } } };
}

async function helperOf(fleet: MemoryFleet): Promise<string> {
  return fleet.desk.of("labour")[0]?.context.actorKey ?? "";
}
