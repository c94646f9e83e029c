import { describe, expect, test } from "vitest";
import { MemoryFleet } from "./memory-fleet.ts";
import { OperatorDesk } from "./operator-desk.ts";

async function withTally() {
  const fleet = new MemoryFleet({ settings: { cursorFlushMs: 100, idleCleanMs: 100 } });
  const process = await fleet.alone("n1");
  const operator = await OperatorDesk.open(fleet);
  const key = await fleet.born("tally", "a");
  return { fleet, process, operator, key };
}

describe("commands of an operator", () => {
  test("what is parked does nothing, survives a takeover so, and goes on after a retry with everything that came meanwhile", async () => {
    const { fleet, process, operator, key } = await withTally();
    expect(await operator.command("park", key)).toMatchObject({ kind: "done", node: process.node.incarnation });
    const waits = [await fleet.send(key, { type: "ADD", n: 1 }), await fleet.send(key, { type: "ADD", n: 2 })];
    await fleet.until("they are set aside", () => fleet.broker.messagesOf("parked", key).length === 2);
    expect(operator.actor(key)).toMatchObject({ state: "parked", code: "HF-3104", by: "person-ada" });
    await fleet.clock.advance(500);
    process.kill();
    await fleet.alone("n2");
    waits.push(await fleet.send(key, { type: "ADD", n: 3 }));
    await fleet.clock.advance(5000);
    expect(fleet.record(key)?.rev).toBe(1);
    expect(await operator.command("retry", key)).toMatchObject({ kind: "done" });
    await fleet.until("all are applied", () => waits.every((id) => fleet.outcomes(id).length > 0));
    expect(fleet.context(key)).toEqual({ seen: [1, 2, 3] });
    expect(operator.entries.size).toBe(0);
  });

  test("they wait while no node owns the actor; what is parked then is not even loaded by the next owner", async () => {
    const { fleet, process, operator, key } = await withTally();
    process.kill();
    const token = await operator.leave("park", key);
    await fleet.clock.advance(5000);
    expect(operator.outcome(token)).toBeUndefined();
    const next = fleet.make("n2");
    const load = next.holdAt("mid-rehydration", key);
    const loads = fleet.events("message.parked").length;
    void next.node.start();
    await fleet.happened("its work is about to be taken up", load.reached);
    expect(operator.outcome(token)).toMatchObject({ kind: "done" });
    load.release();
    await fleet.serving(next);
    await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("its message waits", () => fleet.events("message.parked").length > loads);
    expect(fleet.record(key)?.rev).toBe(1);
  });

  test("each is in the audit stream, before it is carried out, with who asked and who did it", async () => {
    const { fleet, process, operator, key } = await withTally();
    const refused = fleet.broker.faults.next("event", { kind: "refuse", times: 3 });
    const token = await operator.leave("park", key);
    await fleet.happened("the audit stream refuses", refused.happened);
    expect(operator.actor(key)).toBeUndefined();
    await fleet.until("it is carried out later", () => operator.outcome(token) !== undefined);
    expect(operator.audited()).toMatchObject([
      { verb: "park", key, by: "person-ada", node: process.node.incarnation, id: token },
    ]);
    expect(fleet.broker.audited().map(({ subject }) => subject)).toEqual(["hf.test.audit.park"]);
  });

  test("what cannot be done is refused with a code, and still audited", async () => {
    const { fleet, operator, key } = await withTally();
    const nobody = fleet.key("tally", "nobody");
    expect(await operator.command("park", nobody)).toMatchObject({ kind: "refused", code: "HF-3001" });
    expect(await operator.command("skip", key)).toMatchObject({ kind: "refused", code: "HF-3105" });
    expect(await operator.command("skip", key, "no such")).toMatchObject({ kind: "refused", code: "HF-3105" });
    expect(await operator.command("retry", key, "no such")).toMatchObject({ kind: "refused", code: "HF-3105" });
    expect(await operator.command("retry", fleet.key("alien", "x"))).toMatchObject({ code: "HF-3105" });
    await operator.command("park", key);
    expect(await operator.command("skip", key, "x")).toMatchObject({ kind: "refused", code: "HF-3104" });
    expect(operator.audited()).toHaveLength(7);
  });

  test("a message that waits for an earlier one can be skipped by its id", async () => {
    const { fleet, operator, key } = await withTally();
    const from = { key: "d-0.talker.far", genesis: "g1:9" };
    const second = { v: 1, kind: "send", id: "far@2", from: { ...from, n: 2 }, event: { type: "ADD", n: 2 } } as const;
    await fleet.publishInside(key, second, "far-2");
    await fleet.until("it waits", () => fleet.broker.messagesOf("parked", key).length === 1);
    expect(await operator.command("skip", key, "far-2")).toMatchObject({ kind: "done" });
    expect(await fleet.outsider.log.fetch("parked", key, 0, 10)).toEqual([]);
    expect(fleet.context(key)).toEqual({ seen: [] });
  });

  test("one that was interrupted is carried out by the next owner, and nothing happens twice", async () => {
    const { fleet, process, operator, key } = await withTally();
    const hung = fleet.broker.faults.next("fleetPut", { kind: "hang" }, { node: "n1", about: "command." });
    const token = await operator.leave("park", key);
    await fleet.happened("its outcome is on the way", hung.happened);
    process.kill();
    await fleet.alone("n2");
    await fleet.until("it has an outcome", () => operator.outcome(token) !== undefined);
    expect(operator.actor(key)).toMatchObject({ code: "HF-3104", attempts: 1 });
    expect(operator.audited().map(({ id }) => id)).toEqual([token, token]);
  });
});
