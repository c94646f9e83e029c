import { assign, createMachine, fromCallback, fromPromise, sendTo, setup, spawnChild, stopChild } from "xstate";
import { describe, expect, test, vi } from "vitest";
import { doneActorEvent } from "./index.ts";
import { typesOf } from "./testing/scenario-types.ts";
import { GENESIS, PARENT, Subject } from "./testing/subject.ts";

const kid = createMachine({ id: "kid" });
const job = fromPromise(async () => 1);
const host = fromCallback(() => undefined);
const dropped = (reason: string): unknown => ({ kind: "dropped", reason });

describe("results of children", () => {
  const machine = setup({ types: { context: { out: [] as unknown[] } }, actors: { job } }).createMachine({
    initial: "a",
    context: { out: [] },
    states: {
      a: {
        invoke: {
          src: "job",
          id: "j",
          onDone: { actions: assign({ out: ({ context, event }) => [...context.out, event.output] }) },
        },
        on: { AGAIN: { target: "a", reenter: true }, LEAVE: "b" },
      },
      b: {},
    },
  });

  test("a result is applied once; a second one finds the child settled", () => {
    const one = new Subject(machine).start();
    const { key } = one.child("j");
    one.settle("j", 1);
    expect(one.child("j").status).toBe("done");
    expect(one.settle("j", 2, key)).toEqual(dropped("stale-child"));
    expect(one.fail("j", new Error("late"), key)).toEqual(dropped("stale-child"));
    expect(one.record.snapshot.context).toEqual({ out: [1] });
  });

  test("the result of an earlier incarnation of the same child id is dropped, that of the living one is applied", () => {
    const one = new Subject(machine).start();
    const first = one.child("j").key;
    one.send("AGAIN");
    const second = one.child("j").key;
    expect(second).not.toBe(first);
    expect(one.local).toEqual([
      { kind: "startJob", childKey: second, childId: "j", src: "job", input: undefined },
      { kind: "stopJob", childKey: first },
    ]);
    expect(one.settle("j", "old", first)).toEqual(dropped("stale-child"));
    one.settle("j", "new", second);
    expect(one.record.snapshot.context).toEqual({ out: ["new"] });
  });

  test("the late error of a child that was stopped does not kill its parent", () => {
    const one = new Subject(machine).start();
    const { key } = one.child("j");
    one.send("LEAVE");
    expect(one.fail("j", new Error("late"), key)).toEqual(dropped("stale-child"));
    expect(one.record.status).toBe("active");
  });

  test("an unhandled error of a living child does, and everything is stopped", () => {
    const one = new Subject(machine).start();
    one.fail("j", new RangeError("broke"));
    expect(one.record).toMatchObject({ status: "error", snapshot: { error: { message: "broke" }, children: {} } });
  });

  test("a result must be a done or error event of that child, and the child must exist", () => {
    const one = new Subject(machine).start();
    const { key } = one.child("j");
    const base = { kind: "settled", id: "s", childId: "j", childKey: key, toGenesis: GENESIS } as const;
    expect(one.try({ ...base, event: { type: "INC" } })).toEqual(dropped("reserved-event"));
    expect(one.try({ ...base, event: doneActorEvent("other", 1) })).toEqual(dropped("reserved-event"));
    expect(one.try({ ...base, childId: "ghost", event: doneActorEvent("ghost", 1) })).toEqual(dropped("stale-child"));
    expect(one.try({ ...base, childId: "__proto__", event: doneActorEvent("__proto__", 1) })).toEqual(
      dropped("stale-child"),
    );
    expect(one.try({ ...base, childKey: "forged", event: doneActorEvent("j", 1) })).toEqual(dropped("stale-child"));
  });

  test("a job keeps its input as long as it may have to run again", () => {
    const withInput = setup({ actors: { job } }).createMachine({ invoke: { src: "job", id: "j", input: { a: 1 } } });
    const one = new Subject(withInput).start();
    expect(one.child("j").input).toEqual({ a: 1 });
    one.settle("j", 1);
    expect(one.child("j")).toEqual({ kind: "job", src: "job", key: one.child("j").key, status: "done" });
  });
});

describe("starting and stopping in one macrostep", () => {
  const machine = setup({ actors: { kid, job } }).createMachine({
    initial: "a",
    on: {
      TWICE: { actions: [spawnChild("kid", { id: "k" }), spawnChild("kid", { id: "k" })] },
      FLEETING: { actions: [spawnChild("kid", { id: "f" }), sendTo("f", { type: "HI" }), stopChild("f")] },
      SWAP: { actions: [spawnChild("kid", { id: "s" }), stopChild("s"), spawnChild("kid", { id: "s" })] },
      NAMELESS: { actions: [spawnChild("kid"), spawnChild("kid")] },
      HOP: ".through",
      DROP: { actions: stopChild("k") },
    },
    states: {
      a: {},
      through: { invoke: { src: "kid", id: "passing" }, always: "b" },
      b: { invoke: { src: "kid", id: "staying" } },
    },
  });
  const start = (): Subject => new Subject(machine, { actors: { kid: {} } }).start();

  test("a living id spawned again stops the first child and starts the second; XState would leave the first running", () => {
    const one = start();
    one.send("TWICE");
    expect(one.kinds).toBe("start journal"); // the first of the two never started
    const first = one.child("k").key;
    one.send("TWICE");
    expect(one.kinds).toBe("start stop journal");
    expect(one.effectsOf("stop")[0]?.to).toBe(first);
    expect(one.child("k").key).not.toBe(first);
    expect(Object.keys(one.record.snapshot.children)).toEqual(["k"]);
  });

  test("what is spawned and stopped at once never starts, and what was sent to it goes nowhere", () => {
    const one = start();
    one.send("FLEETING");
    expect(one.kinds).toBe("journal");
    expect(one.record.snapshot.children).toEqual({});
    one.send("HOP");
    expect(one.effectsOf("start").map(({ childId }) => childId)).toEqual(["staying"]);
    expect(one.kinds).toBe("start journal");
  });

  test("stopped and spawned again in the same macrostep: one child, which starts", () => {
    const one = start();
    one.send("SWAP");
    expect(one.kinds).toBe("start journal");
    expect(one.child("s").status).toBe("active");
  });

  test("children without an id each get one of their own", () => {
    const one = start();
    one.send("NAMELESS");
    expect(Object.keys(one.record.snapshot.children)).toEqual(["x:2.0", "x:2.1"]);
    expect(new Set(one.effectsOf("start").map(({ to }) => to)).size).toBe(2);
  });

  test("a child that has settled is not stopped again", () => {
    const one = start();
    one.send("TWICE");
    one.settle("k", 1);
    one.send("DROP");
    expect(one.kinds).toBe("journal");
    expect(one.record.snapshot.children).toEqual({});
  });

  test("the key of a child is a function of parent, genesis, child id and revision", () => {
    const [one, other] = [start(), start()];
    one.send("TWICE", "a");
    other.send("TWICE", "b");
    expect(one.child("k").key).toBe(other.child("k").key);
  });
});

test("logic that is spawned as an object stays a stub in its parent: its code runs in its own record only", () => {
  const run = vi.fn<() => void>();
  const grandchild = createMachine({ id: "grandchild" });
  const family = setup({ actors: { grandchild } }).createMachine({
    context: ({ spawn }) => {
      run();
      return { ref: spawn("grandchild", { id: "g" }) };
    },
  });
  const machine = createMachine({
    context: {},
    on: { GO: { actions: assign(({ spawn }) => ({ ref: spawn(family, { id: "f" }) })) } },
  }).provide({ actors: { family, grandchild } });
  const one = new Subject(machine, { actors: { family: {}, grandchild: {} } }).start();
  one.send("GO");
  expect(one.effectsOf("start").map(({ childId }) => childId)).toEqual(["f"]);
  expect(Object.keys(one.record.snapshot.children)).toEqual(["f"]);
  expect(run).not.toHaveBeenCalled();
});

describe("volatile hosts", () => {
  const machine = setup({ types: { context: { got: [] as string[] } }, actors: { host } }).createMachine({
    initial: "on",
    context: { got: [] },
    states: {
      on: {
        invoke: { src: "host", id: "h", input: 5 },
        exit: sendTo("h", { type: "BYE" }),
        on: { SAY: { actions: sendTo("h", { type: "SAID" }) }, OFF: "off" },
      },
      off: {},
    },
    on: { HEARD: { actions: assign({ got: ({ context }) => [...context.got, "heard"] }) } },
  });

  test("are started, told and stopped by the node itself, in the order of XState", () => {
    const one = new Subject(machine).start();
    const childKey = one.child("h").key;
    expect(one.local).toEqual([{ kind: "startHost", childKey, childId: "h", src: "host", input: 5 }]);
    one.send("SAY");
    expect(one.local).toEqual([{ kind: "tellHost", childKey, event: { type: "SAID" } }]);
    one.send("OFF");
    expect(one.local).toEqual([
      { kind: "tellHost", childKey, event: { type: "BYE" } },
      { kind: "stopHost", childKey },
    ]);
    expect(one.kinds).toBe("journal");
  });

  test("F38: what a host says needs no counter; once it was stopped it is not heard any more", () => {
    const one = new Subject(machine).start();
    const said = {
      kind: "event",
      id: "x",
      event: { type: "HEARD" },
      fromHost: one.child("h").key,
      external: false,
    } as const;
    one.apply(said);
    one.apply(said);
    expect(one.record.snapshot.context).toEqual({ got: ["heard", "heard"] });
    expect(one.record.marks).toEqual({});
    expect(one.apply({ ...said, event: { type: "NOTHING" } }).kind).toBe("ignored");
    one.send("OFF");
    expect(one.apply(said)).toEqual(dropped("stale-child"));
  });
});

describe("synchronised children", () => {
  const machine = setup({ types: typesOf<{ last: unknown }>({}), actors: { kid, host } }).createMachine({
    context: { last: 0 },
    invoke: [
      { src: "kid", id: "k", onSnapshot: { actions: assign({ last: ({ event }) => event.snapshot.context }) } },
      { src: "kid", id: "plain" },
      { src: "host", id: "h", onSnapshot: { actions: assign({ last: "host" }) } },
    ],
  });
  const snapshotOf = (id: string, context: unknown) => ({
    type: `xstate.snapshot.${id}`,
    snapshot: { status: "active", context },
  });

  test("a snapshot is taken from the living child it is of, and from nobody else", () => {
    const one = new Subject(machine, { actors: { kid: {} } }).start();
    const from = { key: one.child("k").key, genesis: "g:2", n: 1 };
    expect(one.child("k").sync).toBe(true);
    one.hear(from, snapshotOf("k", 1));
    expect(one.record.snapshot.context).toEqual({ last: 1 });
    // Another child, for a sibling; and one without onSnapshot, for itself.
    const plain = { key: one.child("plain").key, genesis: "g:3", n: 1 };
    expect(one.hear(plain, snapshotOf("k", 2))).toEqual(dropped("reserved-event"));
    one.hear(plain, snapshotOf("plain", 2));
    expect(one.hear({ key: PARENT.key, genesis: "g:2", n: 1 }, snapshotOf("k", 2))).toEqual(dropped("reserved-event"));
    expect(one.record.snapshot.context).toEqual({ last: 1 });
  });

  test("a snapshot that arrives after the child settled counts as taken and is not shown to the machine", () => {
    const one = new Subject(machine, { actors: { kid: {} } }).start();
    const from = { key: one.child("k").key, genesis: "g:2", n: 1 };
    one.settle("k", undefined);
    expect(one.hear(from, snapshotOf("k", 1)).kind).toBe("stepped");
    expect(one.record.snapshot.context).toEqual({ last: 0 });
    expect(one.hear(from, snapshotOf("k", 1))).toEqual(dropped("duplicate"));
  });

  test("a host may report its own snapshot only", () => {
    const one = new Subject(machine, { actors: { kid: {} } }).start();
    const fromHost = one.child("h").key;
    const base = { kind: "event", id: "h", fromHost, external: false } as const;
    expect(one.try({ ...base, event: snapshotOf("k", 9) })).toEqual(dropped("reserved-event"));
    one.apply({ ...base, event: snapshotOf("h", 9) });
    expect(one.record.snapshot.context).toEqual({ last: "host" });
  });

  test("a synchronised child reports its state after every macrostep, as long as it is active", () => {
    const counter = setup({ types: { context: { n: 0 } } }).createMachine({
      context: { n: 0 },
      initial: "a",
      states: {
        a: { on: { INC: { actions: assign({ n: ({ context }) => context.n + 1 }) }, END: "z" } },
        z: { type: "final" },
      },
    });
    const one = new Subject(counter, { parent: { ...PARENT, sync: true } }).start();
    const reported = (): unknown[] => one.effectsOf("send").map(({ event }) => event);
    expect(reported()).toEqual([
      { type: "xstate.snapshot.kid", snapshot: { status: "active", value: "a", context: { n: 0 } } },
    ]);
    one.send("INC");
    expect(reported()).toMatchObject([{ snapshot: { context: { n: 1 } } }]);
    one.send("END");
    expect(one.kinds).toBe("settled journal");
  });
});

describe("systemId", () => {
  const machine = setup({ actors: { kid, host } }).createMachine({
    invoke: [
      { src: "kid", id: "k", systemId: "boss" },
      { src: "host", id: "h", systemId: "logger" },
    ],
    on: {
      TELL: { actions: sendTo(({ system }) => system.get("boss"), { type: "HI" }) },
      FIRE: { actions: stopChild("k") },
    },
  });
  const start = (options = {}): Subject => new Subject(machine, { actors: { kid: {} }, ...options }).start();

  test("names a living child, and nobody once it is gone", () => {
    const one = start();
    const { key } = one.child("k");
    expect(one.record.directory).toEqual({ boss: key, logger: one.child("h").key });
    one.send("TELL");
    expect(one.effectsOf("send")).toMatchObject([{ to: key, n: 1 }]);
    one.send("FIRE");
    expect(one.record.directory).toEqual({ logger: one.child("h").key });
    one.send("TELL");
    expect(one.kinds).toBe("log journal");
  });

  test("an actor that does not know it asks its parent", () => {
    const one = start({ parent: PARENT });
    one.send("FIRE");
    one.send("TELL");
    expect(one.effectsOf("send")).toMatchObject([
      { to: PARENT.key, event: { type: "xstate.relay", systemId: "boss", event: { type: "HI" } } },
    ]);
  });

  test("a parent passes on what a child asks for, to an actor or to a host, without showing it to its machine", () => {
    const one = start();
    const from = { key: one.child("k").key, genesis: "g:4" };
    const relay = (systemId: string) => ({ type: "xstate.relay", systemId, event: { type: "HI" } });
    one.hear({ ...from, n: 1 }, relay("boss"));
    expect(one.effectsOf("send")).toMatchObject([{ to: from.key, event: { type: "HI" } }]);
    one.hear({ ...from, n: 2 }, relay("logger"));
    expect(one.local).toEqual([{ kind: "tellHost", childKey: one.child("h").key, event: { type: "HI" } }]);
    one.hear({ ...from, n: 3 }, relay("ghost"));
    expect(one.kinds).toBe("log journal");
    one.hear({ ...from, n: 4 }, { type: "xstate.relay", systemId: "boss", event: { type: "xstate.stop" } });
    expect(one.kinds).toBe("log journal");
  });
});
