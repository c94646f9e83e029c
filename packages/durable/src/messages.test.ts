import { MAX_REMEMBERED_MESSAGE_IDS } from "@holdfast/protocol";
import { assign, createMachine, sendTo, setup, type AnyActorRef } from "xstate";
import { describe, expect, test } from "vitest";
import { passOver, type AfterEnd } from "./index.ts";
import { typesOf } from "./testing/scenario-types.ts";
import { GENESIS, KEY, PARENT, PERSON, Subject } from "./testing/subject.ts";

const counter = setup({ types: { context: { n: 0 } } }).createMachine({
  initial: "on",
  context: { n: 0 },
  states: {
    on: { on: { INC: { actions: assign({ n: ({ context }) => context.n + 1 }) }, OFF: "off" } },
    off: { type: "final" },
  },
});
const contextOf = (subject: Subject): unknown => subject.record.snapshot.context;
const START = { kind: "start", id: "start-1", key: KEY, genesis: GENESIS, principal: PERSON, generation: "g" } as const;

describe("what is not for this actor is dropped with a reason and changes nothing", () => {
  const dropped = (reason: string): unknown => ({ kind: "dropped", reason });

  test("messages before the start", () => {
    const one = new Subject(counter);
    expect(one.send("INC")).toEqual(dropped("not-started"));
    expect(one.stop()).toEqual(dropped("not-started"));
  });

  test("a second start, also with another genesis", () => {
    const one = new Subject(counter).start();
    expect(one.try(START)).toEqual(dropped("already-started"));
    expect(one.try({ ...START, id: "other", genesis: "g:2" })).toEqual(dropped("already-started"));
  });

  test("I10: everything after a final status", () => {
    const one = new Subject(counter).start();
    one.send("OFF");
    expect(one.record.status).toBe("done");
    const { record } = one;
    expect(one.send("INC")).toEqual(dropped("terminal"));
    expect(one.stop()).toEqual(dropped("terminal"));
    expect(one.try(START)).toEqual(dropped("already-started"));
    expect(one.try({ kind: "timer", timer: "t", gen: "1.0" })).toEqual(dropped("terminal"));
    expect(
      one.try({ kind: "settled", id: "s", childId: "c", childKey: "k", event: { type: "x" }, toGenesis: GENESIS }),
    ).toEqual(dropped("terminal"));
    expect(one.record).toBe(record);
  });

  test("I10: but what its type notes after the end, in its context alone", () => {
    const afterEnd: AfterEnd = (context, { type, n }) =>
      type === "NOTE" && n !== contextOf(one).n ? { ...Object(context), n } : undefined;
    const one = new Subject(counter, { afterEnd, parent: PARENT }).start();
    const contextOf = ({ record }: Subject) => Object(record.snapshot.context);
    expect(one.send({ type: "NOTE", n: 5 })).toMatchObject({ kind: "ignored" });
    one.send("OFF");
    const before = one.record;
    one.send({ type: "NOTE", n: 5 });
    const { snapshot, rev, outbox: _sent, ...rest } = one.record;
    const { snapshot: was, rev: _rev, outbox: _outbox, ...same } = before;
    expect({ rest, snapshot }).toEqual({ rest: same, snapshot: { ...was, context: { n: 5 } } });
    expect([rev, one.kinds, one.entries.at(-1)?.status]).toEqual([before.rev + 1, "journal", "done"]);
    const noted = one.record;
    expect(one.send({ type: "NOTE", n: 5 })).toEqual(dropped("terminal"));
    expect(one.try({ kind: "event", id: "i", event: { type: "NOTE", n: 6 }, external: false })).toEqual(
      dropped("terminal"),
    );
    expect(one.try({ ...START, id: "again" })).toEqual(dropped("already-started"));
    const elsewhere = {
      kind: "event",
      id: "e",
      event: { type: "NOTE", n: 6 },
      external: true,
      toGenesis: "g:7",
    } as const;
    expect(one.try(elsewhere)).toEqual(dropped("terminal"));
    expect(one.record).toBe(noted);
    one.record = { ...noted, tombstone: { endedAtMs: 1, atMs: 2 } };
    expect(one.send({ type: "NOTE", n: 7 })).toEqual(dropped("terminal"));
  });

  test("I10: also while its children are still waited for, and it ends as it would have", () => {
    const parent = setup({ actors: { kid: createMachine({}) } }).createMachine({
      initial: "on",
      context: { n: 0 },
      invoke: { src: "kid", id: "kid" },
      states: { on: { on: { OFF: "off" } }, off: { type: "final" } },
    });
    const one = new Subject(parent, {
      actors: { kid: { closePolicy: "await" } },
      afterEnd: (_, { n }) => ({ n }),
    }).start();
    one.send("OFF");
    expect(one.record.status).toBe("closing");
    one.send({ type: "NOTE", n: 5 });
    expect(one.record).toMatchObject({ status: "closing", snapshot: { context: { n: 5 } } });
    one.settle("kid", 1);
    expect(one.record).toMatchObject({ status: "done", snapshot: { context: { n: 5 } } });
  });

  test("messages for another incarnation of the same key", () => {
    const one = new Subject(counter).start();
    const event = { kind: "event", id: "e", event: { type: "INC" }, external: false, toGenesis: "g:7" } as const;
    expect(one.try(event)).toEqual(dropped("other-incarnation"));
    expect(one.try({ ...event, external: true })).toEqual(dropped("other-incarnation"));
    const settled = {
      kind: "settled",
      id: "s",
      childId: "c",
      childKey: "k",
      event: { type: "x" },
      toGenesis: "g:7",
    } as const;
    expect(one.try(settled)).toEqual(dropped("other-incarnation"));
  });

  test.each([
    "xstate.stop",
    "xstate.init",
    "xstate.done.actor.k",
    "xstate.error.actor.k",
    "xstate.snapshot.k",
    "xstate.after.1.x",
    "xstate.route",
    "xstate.relay",
  ])("F35: %s from outside or without a counter", (type) => {
    const one = new Subject(counter).start();
    expect(one.send(type)).toEqual(dropped("reserved-event"));
    expect(one.try({ kind: "event", id: "h", event: { type }, external: false })).toEqual(dropped("reserved-event"));
    const { key, genesis } = PARENT;
    expect(one.hear({ key, genesis, n: 1 }, type)).toEqual(dropped("reserved-event"));
    expect(one.record.rev).toBe(1);
  });

  test("F35: an outside message cannot pass for one from an actor by what it says", () => {
    const one = new Subject(counter).start();
    const from = { key: PARENT.key, genesis: PARENT.genesis, n: 2 ** 40 };
    one.apply({ kind: "event", id: "x", event: { type: "INC" }, external: true, from });
    expect(one.record.marks).toEqual({});
    expect(one.hear({ ...from, n: 1 }, "INC").kind).toBe("stepped");
  });
});

describe("outside messages are applied once by their id", () => {
  test("a repeated id is a duplicate, whatever its content", () => {
    const one = new Subject(counter).start();
    one.send("INC", "key-1");
    expect(one.send("INC", "key-1")).toEqual({ kind: "dropped", reason: "duplicate" });
    expect(one.send("OFF", "key-1")).toEqual({ kind: "dropped", reason: "duplicate" });
    expect(one.send("INC", "start-1")).toEqual({ kind: "dropped", reason: "duplicate" });
    expect(contextOf(one)).toEqual({ n: 1 });
  });

  test("the last ids are remembered, no more", () => {
    const one = new Subject(counter).start();
    for (let index = 0; index < MAX_REMEMBERED_MESSAGE_IDS; index += 1) one.send("INC", `k${index}`);
    expect(one.record.messageIds).toHaveLength(MAX_REMEMBERED_MESSAGE_IDS * 8);
    expect(one.send("INC", "k0")).toEqual({ kind: "dropped", reason: "duplicate" });
    one.send("INC", "one more");
    expect(one.record.messageIds).toHaveLength(MAX_REMEMBERED_MESSAGE_IDS * 8);
    expect(one.send("INC", "k0").kind).toBe("stepped");
  });

  test("one that changes nothing is ignored: the very same record, nothing to commit, its id not used up", () => {
    const one = new Subject(counter).start();
    const { record } = one;
    const result = one.send("NOTHING", "k");
    expect(result).toEqual({ kind: "ignored", record });
    expect(result.kind === "ignored" && result.record).toBe(record);
    expect(one.send("INC", "k").kind).toBe("stepped");
  });

  test("one that only runs an action is not ignored", () => {
    const machine = createMachine({ on: { GO: { actions: () => undefined } } });
    const one = new Subject(machine).start();
    one.send("GO");
    expect(one.kinds).toBe("action journal");
  });
});

test("a message from an actor counts as taken even when the machine ignores it", () => {
  const one = new Subject(counter).start();
  const from = { key: PARENT.key, genesis: PARENT.genesis, n: 1 };
  expect(one.hear(from, "NOTHING").kind).toBe("stepped");
  expect(one.record.rev).toBe(2);
  expect(one.hear(from, "NOTHING")).toEqual({ kind: "dropped", reason: "duplicate" });
});

test("a start for an actor of another type is refused", () => {
  const one = new Subject(counter);
  expect(() => one.apply({ ...START, key: "d-0.other.one" })).toThrow(/expected an actor of type "subject"/);
});

describe("a message that cannot be stored is passed over", () => {
  const event = { type: "INC", huge: "x".repeat(1000) };

  test("its counter is used up, its content is not kept, and the reason is visible", () => {
    const one = new Subject(counter).start();
    const from = { key: PARENT.key, genesis: PARENT.genesis, n: 1 };
    const message = { kind: "event", id: "big", event, from, external: false } as const;
    const result = passOver(one.compiled, one.record, message, one.env, "record-too-large");
    if (result.kind !== "stepped") return expect.unreachable();
    one.commit(result);
    expect(contextOf(one)).toEqual({ n: 0 });
    expect(one.effectsOf("log")).toMatchObject([{ value: { id: "big", type: "INC", reason: "record-too-large" } }]);
    expect(JSON.stringify(one.record)).not.toContain("xxx");
    expect(one.hear(from, "INC")).toEqual({ kind: "dropped", reason: "duplicate" });
    expect(one.hear({ ...from, n: 2 }, "INC").kind).toBe("stepped");
    expect(contextOf(one)).toEqual({ n: 1 });
  });

  test("what would be dropped anyway stays dropped", () => {
    const one = new Subject(counter).start();
    one.send("OFF", "k");
    const message = { kind: "event", id: "big", event, external: true } as const;
    expect(passOver(one.compiled, one.record, message, one.env, "record-too-large")).toEqual({
      kind: "dropped",
      reason: "terminal",
    });
  });
});

test("a machine that refers to itself keeps its own address, not the running step", () => {
  const machine = setup({ types: typesOf<{ me?: AnyActorRef }>({}) }).createMachine({
    context: {},
    on: {
      KEEP: { actions: assign({ me: ({ self }) => self }) },
      TELL: { actions: sendTo(({ context, self }) => context.me ?? self, { type: "HI" }) },
    },
  });
  for (const cold of [false, true]) {
    const one = new Subject(machine, { cold }).start();
    one.send("KEEP");
    one.send("TELL");
    expect(one.effectsOf("send")).toMatchObject([{ to: KEY, toGenesis: GENESIS, n: 1 }]);
  }
});
