import {
  assign,
  createMachine,
  fromCallback,
  fromObservable,
  fromPromise,
  fromTransition,
  setup,
  spawnChild,
  type AnyActorLogic,
} from "xstate";
import { RuntimeFault } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { compile, type CompileOptions } from "./index.ts";
import { Subject } from "./testing/subject.ts";

const kid = createMachine({ id: "kid" });
const reducer = fromTransition((state) => state, {});
const promise = fromPromise(async () => 1);
const callback = fromCallback(() => undefined);
const observable = fromObservable(() => ({ subscribe: () => ({ unsubscribe: () => undefined }) }));
const OPTIONS: CompileOptions = { type: "m", pool: "d" };

function refusal(logic: AnyActorLogic, options: Partial<CompileOptions> = {}): RuntimeFault {
  try {
    compile(logic, { ...OPTIONS, ...options });
  } catch (error) {
    if (error instanceof RuntimeFault) return error;
    throw error;
  }
  throw new Error("it compiled");
}

describe("where a child source runs", () => {
  test("actors are told by the caller, promises are jobs, callbacks and observables are volatile hosts", () => {
    const machine = setup({ actors: { kid, reducer, promise, callback, observable } }).createMachine({});
    const childActor = (src: string) =>
      src === "kid" || src === "reducer" ? { type: src, pool: "gpu", closePolicy: "await" as const } : undefined;
    const { children } = compile(machine, { ...OPTIONS, childActor });
    expect(Object.fromEntries([...children].map(([src, { kind }]) => [src, kind]))).toEqual({
      kid: "actor",
      reducer: "actor",
      promise: "job",
      callback: "host",
      observable: "host",
    });
    expect(children.get("kid")).toEqual({ kind: "actor", logic: kid, type: "kid", pool: "gpu", closePolicy: "await" });
    expect(children.get("promise")?.logic).toBe(promise);
  });

  test("logic is told apart without running any of it", () => {
    const untouched = fromPromise(() => expect.unreachable());
    const machine = setup({ actors: { untouched } }).createMachine({ invoke: { src: "untouched" } });
    expect(compile(machine, OPTIONS).children.get("untouched")?.kind).toBe("job");
  });

  test("a name with an actor type needs no logic here: it runs on another node", () => {
    const machine = createMachine({ invoke: { src: "remote", id: "r" } });
    const one = new Subject(machine, { actors: { remote: { pool: "gpu" } } }).start();
    expect(one.effectsOf("start")).toMatchObject([{ childId: "r", to: expect.stringMatching(/^gpu-0\.remote\.r-/) }]);
  });

  test("a pool that the namespace does not have is no failure of the actor: nothing is stepped", () => {
    for (const entry of [spawnChild("remote", { id: "r" }), []]) {
      const machine = createMachine({ entry, on: { GO: { actions: spawnChild("remote", { id: "late" }) } } });
      const one = new Subject(machine, { actors: { remote: { pool: "absent" } } });
      expect(() => one.start().send("GO")).toThrow(expect.objectContaining({ code: "HF-1002" }));
    }
  });

  test.each([
    ["a machine", setup({ actors: { kid } }).createMachine({}), "kid"],
    ["transition logic", setup({ actors: { reducer } }).createMachine({}), "reducer"],
    ["a name without logic in an invoke", createMachine({ invoke: { src: "ghost" } }), "ghost"],
    ["a name without logic in an entry action", createMachine({ entry: spawnChild("ghost") }), "ghost"],
    [
      "a name without logic deep inside",
      createMachine({ initial: "a", states: { a: { on: { X: { actions: spawnChild("ghost") } } } } }),
      "ghost",
    ],
    ["an inline machine", createMachine({ id: "m", invoke: { src: kid, id: "k" } }), "inline:m.invoke[k]"],
  ])("HF-1003: %s without an actor type is refused, by name and with the fix", (_, machine, src) => {
    const fault = refusal(machine);
    expect(fault.code).toBe("HF-1003");
    expect(fault.facts["src"]).toBe(src);
    expect(fault.message).toContain("childActor(");
  });

  test("HF-1003: logic that runs by itself is no actor; a bad type, a bad pool and an endless id are refused", () => {
    expect(refusal(promise).message).toContain("Invoke it from a machine");
    expect(refusal(kid, { type: "no good" }).code).toBe("HF-1003");
    expect(refusal(kid, { pool: "WRONG" }).code).toBe("HF-1003");
    expect(refusal(createMachine({ id: "m", initial: "a", states: { a: { id: "x".repeat(201) } } })).message).toContain(
      "200",
    );
  });
});

describe("names of what has none", () => {
  const note = (): void => undefined;

  test("inline actions and inline invoked logic are named by their place", () => {
    const machine = createMachine({
      id: "m",
      initial: "a",
      entry: note,
      states: {
        a: {
          entry: [note, "named"],
          exit: note,
          invoke: { src: fromPromise(async () => 1), id: "p", onDone: { actions: note } },
          on: { GO: [{ guard: () => false }, { target: "b", actions: [note, note] }] },
          after: { 10: { actions: note } },
          always: { guard: () => false, actions: note },
        },
        b: { initial: { target: "c", actions: note }, states: { c: {} }, onDone: { actions: note } },
      },
    });
    const { actions, children } = compile(machine, OPTIONS);
    expect([...actions.keys()]).toEqual([
      "inline:m.entry[0]",
      "inline:m.a.entry[0]",
      "inline:m.a.exit[0]",
      "inline:m.a.on.GO#1[0]",
      "inline:m.a.on.GO#1[1]",
      "inline:m.a.after.10#0[0]",
      "inline:m.a.always#0[0]",
      "inline:m.a.invoke[0].onDone#0[0]",
      "inline:m.b.onDone#0[0]",
      "inline:m.b.initial[0]",
    ]);
    expect([...children.keys()]).toEqual(["inline:m.a.invoke[p]"]);
  });

  test("registered logic that is passed as an object keeps its name", () => {
    const machine = createMachine({
      context: {},
      on: { GO: { actions: assign(({ spawn }) => ({ x: spawn(promise, { id: "j" }) })) } },
    }).provide({ actors: { job: promise } });
    const one = new Subject(machine).start();
    one.send("GO");
    expect(one.child("j")).toMatchObject({ kind: "job", src: "job", status: "active" });
  });
});

describe("F51: the stamp of a machine", () => {
  const base = () => ({
    id: "m",
    initial: "a",
    context: {},
    states: {
      a: {
        entry: "note",
        on: { GO: { target: "b", guard: "may", actions: assign(() => ({})) } },
        after: { soon: "b" },
      },
      b: { invoke: { src: "job", id: "j" } },
    },
  });
  const hashOf = (config: object): string =>
    compile(
      setup({
        actors: { job: promise },
        guards: { may: () => true },
        actions: { note: () => undefined },
      }).createMachine(config),
      OPTIONS,
    ).stamp.hash;

  test("is the same for another build: functions and the order of keys do not count", () => {
    const { states, ...rest } = base();
    const { a, b } = states;
    const inline = {
      ...a,
      on: {
        GO: {
          ...a.on.GO,
          actions: assign(function another() {
            return { x: 1 };
          }),
        },
      },
    };
    expect(hashOf({ states: { a: inline, b }, ...rest })).toBe(hashOf(base()));
    expect(hashOf(base())).toMatch(/^[0-9a-f]{64}$/);
  });

  test.each([
    ["a state more", { states: { ...base().states, c: {} } }],
    ["another initial state", { initial: "b" }],
    [
      "another target",
      { states: { ...base().states, a: { ...base().states.a, on: { GO: { target: "a", guard: "may" } } } } },
    ],
    [
      "another guard",
      { states: { ...base().states, a: { ...base().states.a, on: { GO: { target: "b", guard: "other" } } } } },
    ],
    ["another action", { states: { ...base().states, a: { ...base().states.a, entry: "other" } } }],
    ["another delay", { states: { ...base().states, a: { ...base().states.a, after: { late: "b" } } } }],
    ["another child source", { states: { ...base().states, b: { invoke: { src: "job", id: "other" } } } }],
    ["another tag", { states: { ...base().states, b: { ...base().states.b, tags: ["idle"] } } }],
  ])("changes with %s", (_, change) => {
    expect(hashOf({ ...base(), ...change })).not.toBe(hashOf(base()));
  });

  test("carries id and version, and goes into the record", () => {
    const versioned = createMachine({ id: "m", version: "3", initial: "a", states: { a: {} } });
    expect(compile(versioned, OPTIONS).stamp).toMatchObject({ id: "m", version: "3" });
    expect(compile(kid, OPTIONS).stamp.version).toBe("0");
    const one = new Subject(versioned).start();
    expect(one.record.machine).toEqual(one.compiled.stamp);
  });
});

test("an `always` loop ends in an error, unless the machine says how long it may take", () => {
  const loop = (options: object) =>
    setup({ types: { context: { n: 0 } } }).createMachine({
      context: { n: 0 },
      initial: "a",
      ...options,
      states: {
        a: {
          always: { guard: ({ context }) => context.n < 1500, actions: assign({ n: ({ context }) => context.n + 1 }) },
        },
      },
    });
  expect(new Subject(loop({})).start().record.status).toBe("error");
  expect(new Subject(loop({ options: { maxIterations: 5000 } })).start().record).toMatchObject({
    status: "active",
    snapshot: { context: { n: 1500 } },
  });
});

test("compiling does not change the machine, and two compilations share nothing", () => {
  const machine = setup({ actors: { promise } }).createMachine({
    id: "m",
    entry: () => undefined,
    invoke: { src: "promise", id: "p" },
  });
  const before = JSON.stringify(machine.config);
  const [one, other] = [compile(machine, OPTIONS), compile(machine, OPTIONS)];
  expect(JSON.stringify(machine.config)).toBe(before);
  expect(machine.implementations.actors).toEqual({ promise });
  expect(one.live).not.toBe(other.live);
});
