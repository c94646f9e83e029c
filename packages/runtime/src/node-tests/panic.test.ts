import { PANIC_KEY } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";
import { OperatorDesk } from "./operator-desk.ts";

/** @returns the revision of the flag */
async function write(fleet: MemoryFleet, state: "raised" | "cleared"): Promise<number> {
  const flag = { v: 1, state, by: "person-ada", reason: "it spends too much", token: state };
  const written = await fleet.outsider.fleet.put(PANIC_KEY, new TextEncoder().encode(JSON.stringify(flag)));
  return written?.seq ?? 0;
}
const told = ({ name }: MemoryProcess, by: MemoryProcess): number | undefined =>
  by.node.view.nodes.get(name)?.heartbeat.stopRevision;

/** An errand whose job runs on the only node. */
async function running(fleet: MemoryFleet) {
  const first = await fleet.alone("n1");
  const key = await fleet.born("errand", "e");
  await fleet.send(key, { type: "RUN", src: "free" });
  await fleet.until("the job runs", () => fleet.desk.of("free").length === 1);
  return { key, first };
}

describe("panic", () => {
  test("aborts every job, gives every partition back, and keeps what is sent meanwhile; no node that comes takes anything up", async () => {
    const fleet = new MemoryFleet();
    const { key, first } = await running(fleet);
    const revision = await write(fleet, "raised");
    await fleet.until("the node says that it has stopped", () => told(first, first) === revision);
    expect(fleet.desk.of("free")[0]?.context.signal.aborted).toBe(true);
    await fleet.until("nobody owns anything", () => fleet.lease("d-0")?.state === "released");
    const tally = fleet.key("tally", "a");
    await fleet.begin("tally", "a");
    const kept = await fleet.send(tally, { type: "ADD", n: 1 });
    first.kill();
    const second = await fleet.start("n2");
    await fleet.clock.advance(20_000);
    expect([second.node.partitions.size, told(second, second)]).toEqual([0, revision]);
    expect([fleet.record(tally), fleet.outcomes(kept), fleet.desk.of("free").length]).toEqual([undefined, [], 1]);

    await write(fleet, "cleared");
    await fleet.until("what was sent is applied", () => fleet.outcomes(kept).length > 0);
    expect(fleet.context(tally)).toEqual({ seen: [1] });
    expect(fleet.record(key)?.snapshot.value).toBe("free");
  });

  test("F34: clearing it resumes no job: its actor is held until an operator lets it go on, also over a takeover, and then it runs once", async () => {
    const fleet = new MemoryFleet();
    const operator = await OperatorDesk.open(fleet);
    const { key, first } = await running(fleet);
    await write(fleet, "raised");
    await fleet.until("nobody owns anything", () => first.node.partitions.size === 0);
    await write(fleet, "cleared");
    await fleet.until("the actor is held", () => operator.actor(key) !== undefined);
    expect(operator.actor(key)).toMatchObject({
      code: "HF-3106",
      reason: "cut off when person-ada stopped the fleet: it spends too much",
    });
    const late = await fleet.send(key, { type: "GIVE_UP" });
    await fleet.clock.advance(5000);
    first.kill();
    await fleet.alone("n2");
    await fleet.clock.advance(5000);
    expect([fleet.desk.of("free").length, fleet.outcomes(late)]).toEqual([1, []]);

    const other = await fleet.born("errand", "other");
    await fleet.send(other, { type: "RUN", src: "free" });
    await fleet.until("what begins now runs", () => fleet.desk.of("free").length === 2);
    expect(await operator.command("retry", key)).toMatchObject({ kind: "done" });
    await fleet.until("what it was sent comes first", () => fleet.record(key)?.snapshot.value === "waiting");
    await fleet.clock.advance(5000);
    expect(fleet.desk.of("free").map(({ context }) => context.actorKey)).toEqual([key, other]);
  });

  test("who is held runs its job again once when it is let go on; a takeover later holds nobody any more", async () => {
    const fleet = new MemoryFleet();
    const operator = await OperatorDesk.open(fleet);
    const { key, first } = await running(fleet);
    await write(fleet, "raised");
    await fleet.until("nobody owns anything", () => first.node.partitions.size === 0);
    await write(fleet, "cleared");
    await fleet.until("the actor is held", () => operator.actor(key) !== undefined);
    await operator.command("retry", key);
    await fleet.until("it runs again", () => fleet.desk.of("free").length === 2);
    await fleet.until("every partition knows", () =>
      [0, 1, 2, 3].every((n) => fleet.lease(`d-${n}`)?.stop?.isSettled === true),
    );
    first.kill();
    await fleet.alone("n2");
    await fleet.until("it is taken over as ever", () => fleet.desk.of("free", "n2").length === 1);
    fleet.desk.of("free", "n2")[0]?.finish(7);
    await fleet.until("it is over", () => fleet.record(key)?.snapshot.value === "waiting");
    expect(fleet.context(key)).toEqual({ results: [7], errors: [] });
  });

  test("what had ended before it is owed: its outcome is applied after clearing, and nobody is held", async () => {
    const fleet = new MemoryFleet();
    const operator = await OperatorDesk.open(fleet);
    const { key, first } = await running(fleet);
    first.log.lag();
    fleet.desk.of("free")[0]?.finish("done before");
    await fleet.until("its outcome is stored", () => fleet.broker.messagesOf("inbox", key).length === 3);
    await write(fleet, "raised");
    await fleet.until("nobody owns anything", () => first.node.partitions.size === 0);
    await first.log.goOn();
    await write(fleet, "cleared");
    await fleet.until("the outcome is applied", () => fleet.record(key)?.snapshot.value === "waiting");
    expect(fleet.context(key)).toEqual({ results: ["done before"], errors: [] });
    expect([fleet.desk.of("free").length, operator.actor(key)]).toEqual([1, undefined]);
  });

  test("F34: raised between the claim of a partition and its work, unseen by the watch: nothing of it is loaded", async () => {
    const fleet = new MemoryFleet();
    const { key, first } = await running(fleet);
    first.kill();
    const second = fleet.make("n2");
    const partition = key.split(".")[0] ?? "";
    const claimed = second.holdAt("after-lease-claim", partition);
    void second.node.start();
    await fleet.happened("it has claimed the partition", claimed.reached);
    second.registry.lag();
    await write(fleet, "raised");
    claimed.release();
    await fleet.until("it has asked", () => fleet.events("fleet.stopped", "n2").length > 0);
    second.registry.goOn();
    await fleet.clock.advance(10_000);
    expect([second.node.partitions.size, fleet.desk.of("free").length]).toEqual([0, 1]);
    expect(fleet.lease(partition)).toMatchObject({ state: "released" });
  });

  test("raised and cleared while a process stands still: when it wakes it stops what it ran, and resumes nothing", async () => {
    const fleet = new MemoryFleet();
    const operator = await OperatorDesk.open(fleet);
    const { key, first } = await running(fleet);
    first.stop();
    await write(fleet, "raised");
    await fleet.clock.advance(500);
    const cleared = await write(fleet, "cleared");
    first.resume();
    await fleet.until("it has stopped", () => told(first, first) === cleared);
    expect(fleet.desk.of("free")[0]?.context.signal.aborted).toBe(true);
    await fleet.until("the actor is held", () => operator.actor(key) !== undefined);
    await fleet.clock.advance(5000);
    expect(fleet.desk.of("free")).toHaveLength(1);
  });
});
