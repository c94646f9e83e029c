import { createMachine, fromCallback, fromPromise, setup } from "xstate";
import { describe, expect, test } from "vitest";
import { fits, reconcile, type StepResult } from "./index.ts";
import { Subject } from "./testing/subject.ts";

const promise = fromPromise(async () => 1);
const kid = createMachine({ id: "kid" });

const v1 = setup({ actors: { old: promise, kept: promise, moved: promise }, delays: { soon: 50 } }).createMachine({
  id: "m",
  version: "1",
  initial: "a",
  states: {
    a: {
      invoke: [
        { src: "old", id: "o" },
        { src: "kept", id: "k" },
        { src: "moved", id: "v" },
      ],
      after: { 100: "z", soon: "z" },
    },
    z: {},
  },
});
const v2 = setup({ actors: { fresh: promise, kept: promise, moved: kid }, delays: { soon: 70 } }).createMachine({
  id: "m",
  version: "2",
  initial: "a",
  context: { size: 7 },
  entry: () => expect.unreachable(),
  states: {
    a: {
      entry: () => expect.unreachable(),
      invoke: [
        { src: "fresh", id: "f", input: ({ context }) => ({ size: context }) },
        { src: "kept", id: "k" },
        { src: "moved", id: "v" },
      ],
      after: { 200: "z", soon: "z" },
    },
    z: {},
  },
});

/** The record of one version, under another one. */
function deployed(machine: typeof v1 | typeof v2, record: Subject["record"], options = {}): Subject {
  const subject = new Subject(machine, options);
  subject.record = record;
  return subject;
}
const repair = (subject: Subject): StepResult => {
  const result = reconcile(subject.compiled, subject.record, subject.env);
  if (result.kind === "stepped") subject.commit(result);
  return result;
};

describe("after a deploy a waiting actor relies on what the new version has", () => {
  test("obsolete timers go, missing ones are armed, children of gone sources stop, missing invokes start; entry actions do not run", () => {
    const before = new Subject(v1).start();
    const kept = before.child("k").key;
    const one = deployed(v2, before.record, { actors: { moved: {} } });
    one.nowMs = 3000;
    expect(repair(one).kind).toBe("stepped");
    expect(
      Object.fromEntries(Object.entries(one.record.timers).map(([timer, { dueAtMs }]) => [timer, dueAtMs])),
    ).toEqual({
      "xstate.after.soon.m.a": 1050, // still there: keeps its deadline
      "xstate.after.200.m.a": 3200,
    });
    expect(one.child("k").key).toBe(kept);
    expect(one.child("f")).toMatchObject({
      kind: "job",
      src: "fresh",
      input: { size: before.record.snapshot.context },
    });
    expect(one.child("v").kind).toBe("actor");
    expect(one.record.snapshot.children).not.toHaveProperty("o");
    expect(one.kinds).toBe("start journal");
    expect(one.effectsOf("journal")).toMatchObject([
      { cause: { kind: "reconcile", id: one.compiled.stamp.hash }, from: "a", to: "a" },
    ]);
    expect(one.local.map(({ kind }) => kind).toSorted()).toEqual([
      "cancel",
      "schedule",
      "startJob",
      "stopJob",
      "stopJob",
    ]);
    expect(one.record.machine.version).toBe("2");
  });

  test("the new timer works, although the delay is part of its name", () => {
    const one = deployed(v2, new Subject(v1).start().record, { actors: { moved: {} } });
    repair(one);
    one.fire("xstate.after.200.m.a");
    expect(one.record.snapshot.value).toBe("z");
  });

  test("a second time changes nothing", () => {
    const one = deployed(v2, new Subject(v1).start().record, { actors: { moved: {} } });
    repair(one);
    const { record } = one;
    expect(repair(one)).toEqual({ kind: "ignored", record });
  });

  test("without a deploy there is nothing to do; another build of the same structure is stored with its stamp", () => {
    const one = new Subject(v1).start();
    expect(repair(one).kind).toBe("ignored");
    one.record = { ...one.record, machine: { ...one.record.machine, version: "0" } };
    expect(repair(one).kind).toBe("stepped");
    expect(one.kinds).toBe("journal");
  });

  test("a terminal record is left alone", () => {
    const one = new Subject(v1).start();
    one.stop();
    expect(repair(deployed(v2, one.record, { actors: { moved: {} } })).kind).toBe("ignored");
  });

  test("an actor whose state is gone does not fit: it is parked with a fault that says what is needed, stepped or reconciled", () => {
    const gone = setup({}).createMachine({ id: "m", version: "3", initial: "b", states: { b: {} } });
    const record = new Subject(v1).start().record;
    const subject = new Subject(gone);
    subject.record = record;
    expect(fits(subject.compiled, record)).toBe(false);
    const fault = expect.objectContaining({ code: "HF-2005", facts: { key: record.key, wanted: "1", known: "3" } });
    expect(() => subject.send("X")).toThrow(fault);
    expect(() => repair(subject)).toThrow(fault);
    expect(subject.record).toBe(record);
  });

  test("one whose state became a region or a composite fits", () => {
    const record = new Subject(createMachine({ id: "m", initial: "a", states: { a: {} } })).start().record;
    const grown = new Subject(
      createMachine({
        id: "m",
        initial: "a",
        states: { a: { initial: "x", states: { x: { on: { GO: "y" } }, y: {} } } },
      }),
    );
    grown.record = record;
    expect(fits(grown.compiled, record)).toBe(true);
    grown.send("GO");
    expect(grown.record.snapshot.value).toEqual({ a: "y" });
  });

  test("a synchronised host that is missing is started as such", () => {
    const host = fromCallback(() => undefined);
    const record = new Subject(createMachine({ id: "m", initial: "a", states: { a: {} } })).start().record;
    const one = new Subject(
      setup({ actors: { host } }).createMachine({
        id: "m",
        initial: "a",
        states: { a: { invoke: { src: "host", id: "h", systemId: "log", onSnapshot: {} } } },
      }),
    );
    one.record = record;
    repair(one);
    expect(one.child("h")).toMatchObject({ kind: "host", sync: true, systemId: "log" });
    expect(one.record.directory).toEqual({ log: one.child("h").key });
  });
});
