import { describe, expect, test } from "vitest";
import { MemoryFleet } from "./memory-fleet.ts";

describe("an owner that was stopped, lost its partitions, and goes on", () => {
  test("F5, x05: its late create is found by the successor, which carries out what it decided", async () => {
    const fleet = new MemoryFleet({ settings: { sweepMs: 600_000 } });
    const first = await fleet.alone("n1");
    const boss = await fleet.born("boss", "b");
    const create = first.stopAt("before-create", ".helper.");
    await fleet.send(boss, { type: "DELEGATE", id: "h", input: { works: true } });
    await fleet.happened("the create is about to leave", create.reached);
    const helper = await fleet.child(boss, "h");
    const second = await fleet.start("n2");
    const rival = second.holdAt("before-create", helper);
    await fleet.happened("the successor has seen no record and is about to create one", rival.reached);
    first.resume();
    await fleet.until("the former owner's create is stored", () => fleet.record(helper) !== undefined);
    first.kill();
    rival.release();
    await fleet.until("the successor runs the job", () => fleet.desk.of("labour").length > 0);
    expect(fleet.desk.of("labour").map(({ context }) => context.node)).toEqual(["n2"]);
    fleet.desk.of("labour")[0]?.finish("done");
    await fleet.until("the parent has the result", () => fleet.record(boss)?.snapshot.children["h"]?.status === "done");
    expect(fleet.header(helper)?.epoch).toBe(2);
  });

  test("F5: a record with work that appears after the takeover is found by the sweep", async () => {
    const fleet = new MemoryFleet({ settings: { sweepMs: 1000, idleCleanMs: 100, cursorFlushMs: 100 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.until("a job runs", () => fleet.desk.of("free").length === 1);
    const working = fleet.broker.writesOf(key).at(-1);
    await fleet.send(key, { type: "GIVE_UP" });
    await fleet.until("it sleeps", () => fleet.header(key)?.needsWork === false);
    await fleet.clock.advance(200);
    first.kill();
    const second = await fleet.alone("n2");
    expect([...second.node.partitions.values()].some(({ cells }) => cells.has(key))).toBe(false);
    const { records } = fleet.outsider;
    const bytes = working?.bytes ?? new Uint8Array();
    const expectedSeq = fleet.broker.writesOf(key).at(-1)?.seq ?? 0;
    await records.commit({ key, bytes, expectedSeq, token: fleet.codec.decodeHeader(bytes).token, needsWork: true });
    await fleet.until("the sweep found its job", () => fleet.desk.of("free", "n2").length === 1);
  });

  test("F19, x20: what it still commits is conflicted with and carried out by the successor; its own job does not start", async () => {
    const fleet = new MemoryFleet({ settings: { idleCleanMs: 100 } });
    const before = await fleet.alone("n0");
    const key = await fleet.born("errand", "e");
    await fleet.until("it sleeps", () => fleet.header(key)?.needsWork === false);
    before.kill();
    const first = await fleet.alone("n1");
    first.stop(); // it never had the actor in memory
    await fleet.send(key, { type: "RUN", src: "free" });
    const second = await fleet.start("n2");
    const rival = second.holdAt("before-commit", key);
    await fleet.happened("the successor has decided too", rival.reached);
    first.resume();
    await fleet.until(
      "the former owner's commit is stored",
      () => fleet.header(key)?.writer === first.node.incarnation,
    );
    await fleet.clock.advance(1000);
    rival.release();
    await fleet.until("the job runs", () => fleet.desk.of("free", "n2").length === 1);
    await fleet.clock.advance(5000);
    expect(fleet.desk.of("free").map(({ context }) => context.node)).toEqual(["n2"]);
    fleet.desk.of("free")[0]?.finish(7);
    await fleet.until("the outcome is applied", () => fleet.record(key)?.rev === 3);
    expect(fleet.context(key)).toEqual({ results: [7], errors: [] });
  });

  test("F5: stopped right before a job, it does not start it after a takeover", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    const job = first.stopAt("before-job");
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.happened("the job is about to start", job.reached);
    const second = await fleet.start("n2");
    await fleet.serving(second);
    await fleet.until("the successor runs it", () => fleet.desk.of("free", "n2").length === 1);
    first.resume();
    await fleet.clock.advance(5000);
    expect(fleet.desk.of("free").map(({ context }) => context.node)).toEqual(["n2"]);
  });

  test("F5: stopped right before a commit, its message is applied once, by the successor", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const key = await fleet.born("tally", "a");
    const commit = first.stopAt("before-commit", key);
    const id = await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.happened("the commit is about to leave", commit.reached);
    await fleet.start("n2");
    await fleet.until("the successor applied it", () => fleet.outcomes(id).length === 1);
    first.resume();
    await fleet.clock.advance(5000);
    expect(fleet.context(key)).toEqual({ seen: [1] });
    expect(fleet.header(key)?.epoch).toBe(2);
    expect(fleet.outcomes(id).map(({ kind }) => kind)).toEqual(["applied"]);
  });

  test("I6: it never tells a sender what is not so, and sets nothing aside, when it finds a record with a greater epoch", async () => {
    const fleet = new MemoryFleet({ settings: { sweepMs: 200, passivateMs: 100, idleCleanMs: 50 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("resting", "a");
    const inMemory = (): boolean => [...first.node.partitions.values()].some(({ cells }) => cells.has(key));
    await fleet.until("it has left memory", () => !inMemory());
    first.stop();
    // Much to read in the fleet's bucket before the new leases come.
    for (let n = 0; n < 40; n += 1) await fleet.outsider.fleet.put(`noise.${n}`, new Uint8Array(1));
    await fleet.alone("n2");
    const message = await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("the successor wrote the record", () => fleet.outcomes(message).length === 1);
    first.resume(); // and reads its mailbox before them
    await fleet.until("it has noticed", () => fleet.events("partition.fenced", "n1").length === 4);
    await fleet.clock.advance(1000);
    expect(fleet.outcomes(message).map(({ kind }) => kind)).toEqual(["applied"]);
    expect(fleet.broker.messagesOf("parked", key)).toEqual([]);
    expect(first.node.partitions.size).toBe(0);
  });

  test("I6: it never writes over a record with a greater epoch", async () => {
    const fleet = new MemoryFleet({ settings: { sweepMs: 200, passivateMs: 100, idleCleanMs: 50 } });
    const first = await fleet.alone("n1");
    const key = await fleet.born("resting", "a");
    const inMemory = (): boolean => [...first.node.partitions.values()].some(({ cells }) => cells.has(key));
    await fleet.until("it has left memory", () => !inMemory());
    first.stop();
    for (let n = 0; n < 40; n += 1) await fleet.outsider.fleet.put(`noise.${n}`, new Uint8Array(1));
    const second = await fleet.alone("n2");
    const one = await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("the successor wrote the record", () => fleet.outcomes(one).length === 1);
    const busy = second.holdAt("before-commit", key);
    await fleet.send(key, { type: "ADD", n: 2 });
    await fleet.happened("it is about to write again", busy.reached);
    first.resume();
    await fleet.until("the former owner has noticed", () => fleet.events("partition.fenced", "n1").length === 4);
    expect(fleet.header(key)).toMatchObject({ writer: second.node.incarnation, epoch: 2 });
    expect(fleet.context(key)).toEqual({ seen: [1] });
    busy.release();
    await fleet.until("all are applied", () => fleet.record(key)?.rev === 3);
    expect(fleet.context(key)).toEqual({ seen: [1, 2] });
  });

  test("a greater epoch aborts its running jobs", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.until("the job runs", () => fleet.desk.of("free", "n1").length === 1);
    first.stop();
    const second = await fleet.start("n2");
    await fleet.until("the successor runs it again", () => fleet.desk.of("free", "n2").length === 1);
    expect(fleet.desk.of("free", "n1")[0]?.context.signal.aborted).toBe(false);
    first.resume();
    await fleet.until(
      "the first attempt is aborted",
      () => fleet.desk.of("free", "n1")[0]?.context.signal.aborted === true,
    );
    fleet.desk.of("free", "n1")[0]?.finish("stale");
    fleet.desk.of("free", "n2")[0]?.finish("fresh");
    await fleet.until("an outcome is applied", () => fleet.record(key)?.snapshot.value === "waiting");
    expect(fleet.context(key)).toEqual({ results: ["fresh"], errors: [] });
    expect(second.node.jobs.size).toBe(0);
  });
});
