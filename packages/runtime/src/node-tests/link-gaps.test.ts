import { describe, expect, test } from "vitest";
import { defineActor } from "../actor-definition.ts";
import { bossVersion } from "./boss.machine.ts";
import { fragileMachine } from "./fragile.machine.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";
import { OperatorDesk } from "./operator-desk.ts";
import { testActors } from "./test-actors.ts";

const SETTINGS = { sweepMs: 500, gapMs: 1000, cursorFlushMs: 100, idleCleanMs: 100 };
const reportOf = ({ node }: MemoryProcess, key: string) =>
  [...node.partitions.values()].flatMap(({ reports }) => reports.get(key) ?? [])[0];

/** A boss and its helper, which have exchanged nothing yet. */
async function pair() {
  const fleet = new MemoryFleet({ settings: SETTINGS });
  const process = await fleet.alone("n1");
  const boss = await fleet.born("boss", "b");
  await fleet.send(boss, { type: "DELEGATE", id: "h", input: {} });
  const helper = await fleet.child(boss, "h");
  await fleet.until("the helper is there", () => fleet.record(helper) !== undefined);
  const tell = async (...words: readonly number[]): Promise<void> => {
    for (const n of words) await fleet.send(boss, { type: "TELL", id: "h", n });
  };
  return { fleet, process, boss, helper, tell };
}

describe("a message between actors that was acknowledged, and then lost", () => {
  test("F3: is asked for and sent again, from the journal of its sender; what came after it is applied behind it, once", async () => {
    const { fleet, process, boss, helper, tell } = await pair();
    await tell(1);
    await fleet.until("the first word is there", () => fleet.record(helper)?.rev === 2);
    process.log.lose(helper, 2);
    await tell(2, 3, 4, 5);
    await fleet.until("the gap is listed", () => reportOf(process, helper)?.kind === "orphan-messages");
    await fleet.until("it is closed", () => fleet.record(helper)?.rev === 6);
    expect(fleet.context(helper)).toMatchObject({ words: [1, 2, 3, 4, 5] });
    expect(fleet.events("link.resent")[0]?.fields).toMatchObject({
      key: boss,
      to: helper,
      first: 2,
      last: 3,
      messages: 2,
    });
    await fleet.until("nothing is listed", () => reportOf(process, helper) === undefined);
    expect(await fleet.outsider.log.fetch("parked", helper, 0, 10)).toEqual([]);
    await fleet.clock.advance(30_000);
    expect(fleet.record(helper)?.rev).toBe(6);
    expect(fleet.events("link.gap")).toHaveLength(1);
  });

  test("F3: also when sender and receiver are with another node by then, and the request is lost at first", async () => {
    const { fleet, process, boss, helper, tell } = await pair();
    process.log.lose(helper);
    await tell(1, 2);
    await fleet.until("the gap is listed", () => reportOf(process, helper) !== undefined);
    await fleet.clock.advance(500);
    process.kill();
    const second = fleet.make("n2");
    second.log.lose(boss);
    await fleet.happened("it has joined", second.node.start());
    await fleet.until("the gap is closed", () => fleet.record(helper)?.rev === 3);
    expect(fleet.context(helper)).toMatchObject({ words: [1, 2] });
    expect(fleet.events("link.gap").length).toBeGreaterThan(1);
  });

  test("F3: from a child to its parent", async () => {
    const { fleet, process, boss, helper } = await pair();
    process.log.lose(boss);
    for (const n of [1, 2]) await fleet.send(helper, { type: "SAY", n });
    await fleet.until("both are applied", () => JSON.stringify(fleet.context(boss)).includes("[1,2]"));
  });

  test("F3: with a payload that is kept outside", async () => {
    const { fleet, process, helper, boss } = await pair();
    const big = "x".repeat(200_000);
    process.log.lose(helper);
    await fleet.send(boss, { type: "TELL", id: "h", n: big });
    await fleet.send(boss, { type: "TELL", id: "h", n: 2 });
    await fleet.until("both are applied", () => fleet.record(helper)?.rev === 3);
    expect(fleet.context(helper)).toMatchObject({ words: [big, 2] });
  });

  test("is not made up: a build that cannot replay its decision says so, and the gap stays listed", async () => {
    const { fleet, process, boss, helper, tell } = await pair();
    process.log.lose(helper);
    await tell(1, 2);
    await fleet.until("the gap is listed", () => reportOf(process, helper) !== undefined);
    await fleet.clock.advance(500);
    process.kill();
    const next = testActors(fleet.desk).map((definition) =>
      definition.type === "boss" ? { ...definition, machine: bossVersion("2") } : definition,
    );
    const second = await fleet.alone("n2", { definitions: next });
    await fleet.until("it was asked for", () => fleet.events("link.not-resent").length > 0);
    expect(fleet.events("link.not-resent")[0]?.fields).toMatchObject({
      key: boss,
      to: helper,
      reason: expect.stringContaining("unknown-machine"),
    });
    expect(fleet.context(helper)).toMatchObject({ words: [] });
    expect(reportOf(second, helper)?.kind).toBe("orphan-messages");
  });
});

describe("nothing is asked for", () => {
  test("G1: that came and was taken out: its link stands still until an operator decides", async () => {
    const fleet = new MemoryFleet({ settings: SETTINGS });
    const definitions = [
      ...testActors(fleet.desk),
      defineActor({ type: "fragile", machine: fragileMachine({ breaks: true }) }),
    ];
    const process = await fleet.alone("n1", { definitions });
    const operator = await OperatorDesk.open(fleet);
    const key = await fleet.born("fragile", "f");
    const from = { key: fleet.key("boss", "far"), genesis: "g1:9" };
    for (const [n, type] of [
      [1, "BREAK"],
      [2, "ADD"],
    ] as const)
      await fleet.publishInside(
        key,
        { v: 1, kind: "send", id: `far@${n}`, from: { ...from, n }, event: { type, n } },
        `far-${n}`,
      );
    await fleet.until(
      "the first is taken out, the second waits",
      () => reportOf(process, key)?.kind === "orphan-messages",
    );
    await fleet.clock.advance(10_000);
    expect(fleet.events("link.gap")).toEqual([]);
    expect(await operator.command("skip", key)).toMatchObject({ kind: "done" });
    await fleet.until("the link goes on", () => JSON.stringify(fleet.context(key)) === '{"seen":[2]}');
  });

  test("of a former actor of the same key: what was meant for that is not sent to its successor", async () => {
    const { fleet, process, boss, helper, tell } = await pair();
    await tell(1);
    await fleet.until("the word is there", () => fleet.record(helper)?.rev === 2);
    const { genesis = "" } = fleet.record(boss) ?? {};
    const request = { type: "xstate.link.resend", link: { key: helper, genesis: "g1:999" }, first: 1, last: 1 };
    const ask = (sinceMs: number, id: string): Promise<void> =>
      fleet.publishInside(boss, { v: 1, kind: "send", id, toGenesis: genesis, event: { ...request, sinceMs } }, id);
    const sent = (): number => fleet.broker.messagesOf("inbox", helper).length;
    const before = sent();
    await ask(fleet.clock.wallMs() + 1, "ask-1");
    await fleet.until("it was answered", () => fleet.events("link.not-resent").length === 1);
    expect(sent()).toBe(before);
    await ask(0, "ask-2");
    await fleet.until("it was answered", () => fleet.events("link.resent").length === 1);
    expect(sent()).toBe(before + 1);
    await fleet.clock.advance(1000);
    expect(fleet.context(helper)).toMatchObject({ words: [1] });
    expect(process.node.partitions.size).toBe(4);
  });

  test("F35: by somebody outside", async () => {
    const { fleet, boss, helper } = await pair();
    const event = { type: "xstate.link.resend", link: { key: helper, genesis: "g1:1" }, first: 1, last: 1, sinceMs: 0 };
    const id = await fleet.send(boss, event);
    await fleet.until("it is answered", () => fleet.outcomes(id).length > 0);
    expect(fleet.outcomes(id)).toMatchObject([{ kind: "refused", code: "HF-1004" }]);
    expect([...fleet.events("link.resent"), ...fleet.events("link.not-resent")]).toEqual([]);
  });
});
