import { createMachine, fromCallback, fromPromise, setup, spawnChild } from "xstate";
import { describe, expect, test } from "vitest";
import { expectedWake, isIdle, localEffectsOf, needsWork, tagsOf, waitsForOthers } from "./index.ts";
import { PARENT, Subject } from "./testing/subject.ts";

const kid = createMachine({ id: "kid" });
const machine = setup({
  actors: { kid, job: fromPromise(async () => 1), host: fromCallback(() => undefined) },
  delays: { soon: 100 },
}).createMachine({
  id: "m",
  initial: "resting",
  states: {
    resting: {
      tags: ["idle", "calm"],
      on: { WAIT: "waiting", TIME: "timed", CHILD: "delegating", HOST: "hosting", JOB: "working", END: "over" },
    },
    waiting: { on: { REST: "resting" } },
    timed: { after: { soon: "resting" } },
    delegating: { invoke: { src: "kid", id: "k" } },
    working: { invoke: { src: "job", id: "j", input: { a: 1 } } },
    hosting: { invoke: { src: "host", id: "h" } },
    over: { type: "final" },
  },
});
/** In a state, with everything that was to be sent acknowledged. */
function inState(event?: string): Subject {
  const one = new Subject(machine, { actors: { kid: {} }, parent: PARENT }).start();
  if (event !== undefined) one.send(event);
  one.record = { ...one.record, outbox: [] };
  return one;
}

describe("F7: a record needs work", () => {
  test.each(["TIME", "CHILD", "JOB", "HOST"])("in a state that waits for something of its own: %s", (event) => {
    expect(needsWork(inState(event).record)).toBe(true);
  });

  test("not while it sleeps and only waits for messages, idle or not", () => {
    expect(needsWork(inState().record)).toBe(false);
    expect(needsWork(inState("WAIT").record)).toBe(false);
  });

  test("whatever its status, while something of it was not sent: also when it is final", () => {
    const one = new Subject(machine, { actors: { kid: {} }, parent: PARENT }).start();
    expect(needsWork(one.record)).toBe(true);
    one.send("END");
    expect(one.record.status).toBe("done");
    expect(needsWork(one.record)).toBe(true);
    expect(needsWork({ ...one.record, outbox: [] })).toBe(false);
  });

  test("while it closes over a child that has not settled", () => {
    const awaiting = setup({ actors: { kid } }).createMachine({
      initial: "a",
      entry: spawnChild("kid", { id: "k" }),
      states: { a: { type: "final" } },
    });
    const one = new Subject(awaiting, { actors: { kid: { closePolicy: "await" } } });
    one.start(); // its child starts in the very macrostep that ends it
    expect(one.record.status).toBe("closing");
    expect(needsWork({ ...one.record, outbox: [] })).toBe(true);
    expect(expectedWake(one.compiled, { ...one.record, outbox: [] })).toMatchObject([{ kind: "child", childId: "k" }]);
  });
});

describe("what a takeover has to do is derived from the record", () => {
  test("timers with their deadline, jobs and hosts with their input; nothing for actors", () => {
    const timed = inState("TIME");
    const [timer, entry] = Object.entries(timed.record.timers)[0] ?? [];
    expect(localEffectsOf(timed.record)).toEqual([{ kind: "schedule", timer, gen: entry?.gen, dueAtMs: 1100 }]);
    const working = inState("JOB");
    expect(localEffectsOf(working.record)).toEqual([
      { kind: "startJob", childKey: working.child("j").key, childId: "j", src: "job", input: { a: 1 } },
    ]);
    const hosting = inState("HOST");
    expect(localEffectsOf(hosting.record)).toEqual([
      { kind: "startHost", childKey: hosting.child("h").key, childId: "h", src: "host", input: undefined },
    ]);
    expect(localEffectsOf(inState("CHILD").record)).toEqual([]);
  });

  test("it is what the steps themselves had asked for", () => {
    const one = new Subject(machine, { actors: { kid: {} } }).start();
    one.send("JOB");
    expect(localEffectsOf(one.record)).toEqual(one.local);
  });

  test("nothing for what has settled, and nothing of a terminal record", () => {
    const one = inState("JOB");
    one.settle("j", 1);
    expect(localEffectsOf(one.record)).toEqual([]);
    const stopped = inState("TIME");
    stopped.stop();
    expect(localEffectsOf(stopped.record)).toEqual([]);
  });
});

describe("I9: what is expected to wake an actor", () => {
  test("its counterpart: a timer, a child, an effect on the way, or a rest that its author declared", () => {
    const of = (subject: Subject) => expectedWake(subject.compiled, subject.record).map(({ kind }) => kind);
    expect(of(inState())).toEqual(["rest"]);
    expect(of(inState("TIME"))).toEqual(["timer"]);
    expect(of(inState("CHILD"))).toEqual(["child"]);
    expect(of(inState("JOB"))).toEqual(["child"]);
    expect(of(inState("END"))).toEqual(["rest"]);
    const unsent = new Subject(machine, { actors: { kid: {} } }).start();
    unsent.send("WAIT");
    expect(of(unsent)).toEqual(["outbox"]);
  });

  test("nothing: the actor waits for a message that nobody is known to send", () => {
    const one = inState("WAIT");
    expect(expectedWake(one.compiled, one.record)).toEqual([]);
    expect(isIdle(one.compiled, one.record)).toBe(false);
  });

  test("without work of its own: a child at rest, and who waits for a message that its author did not declare", () => {
    const of = ({ compiled, record }: Subject): boolean => {
      const root = { ...record };
      delete root.parent;
      return waitsForOthers(compiled, root);
    };
    expect(of(inState())).toBe(false);
    expect(of(inState("WAIT"))).toBe(true);
    expect(of(inState("END"))).toBe(false);
    const { compiled, record } = inState();
    const parent = { key: "d-0.boss.b", genesis: "g1:1", childId: "kid", sync: false };
    expect(waitsForOthers(compiled, { ...record, parent })).toBe(true);
    expect(waitsForOthers(compiled, { ...record, parent, status: "done" })).toBe(false);
  });

  test("idle is a tag of an active state", () => {
    const one = inState();
    expect(isIdle(one.compiled, one.record)).toBe(true);
    expect([...tagsOf(one.compiled, one.record)]).toEqual(["idle", "calm"]);
    expect(isIdle(one.compiled, { ...one.record, status: "done" })).toBe(false);
    const gone = new Subject(createMachine({ initial: "x", states: { x: {} } }));
    expect(isIdle(gone.compiled, one.record)).toBe(false);
  });
});
