import { MAX_CARRIED_EFFECTS } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { MemoryFleet } from "./memory-fleet.ts";

/** A boss with one helper, both at rest. */
async function pair(fleet: MemoryFleet): Promise<{ readonly boss: string; readonly helper: string }> {
  const boss = await fleet.born("boss", "b");
  await fleet.send(boss, { type: "DELEGATE", id: "h" });
  const helper = await fleet.child(boss, "h");
  await fleet.until("the helper is there", () => fleet.record(helper) !== undefined);
  return { boss, helper };
}
const words = (fleet: MemoryFleet, key: string): unknown => fleet.record(key)?.snapshot.context;
const sizeOf = (value: unknown, field: string): number =>
  typeof value === "object" && value !== null && field in value ? Reflect.get(value, field).length : 0;

describe("what was decided leaves, in order, whatever the streams do", () => {
  test("F3, x02: a message that was refused and then accepted arrives before the ones behind it on its link", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const { boss, helper } = await pair(fleet);
    fleet.broker.faults.nextPublish({ kind: "refuse", times: 3 }, { about: helper });
    for (const n of [1, 2, 3]) await fleet.send(boss, { type: "TELL", id: "h", n });
    await fleet.until("the words have arrived", () => sizeOf(words(fleet, helper), "words") === 3);
    expect(words(fleet, helper)).toMatchObject({ words: [1, 2, 3] });
    expect(fleet.record(helper)?.marks).toMatchObject({ [`${boss}^${fleet.record(boss)?.genesis}`]: 3 });
  });

  test("F3: one whose acknowledgement was lost is sent again and applied once", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const { boss, helper } = await pair(fleet);
    fleet.broker.faults.nextPublish({ kind: "lostAck" }, { about: helper });
    await fleet.send(boss, { type: "TELL", id: "h", n: 1 });
    await fleet.until("it has arrived", () => sizeOf(words(fleet, helper), "words") === 1);
    fleet.broker.forgetMessageIds(); // the broker's memory of ids is no help
    await fleet.send(boss, { type: "TELL", id: "h", n: 2 });
    await fleet.until("both have arrived", () => sizeOf(words(fleet, helper), "words") === 2);
    await fleet.clock.advance(5000);
    expect(words(fleet, helper)).toMatchObject({ words: [1, 2] });
  });

  test("F3: a message ahead of its link changes nothing, is visible, and is applied when the one before it came", async () => {
    const fleet = new MemoryFleet();
    const { node } = await fleet.alone();
    const tally = await fleet.born("tally", "a");
    const from = { key: "d-0.tally.far", genesis: "g1:9" };
    const send = (n: number): Promise<void> =>
      fleet.publishInside(
        tally,
        { v: 1, kind: "send", id: `far@${n}`, from: { ...from, n }, event: { type: "ADD", n } },
        `far-${n}`,
      );
    await send(2);
    await send(3);
    const reports = (): string[] => [...node.partitions.values()].flatMap(({ reports: all }) => [...all.keys()]);
    await fleet.until("it is reported", () => reports().includes(tally));
    expect(fleet.context(tally)).toEqual({ seen: [] });
    await send(1);
    await fleet.until("all have been applied", () => sizeOf(fleet.context(tally), "seen") === 3);
    await fleet.clock.advance(1000);
    expect(fleet.context(tally)).toEqual({ seen: [1, 2, 3] });
    expect(reports()).not.toContain(tally);
  });

  test("F4, x11: what could not be sent is in the next commit, so the death of the node loses nothing", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const boss = await fleet.born("boss", "b");
    const start = fleet.broker.faults.nextPublish({ kind: "hang" }, { about: ".helper." });
    await fleet.send(boss, { type: "DELEGATE", id: "h" });
    await fleet.happened("the start hangs", start.happened);
    await fleet.send(boss, { type: "SAID", n: "meanwhile" });
    await fleet.until("another commit was made", () => fleet.record(boss)?.rev === 3);
    first.kill();
    const helper = await fleet.child(boss, "h");
    expect(fleet.broker.messagesOf("inbox", helper)).toEqual([]);
    await fleet.alone("n2");
    await fleet.until("the helper was started", () => fleet.record(helper) !== undefined);
  });

  test("F17: nothing of a commit, or of a later one, leaves before its starts are acknowledged", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const { boss, helper } = await pair(fleet);
    const start = fleet.broker.faults.nextPublish({ kind: "hang" }, { about: ".helper.other" });
    await fleet.send(boss, { type: "DELEGATE", id: "other" });
    await fleet.happened("the start hangs", start.happened);
    await fleet.send(boss, { type: "TELL", id: "h", n: "about the other one" });
    await fleet.until("it is decided", () => fleet.record(boss)?.rev === 4);
    await fleet.clock.advance(2000);
    expect(words(fleet, helper)).toMatchObject({ words: [] });
    start.release();
    await fleet.until("it is told", () => sizeOf(words(fleet, helper), "words") === 1);
  });

  test("F7: a result that was stored but not sent when the node died reaches the parent", async () => {
    const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100 } });
    const first = await fleet.alone("n1");
    const { boss, helper } = await pair(fleet);
    await fleet.send(helper, { type: "WORD", n: 1 });
    await fleet.until("it has heard a word", () => sizeOf(words(fleet, helper), "words") === 1);
    const result = fleet.broker.faults.nextPublish({ kind: "hang" }, { node: "n1", about: boss });
    await fleet.send(helper, { type: "FINISH" });
    await fleet.happened("the result does not leave", result.happened);
    await fleet.clock.advance(1000); // long enough for the cursor to pass what ended it
    first.kill();
    expect(fleet.record(helper)?.status).toBe("done");
    expect(fleet.record(boss)?.snapshot.children["h"]?.status).toBe("active");
    await fleet.start("n2");
    await fleet.until("the parent has it", () => fleet.record(boss)?.snapshot.children["h"]?.status === "done");
    expect(fleet.context(boss)).toEqual({ said: [], results: [{ words: [1] }], errors: [] });
  });

  test("F26: with too much unsent it takes no more messages, says so, and goes on when the stream does", async () => {
    const fleet = new MemoryFleet();
    const { node } = await fleet.alone();
    const { boss, helper } = await pair(fleet);
    const hang = fleet.broker.faults.nextPublish({ kind: "hang" }, { about: helper });
    const count = MAX_CARRIED_EFFECTS + 10;
    for (let n = 0; n < count; n += 1) await fleet.send(boss, { type: "TELL", id: "h", n });
    const report = (): unknown => [...node.partitions.values()].flatMap(({ reports }) => reports.get(boss) ?? [])[0];
    await fleet.until("it says so", () => report() !== undefined);
    await fleet.clock.advance(5000);
    expect(report()).toMatchObject({ kind: "backpressure" });
    const taken = (fleet.record(boss)?.rev ?? 0) - 2;
    expect(taken).toBeGreaterThanOrEqual(MAX_CARRIED_EFFECTS);
    expect(taken).toBeLessThan(count);
    hang.release();
    await fleet.until("everything has arrived", () => sizeOf(words(fleet, helper), "words") === count);
    expect(words(fleet, helper)).toMatchObject({ words: Array.from({ length: count }, (_, n) => n) });
    await fleet.until("nothing is reported any more", () => report() === undefined);
  });

  test("F4: a step that is too large only because of what has not left yet waits for that, and is not refused", async () => {
    const fleet = new MemoryFleet();
    const { node } = await fleet.alone();
    const { boss, helper } = await pair(fleet);
    const hang = fleet.broker.faults.nextPublish({ kind: "hang" }, { node: "n1", about: helper });
    const big = "x".repeat(100_000);
    const sent: string[] = [];
    for (let n = 0; n < 8; n += 1) sent.push(await fleet.send(boss, { type: "TELL", id: "h", n: `${n}${big}` }));
    const report = (): unknown => [...node.partitions.values()].flatMap(({ reports }) => reports.get(boss) ?? [])[0];
    await fleet.until("it says so", () => report() !== undefined);
    await fleet.clock.advance(5000);
    expect(report()).toMatchObject({ kind: "backpressure" });
    expect(sent.filter((id) => fleet.outcomes(id).length > 0).length).toBeLessThan(8);
    hang.release();
    await fleet.until("all are answered", () => sent.every((id) => fleet.outcomes(id).length === 1));
    expect(sent.map((id) => fleet.outcomes(id)[0]?.kind)).toEqual(sent.map(() => "applied"));
    await fleet.until("nothing is reported any more", () => report() === undefined);
    // The receiver keeps only as many as fit into its own record; that is another limit, and another refusal.
    await fleet.until("all have left", () => fleet.broker.messagesOf("inbox", helper).length === 1 + sent.length);
  });

  test("a public event whose acknowledgement was lost is one event", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const tally = await fleet.born("tally", "a");
    fleet.broker.faults.next("event", { kind: "lostAck" });
    await fleet.send(tally, { type: "EMIT" });
    await fleet.until("it was published", () => fleet.broker.events().length > 0);
    await fleet.clock.advance(5000);
    expect(fleet.broker.events()).toMatchObject([{ event: { type: "told", subject: tally, data: { seen: 0 } } }]);
  });
});
