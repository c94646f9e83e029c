import {
  assign,
  createMachine,
  emit,
  fromPromise,
  fromTransition,
  raise,
  sendTo,
  setup,
  spawnChild,
  stopChild,
} from "xstate";
import { describe, expect, test } from "vitest";
import { Subject, GENESIS, PARENT } from "./testing/subject.ts";

const kid = createMachine({ id: "kid" });
const job = fromPromise(async () => 1);
const boom = (): never => {
  throw new RangeError("boom");
};

describe("F28: a start that fails is a failed actor, and its parent is told", () => {
  test.each([
    ["the context factory", createMachine({ context: boom })],
    ["an entry action's assign", createMachine({ context: {}, entry: assign(boom) })],
    ["a guard", createMachine({ initial: "a", states: { a: { always: { guard: boom, target: "b" } }, b: {} } })],
    ["an endless loop", createMachine({ initial: "a", states: { a: { always: "b" }, b: { always: "a" } } })],
    ["transition logic", fromTransition((state) => state, boom)],
  ])("%s throws", (_, logic) => {
    const one = new Subject(logic, { parent: PARENT }).start();
    expect(one.record).toMatchObject({ status: "error", rev: 1, timers: {} });
    expect(one.kinds).toBe("settled journal");
    expect(one.effectsOf("settled")).toMatchObject([
      { to: PARENT.key, toGenesis: PARENT.genesis, event: { type: "xstate.error.actor.kid", actorId: "kid" } },
    ]);
    expect(one.record.settled).toEqual(one.effectsOf("settled")[0]);
  });

  test("nothing that the failed start had decided leaves", () => {
    const machine = setup({ actors: { kid } }).createMachine({
      context: {},
      entry: [spawnChild("kid", { id: "k" }), emit({ type: "hi" }), raise({ type: "T" }, { delay: 5 }), assign(boom)],
    });
    const one = new Subject(machine, { actors: { kid: {} } }).start();
    expect(one.kinds).toBe("journal");
    expect(one.record).toMatchObject({ status: "error", timers: {}, snapshot: { children: {} } });
    expect(one.local).toEqual([]);
  });
});

describe("a throw in a transition", () => {
  const machine = setup({ actors: { kid, job }, types: { context: { n: 0 } } }).createMachine({
    initial: "a",
    context: { n: 0 },
    invoke: [
      { src: "kid", id: "k" },
      { src: "job", id: "j" },
    ],
    states: {
      a: {
        after: { 100: "b" },
        on: {
          GO: {
            target: "b",
            actions: [assign({ n: 1 }), emit({ type: "going" }), spawnChild("kid", { id: "x" }), assign(boom)],
          },
          GUARDED: { guard: boom, target: "b" },
        },
      },
      b: {},
    },
  });

  test.each(["GO", "GUARDED"])(
    "%s: state and context stay, effects are not executed, children and timers are stopped",
    (type) => {
      const one = new Subject(machine, { actors: { kid: {} }, parent: PARENT }).start();
      const [k, j] = [one.child("k").key, one.child("j").key];
      one.send(type);
      expect(one.record).toMatchObject({
        status: "error",
        timers: {},
        snapshot: { status: "error", value: "a", context: { n: 0 }, children: {} },
      });
      expect(one.kinds).toBe("stop settled journal");
      expect(one.effectsOf("stop")).toMatchObject([{ to: k }]);
      expect(one.local).toEqual([
        { kind: "stopJob", childKey: j },
        { kind: "cancel", timer: expect.stringContaining("xstate.after.100") },
      ]);
    },
  );

  test("a child spawned from inline logic is such a throw, and the message names the fix", () => {
    const inline = createMachine({
      on: {
        GO: {
          actions: spawnChild(
            fromPromise(async () => 2),
            { id: "x" },
          ),
        },
      },
    });
    const one = new Subject(inline).start();
    one.send("GO");
    expect(one.record.snapshot.error).toMatchObject({
      code: "HF-1003",
      message: expect.stringContaining("setup({ actors })"),
    });
  });

  test("a child source that nobody knows is such a throw", () => {
    const unknown = createMachine({
      context: {},
      on: { GO: { actions: assign(({ spawn }) => ({ x: spawn("nobody") })) } },
    });
    const one = new Subject(unknown).start();
    one.send("GO");
    expect(one.record).toMatchObject({ status: "error" });
  });

  test("a change of the context in place is caught as one, because the record is frozen", () => {
    const mutating = setup({ types: { context: { list: [1] } } }).createMachine({
      context: { list: [1] },
      on: { GO: { actions: assign(({ context }) => ({ list: (context.list.push(2), context.list) })) } },
    });
    for (const cold of [false, true]) {
      const one = new Subject(mutating, { cold }).start();
      one.send("GO");
      expect(one.record).toMatchObject({ status: "error", snapshot: { context: { list: [1] } } });
    }
  });
});

describe("F49: what a closing actor does with its children", () => {
  const machine = setup({ actors: { kept: kid, freed: kid, plain: kid, job } }).createMachine({
    id: "m",
    initial: "open",
    entry: [
      spawnChild("kept", { id: "w1" }),
      spawnChild("kept", { id: "w2" }),
      spawnChild("freed", { id: "d" }),
      spawnChild("plain", { id: "c" }),
      spawnChild("job", { id: "j" }),
    ],
    states: {
      open: {
        after: { 100: "z" },
        on: {
          END: "z",
          FAIL: { actions: raise({ type: "BAD" }) },
          BAD: { guard: boom, target: "z" },
          DROP: { actions: stopChild("w2") },
        },
      },
      z: { type: "final", entry: [spawnChild("freed", { id: "last" }), spawnChild("plain", { id: "never" })] },
    },
    output: () => "fine",
  });
  const actors = { kept: { closePolicy: "await" }, freed: { closePolicy: "detach" }, plain: {} } as const;
  const start = (): Subject => new Subject(machine, { actors, parent: PARENT }).start();
  const byKey = (subject: Subject, ...ids: readonly string[]): readonly string[] =>
    ids.map((id) => subject.child(id).key);

  test("`cancel` children are stopped, `detach` children are let go, `await` children keep the record closing", () => {
    const one = start();
    const [c, j] = byKey(one, "c", "j");
    one.send("END");
    expect(one.record).toMatchObject({ status: "closing", timers: {}, snapshot: { status: "done", output: "fine" } });
    expect(Object.keys(one.record.snapshot.children)).toEqual(["w1", "w2"]);
    expect(one.effectsOf("stop").map(({ to }) => to)).toEqual([c]);
    expect(one.effectsOf("start").map(({ childId }) => childId)).toEqual(["last"]);
    expect(one.local).toContainEqual({ kind: "stopJob", childKey: j });
    expect(one.effectsOf("settled")).toEqual([]);
  });

  test("when the last awaited child settles the actor is done, once, with the output it had", () => {
    const one = start();
    const [w1, w2] = byKey(one, "w1", "w2");
    one.send("END");
    one.settle("w1", 1);
    expect(one.record.status).toBe("closing");
    expect(one.settle("w1", 1, w1)).toEqual({ kind: "dropped", reason: "stale-child" });
    one.fail("w2", new Error("never mind"));
    expect(one.record).toMatchObject({ status: "done", snapshot: { status: "done", children: {} } });
    expect(one.kinds).toBe("settled journal");
    expect(one.effectsOf("settled")).toMatchObject([{ event: { type: "xstate.done.actor.kid", output: "fine" } }]);
    expect(one.settle("w2", 1, w2)).toEqual({ kind: "dropped", reason: "terminal" });
  });

  test("while closing nothing else is taken, except a stop", () => {
    const one = start();
    const [w1, w2] = byKey(one, "w1", "w2");
    one.send("END");
    expect(one.send("END")).toEqual({ kind: "dropped", reason: "terminal" });
    expect(one.hear({ key: w1 ?? "", genesis: "g:3", n: 1 }, "HI")).toEqual({ kind: "dropped", reason: "terminal" });
    one.stop();
    expect(one.record.status).toBe("stopped");
    expect(one.effectsOf("stop").map(({ to }) => to)).toEqual([w1, w2]);
    expect(one.effectsOf("settled")).toEqual([]);
  });

  test("a child that was stopped before, or has settled before, is not waited for", () => {
    const one = start();
    one.settle("w1", 1);
    one.send("DROP");
    one.send("END");
    expect(one.record.status).toBe("done");
  });

  test("a failing actor waits for nobody, and still lets `detach` children go", () => {
    const one = start();
    const stopped = byKey(one, "w1", "w2", "c");
    one.send("FAIL");
    expect(one.record.status).toBe("error");
    expect(one.effectsOf("stop").map(({ to }) => to)).toEqual(stopped);
  });
});

test("a stopped actor stops its children, cancels its timers and tells nobody", () => {
  const machine = setup({ actors: { kid, job } }).createMachine({
    initial: "a",
    exit: () => expect.unreachable(),
    invoke: [
      { src: "kid", id: "k" },
      { src: "job", id: "j" },
    ],
    states: { a: { after: { 100: "b" } }, b: {} },
  });
  const one = new Subject(machine, { actors: { kid: {} }, parent: PARENT }).start();
  const [k, j] = [one.child("k").key, one.child("j").key];
  one.stop();
  expect(one.record).toMatchObject({
    status: "stopped",
    timers: {},
    snapshot: { status: "stopped", value: "a", children: {} },
  });
  expect(one.kinds).toBe("stop journal");
  expect(one.effectsOf("stop")).toMatchObject([{ to: k }]);
  expect(one.effectsOf("journal")).toMatchObject([{ cause: { kind: "stop", id: "stop-1" }, status: "stopped" }]);
  expect(one.local).toContainEqual({ kind: "stopJob", childKey: j });
  expect(one.record.settled).toBeUndefined();
});

test("an actor without a parent ends without telling anybody; its output is in its record", () => {
  const machine = createMachine({ initial: "a", states: { a: { type: "final" } }, output: () => ({ ok: true }) });
  const one = new Subject(machine).start();
  expect(one.record).toMatchObject({ status: "done", snapshot: { output: { ok: true } } });
  expect(one.kinds).toBe("journal");
});

test("transition logic is an actor like any other", () => {
  const adder = fromTransition(
    (state: { sum: number }, event: { type: string; v?: number }, { self }) => {
      if (event.type === "FAIL") throw new Error("no");
      if (event.type === "ECHO") self.send({ type: "ADD", v: 1 });
      return event.type === "ADD" ? { sum: state.sum + (event.v ?? 0) } : state;
    },
    ({ input }: { input: { from: number } }) => ({ sum: input.from }),
  );
  for (const cold of [false, true]) {
    const one = new Subject(adder, { cold, parent: { ...PARENT, sync: true } }).start({ from: 2 });
    one.send({ type: "ADD", v: 3 });
    expect(one.record.snapshot).toMatchObject({ status: "active", value: {}, context: { sum: 5 } });
    expect(one.kinds).toBe("send journal");
    expect(one.send("NOTHING").kind).toBe("ignored");
    one.send("ECHO");
    expect(one.effectsOf("send")).toMatchObject([{ toGenesis: GENESIS, event: { type: "ADD" } }, { to: PARENT.key }]);
    one.send("FAIL");
    expect(one.record).toMatchObject({ status: "error", snapshot: { context: { sum: 5 }, error: { message: "no" } } });
  }
});

test("a self-addressed action that is only raised stays inside of the macrostep", () => {
  const machine = createMachine({
    initial: "a",
    states: { a: { on: { GO: { actions: raise({ type: "NEXT" }) }, NEXT: "b" } }, b: {} },
  });
  const one = new Subject(machine).start();
  one.send("GO");
  expect(one.record.snapshot.value).toBe("b");
  expect(one.kinds).toBe("journal");
  expect(sendTo).toBeTypeOf("function");
});
