import type { Effect } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { OutboxDispatcher, type SendEffects } from "./outbox-dispatcher.ts";

const start = (id: string, to: string): Effect => ({
  kind: "start",
  id,
  to,
  childId: to,
  sync: false,
  principal: { kind: "person", id: "local", roles: [] },
});
const send = (id: string, to: string, n: number): Effect => ({ kind: "send", id, to, n, event: { type: "x" } });
const journal = (rev: number): Effect => ({
  kind: "journal",
  id: `${rev}#9`,
  rev,
  prevRev: rev - 1,
  event: { type: "x" },
  cause: { kind: "event", id: "m" },
  from: "a",
  to: "b",
  status: "active",
  effects: [],
  atMs: 0,
});

/** A stream that answers when the test says so. */
function harness({ lingers = false } = {}) {
  const ticks: (() => void)[] = [];
  const sent: { readonly ids: string; readonly answer: (outcome: Awaited<ReturnType<SendEffects>>) => void }[] = [];
  const dispatcher = new OutboxDispatcher({
    send: (effects) => new Promise((answer) => sent.push({ ids: effects.map(({ id }) => id).join("+"), answer })),
    pause: () => Promise.resolve(),
    acked: () => undefined,
    failing: () => undefined,
    ...(lingers && {
      linger: (flush) => {
        ticks.push(flush);
        return () => void ticks.splice(ticks.indexOf(flush), 1);
      },
    }),
  });
  const tick = (): void => ticks.splice(0).forEach((flush) => flush());
  const answer = async (
    ids: string,
    outcome: Awaited<ReturnType<SendEffects>> = { kind: "accepted", seq: 1, duplicate: false },
  ) => {
    const at = sent.findIndex((one) => one.ids === ids);
    const [found] = sent.splice(at, 1);
    expect(at, `${ids} is on its way`).toBeGreaterThanOrEqual(0);
    found?.answer(outcome);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { dispatcher, answer, tick, onTheWay: () => sent.map(({ ids }) => ids) };
}

describe("outbox", () => {
  test("O1: a refused entry holds back the later ones of its target, others go on", async () => {
    const { dispatcher, answer, onTheWay } = harness();
    dispatcher.add([send("5#0", "B", 1), send("5#1", "C", 1), send("6#0", "B", 2)]);
    expect(onTheWay()).toEqual(["5#0", "5#1"]);
    await answer("5#0", { kind: "refused", reason: "full", retryable: true });
    expect(onTheWay()).toEqual(["5#1", "5#0"]); // again, and 6#0 still waits (x02)
    await answer("5#0");
    expect(onTheWay()).toEqual(["5#1", "6#0"]);
  });

  test("O2: nothing of a commit leaves before its starts are stored, nor anything of later commits", async () => {
    const { dispatcher, answer, onTheWay } = harness();
    dispatcher.add([start("5#0", "child"), start("5#1", "other"), send("5#2", "D", 1), journal(5)]);
    dispatcher.add([send("6#0", "E", 1)]);
    expect(onTheWay()).toEqual(["5#0", "5#1"]);
    await answer("5#1");
    expect(onTheWay()).toEqual(["5#0"]);
    await answer("5#0");
    expect(onTheWay()).toEqual(["5#2", "5#9", "6#0"]);
  });

  test("O3: what is not acknowledged is carried into the next commit, oldest first (x11)", async () => {
    const { dispatcher, answer } = harness();
    dispatcher.add([send("2#0", "B", 1), send("2#1", "C", 1)]);
    await answer("2#1");
    dispatcher.add([send("3#0", "C", 2)]);
    expect(dispatcher.unacked.map(({ id }) => id)).toEqual(["2#0", "3#0"]);
  });

  test("O4: journal entries that wait share a message; a job may start once its own is stored", async () => {
    const { dispatcher, answer, onTheWay } = harness();
    let journaled = 0;
    dispatcher.add([journal(1)]);
    dispatcher.add([journal(2)]);
    dispatcher.add([journal(3)]);
    void dispatcher.whenJournaled(2).then(() => (journaled = 2));
    expect(onTheWay()).toEqual(["1#9"]);
    await answer("1#9");
    expect([onTheWay(), journaled]).toEqual([["2#9+3#9"], 0]);
    await answer("2#9+3#9");
    expect([journaled, dispatcher.size]).toEqual([2, 0]);
  });

  test("O5: journal entries linger for each other until the tick, or until there are three", async () => {
    const { dispatcher, answer, onTheWay, tick } = harness({ lingers: true });
    dispatcher.add([journal(1)]);
    dispatcher.add([journal(2)]);
    expect(onTheWay()).toEqual([]);
    tick();
    expect(onTheWay()).toEqual(["1#9+2#9"]);
    await answer("1#9+2#9");
    for (const rev of [3, 4]) dispatcher.add([journal(rev)]);
    expect(onTheWay()).toEqual([]);
    dispatcher.add([journal(5)]);
    expect(onTheWay()).toEqual(["3#9+4#9+5#9"]);
    tick();
    expect(onTheWay()).toEqual(["3#9+4#9+5#9"]);
  });

  test("O5: a journal entry does not linger when a job waits for it, nor beside anything else", async () => {
    const { dispatcher, answer, onTheWay } = harness({ lingers: true });
    dispatcher.add([journal(1)]);
    const journaled = dispatcher.whenJournaled(1);
    expect(onTheWay()).toEqual(["1#9"]);
    await answer("1#9");
    await journaled;
    dispatcher.add([journal(2)]);
    expect(onTheWay()).toEqual([]);
    dispatcher.add([send("3#0", "B", 1), journal(3)]);
    expect(onTheWay()).toEqual(["2#9+3#9", "3#0"]);
  });

  test("an answer that arrives after the copy was dropped clears nothing of the new life", async () => {
    const { dispatcher, answer, onTheWay } = harness();
    dispatcher.add([send("2#0", "B", 1)]);
    dispatcher.reset();
    dispatcher.add([send("2#0", "B", 1)]);
    expect(onTheWay()).toEqual(["2#0", "2#0"]);
    await answer("2#0");
    expect(dispatcher.size).toBe(1);
    await answer("2#0");
    expect(dispatcher.size).toBe(0);
  });
});
