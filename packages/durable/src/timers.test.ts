import { assign, cancel, createMachine, fromCallback, raise, sendParent, sendTo, setup } from "xstate";
import { describe, expect, test } from "vitest";
import { GENESIS, KEY, PARENT, Subject } from "./testing/subject.ts";

const DAY_MS = 86_400_000;
const dropped = (reason: string): unknown => ({ kind: "dropped", reason });

const counting = setup({ types: { context: { n: 0 } } }).createMachine({
  context: { n: 0 },
  on: {
    ARM: { actions: raise({ type: "T" }, { delay: 100, id: "t" }) },
    DISARM: { actions: cancel("t") },
    T: { actions: assign({ n: ({ context }) => context.n + 1 }) },
    LOOP: { actions: raise({ type: "AGAIN" }, { delay: 10, id: "loop" }) },
    AGAIN: { actions: raise({ type: "AGAIN" }, { delay: 10, id: "loop" }) },
    ANON: { actions: [raise({ type: "T" }, { delay: 1 }), raise({ type: "T" }, { delay: 2 })] },
    NEVER: { actions: raise({ type: "T" }, { delay: Infinity }) },
    SOON: { actions: raise({ type: "T" }, { delay: -5, id: "soon" }) },
  },
});

describe("a timer is data with the deadline it was armed with", () => {
  test("armed, it is stored and the node is told; fired, it is gone before the machine sees it", () => {
    const one = new Subject(counting).start();
    one.send("ARM");
    expect(one.record.timers).toEqual({
      t: { gen: "2.0", dueAtMs: 1100, to: KEY, toGenesis: GENESIS, event: { type: "T" } },
    });
    expect(one.local).toEqual([{ kind: "schedule", timer: "t", gen: "2.0", dueAtMs: 1100 }]);
    one.fire("t");
    expect(one.record.snapshot.context).toEqual({ n: 1 });
    expect(one.record.timers).toEqual({});
    expect(one.effectsOf("journal")).toMatchObject([{ event: { type: "T" }, cause: { kind: "timer", id: "t/2.0" } }]);
  });

  test("a second firing of the same generation is stale: nothing happens twice", () => {
    const one = new Subject(counting).start();
    one.send("ARM");
    const { gen } = one.record.timers["t"] ?? { gen: "" };
    one.fire("t", gen);
    expect(one.fire("t", gen)).toEqual(dropped("stale-timer"));
    expect(one.record.snapshot.context).toEqual({ n: 1 });
  });

  test("the same id again replaces: the old generation is stale, the new deadline counts", () => {
    const one = new Subject(counting).start();
    one.send("ARM");
    one.nowMs = 1050;
    one.send("ARM");
    expect(one.record.timers["t"]).toMatchObject({ gen: "3.0", dueAtMs: 1150 });
    expect(one.local).toEqual([{ kind: "schedule", timer: "t", gen: "3.0", dueAtMs: 1150 }]);
    expect(one.fire("t", "2.0")).toEqual(dropped("stale-timer"));
    one.fire("t", "3.0");
    expect(one.record.snapshot.context).toEqual({ n: 1 });
  });

  test("a timer that arms itself again has a new generation, so the firing that led to it cannot be repeated", () => {
    const one = new Subject(counting).start();
    one.send("LOOP");
    one.fire("loop");
    expect(one.record.timers["loop"]?.gen).toBe("3.0");
    expect(one.fire("loop", "2.0")).toEqual(dropped("stale-timer"));
  });

  test("cancelled, it is gone; cancelling what is not there does nothing", () => {
    const one = new Subject(counting).start();
    one.send("ARM");
    one.send("DISARM");
    expect(one.record.timers).toEqual({});
    expect(one.local).toEqual([{ kind: "cancel", timer: "t" }]);
    expect(one.fire("t", "2.0")).toEqual(dropped("stale-timer"));
    one.send("DISARM");
    expect(one.local).toEqual([]);
  });

  test("timers without an id get names that a repeated step gives again", () => {
    const one = new Subject(counting).start();
    one.send("ANON");
    expect(Object.keys(one.record.timers)).toEqual(["t2.0", "t2.1"]);
  });

  test("unknown timers and names of the prototype are stale", () => {
    const one = new Subject(counting).start();
    for (const timer of ["nothing", "constructor", "__proto__"])
      expect(one.fire(timer, "1.0")).toEqual(dropped("stale-timer"));
  });

  test("30 days do not overflow, a negative delay is due at once, an infinite one is an error of the machine", () => {
    const machine = setup({ delays: { month: 30 * DAY_MS } }).createMachine({
      initial: "a",
      states: { a: { after: { month: "b" } }, b: {} },
    });
    const patient = new Subject(machine).start();
    expect(Object.values(patient.record.timers)).toMatchObject([{ dueAtMs: 1000 + 30 * DAY_MS }]);
    const one = new Subject(counting).start();
    one.send("SOON");
    expect(one.record.timers["soon"]?.dueAtMs).toBe(1000);
    one.send("NEVER");
    expect(one.record.snapshot.error).toMatchObject({ message: expect.stringContaining("finite delay") });
  });
});

describe("timers of a state", () => {
  const machine = setup({ delays: { patience: 100 } }).createMachine({
    id: "m",
    initial: "a",
    states: {
      a: { after: { patience: "b" }, on: { AGAIN: { target: "a", reenter: true }, LEAVE: "b", END: "z" } },
      b: {},
      z: { type: "final" },
    },
  });
  const TIMER = "xstate.after.patience.m.a";

  test("reentering the state arms them anew; the old generation is stale", () => {
    const one = new Subject(machine).start();
    const old = one.record.timers[TIMER]?.gen;
    one.nowMs = 1060;
    one.send("AGAIN");
    expect(one.record.timers[TIMER]?.dueAtMs).toBe(1160);
    expect(one.fire(TIMER, old)).toEqual(dropped("stale-timer"));
    expect(one.record.snapshot.value).toBe("a");
    one.fire(TIMER);
    expect(one.record.snapshot.value).toBe("b");
  });

  test("leaving the state and ending cancel them", () => {
    const one = new Subject(machine).start();
    one.send("LEAVE");
    expect(one.local).toEqual([{ kind: "cancel", timer: TIMER }]);
    const other = new Subject(machine).start();
    other.send("END");
    expect(other.local).toEqual([{ kind: "cancel", timer: TIMER }]);
    expect(other.record.timers).toEqual({});
  });

  test("a delayed raise that no state cancels goes with the actor", () => {
    const one = new Subject(
      createMachine({
        initial: "a",
        entry: raise({ type: "LATE" }, { delay: 5000, id: "late" }),
        states: { a: { on: { END: "z" } }, z: { type: "final" } },
      }),
    ).start();
    one.send("END");
    expect(one.record.timers).toEqual({});
    expect(one.local).toEqual([{ kind: "cancel", timer: "late" }]);
  });
});

describe("delayed sends to others", () => {
  const kid = createMachine({});
  const machine = setup({ actors: { kid, host: fromCallback(() => undefined) } }).createMachine({
    invoke: [
      { src: "kid", id: "k" },
      { src: "host", id: "h", systemId: "logger" },
    ],
    on: {
      PARENT: { actions: sendParent({ type: "LATE" }, { delay: 10, id: "p" }) },
      KID: { actions: sendTo("k", { type: "LATE" }, { delay: 10, id: "c" }) },
      HOST: { actions: sendTo("h", { type: "LATE" }, { delay: 10, id: "v" }) },
      SYSTEM: { actions: sendTo(({ system }) => system.get("ghost"), { type: "LATE" }, { delay: 10, id: "s" }) },
      LATE: { actions: () => expect.unreachable() },
    },
  });
  const start = (): Subject => new Subject(machine, { actors: { kid: {} }, parent: PARENT }).start();

  test("become sends when the timer fires, with the counter of that moment", () => {
    const one = start();
    one.send("PARENT");
    expect(one.record.timers["p"]).toMatchObject({ to: PARENT.key, toGenesis: PARENT.genesis });
    expect(one.kinds).toBe("journal");
    one.fire("p");
    expect(one.effectsOf("send")).toMatchObject([
      { to: PARENT.key, toGenesis: PARENT.genesis, n: 1, event: { type: "LATE" } },
    ]);
    expect(one.record.timers).toEqual({});
    one.send("KID");
    one.fire("c");
    expect(one.effectsOf("send")).toMatchObject([{ to: one.child("k").key, n: 1, event: { type: "LATE" } }]);
  });

  test("to a host or a systemId wait in the record like any other", () => {
    const one = start();
    one.send("HOST");
    expect(one.record.timers["v"]?.to).toBe(KEY);
    one.fire("v");
    expect(one.local).toEqual([{ kind: "tellHost", childKey: one.child("h").key, event: { type: "LATE" } }]);
    one.send("SYSTEM");
    one.fire("s");
    expect(one.effectsOf("send")).toMatchObject([
      { to: PARENT.key, event: { type: "xstate.relay", systemId: "ghost" } },
    ]);
  });
});
