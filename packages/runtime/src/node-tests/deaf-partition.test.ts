import { RuntimeFault } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { MemoryFleet } from "./memory-fleet.ts";

const lost = (): RuntimeFault =>
  new RuntimeFault("HF-4006", "Stream HF_TEST_INBOX_0: expected more, found less. Give it a new generation.");

const partitionOf = (key: string): string => key.slice(0, key.indexOf("."));

describe("a partition whose inbox reader has ended by itself", () => {
  test("is told of, given up, and served again from its cursor: every message once", async () => {
    const fleet = new MemoryFleet();
    const node = await fleet.alone("n1");
    const key = await fleet.born("tally", "a");
    await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("the first is applied", () => fleet.record(key)?.rev === 2);
    fleet.broker.failInbox("n1", partitionOf(key), lost());
    await fleet.send(key, { type: "ADD", n: 2 });
    await fleet.until("the second is applied", () => fleet.record(key)?.rev === 3);
    expect(fleet.context(key)).toEqual({ seen: [1, 2] });
    expect(fleet.lease(partitionOf(key))).toMatchObject({ state: "held", holder: node.node.incarnation, epoch: 2 });
    expect(fleet.events("partition.reader-ended")).toMatchObject([
      { node: "n1", fields: { partition: partitionOf(key), epoch: 1, code: "HF-4006" } },
    ]);
  });

  test("is given up also when that happens while it is being taken over", async () => {
    const fleet = new MemoryFleet();
    const node = fleet.make("n1");
    const key = fleet.key("tally", "a");
    const taking = node.holdAt("after-barrier", partitionOf(key));
    void node.node.start();
    await fleet.happened("the takeover is half-way", taking.reached);
    const opened = fleet.until("the inbox is read", () => fleet.broker.failInbox("n1", partitionOf(key), lost()) > 0);
    taking.release();
    await opened;
    await fleet.born("tally", "a");
    expect(fleet.lease(partitionOf(key))).toMatchObject({ state: "held", epoch: 2 });
  });

  test("is given up also when that happens while its takeover is being reported", async () => {
    const fleet = new MemoryFleet();
    const node = fleet.make("n1");
    const key = fleet.key("tally", "a");
    const report = fleet.broker.faults.next("fleetPut", { kind: "hang" }, { about: `report.${partitionOf(key)}` });
    void node.node.start();
    await fleet.happened("the report is on its way", report.happened);
    fleet.broker.failInbox("n1", partitionOf(key), lost());
    report.release();
    await fleet.born("tally", "a");
    expect(fleet.lease(partitionOf(key))).toMatchObject({ state: "held", epoch: 2 });
  });

  test.each(["free", "risky"])("starts a %s job that was about to start, once", async (src) => {
    const fleet = new MemoryFleet({ settings: { sweepMs: 600_000 } });
    const node = await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    const beginning = node.holdAt("before-job");
    await fleet.send(key, { type: "RUN", src });
    await fleet.happened("it is about to start", beginning.reached);
    fleet.broker.failInbox("n1", partitionOf(key), lost());
    await fleet.clock.advance(2000);
    beginning.release();
    await fleet.until("it runs", () => fleet.desk.of(src).length === 1);
    fleet.desk.of(src)[0]?.finish("done");
    await fleet.until("its outcome is applied", () => fleet.record(key)?.snapshot.value === "waiting");
    expect(fleet.context(key)).toEqual({ results: ["done"], errors: [] });
    expect(fleet.desk.of(src)).toHaveLength(1);
  });

  test("leaves its running job where it runs", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone("n1");
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "risky" });
    await fleet.until("the job runs", () => fleet.desk.of("risky").length === 1);
    fleet.broker.failInbox("n1", partitionOf(key), lost());
    await fleet.until("the partition is served again", () => fleet.lease(partitionOf(key))?.epoch === 2);
    await fleet.serving(fleet.processes[0] ?? expect.fail("no process"));
    fleet.desk.of("risky")[0]?.finish("done");
    await fleet.until("its outcome is applied", () => fleet.record(key)?.rev === 3);
    expect(fleet.desk.of("risky")).toHaveLength(1);
  });
});
