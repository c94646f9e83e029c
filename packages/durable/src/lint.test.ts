import {
  assign,
  createMachine,
  enqueueActions,
  fromPromise,
  fromTransition,
  raise,
  setup,
  spawnChild,
  type AnyActorLogic,
} from "xstate";
import { describe, expect, test } from "vitest";
import { lint, type LintRule } from "./index.ts";

const promise = fromPromise(async () => 1);
const findings = (logic: AnyActorLogic, rule: LintRule): readonly string[] =>
  lint(logic).flatMap((finding) => (finding.rule === rule ? [finding.path] : []));

describe("lint names the place of", () => {
  test("inline-spawned-logic", () => {
    const machine = createMachine({
      id: "m",
      initial: "a",
      entry: spawnChild(promise),
      states: { a: { on: { GO: { actions: spawnChild(promise) } } } },
    });
    expect(findings(machine, "inline-spawned-logic")).toEqual(["m.entry[0]", "m.a.GO[0]"]);
  });

  test("inline-invoked-logic, unless it is registered", () => {
    expect(findings(createMachine({ id: "m", invoke: { src: promise } }), "inline-invoked-logic")).toEqual([
      "m.invoke[0]",
    ]);
    expect(
      findings(setup({ actors: { promise } }).createMachine({ invoke: { src: "promise" } }), "inline-invoked-logic"),
    ).toEqual([]);
  });

  test("function-in-context, as far as the context is static", () => {
    const context = { a: { b: [() => 1] }, s: Symbol("s"), fine: [1, { x: "y" }] };
    expect(findings(createMachine({ id: "m", context }), "function-in-context")).toEqual([
      "m.context.a.b.0",
      "m.context.s",
    ]);
    expect(findings(createMachine({ id: "m", context: () => context }), "function-in-context")).toEqual([]);
  });

  test("reenter-in-parallel-region", () => {
    const regions = (reenter: boolean) =>
      createMachine({
        id: "m",
        type: "parallel",
        states: {
          talk: { initial: "a", states: { a: { on: { AGAIN: { target: "a", reenter } } } } },
          tasks: { initial: "x", states: { x: {} } },
        },
      });
    expect(findings(regions(true), "reenter-in-parallel-region")).toEqual(["m.talk.a.AGAIN"]);
    expect(findings(regions(false), "reenter-in-parallel-region")).toEqual([]);
    const alone = createMachine({
      id: "m",
      initial: "a",
      states: { a: { on: { AGAIN: { target: "a", reenter: true } } } },
    });
    expect(findings(alone, "reenter-in-parallel-region")).toEqual([]);
  });

  test("root-transition-into-region", () => {
    const regions = {
      talk: { initial: "a", states: { a: { on: { NEXT: "b" } }, b: { id: "b" } } },
      tasks: { initial: "x", states: { x: {} } },
    };
    const flat = createMachine({ id: "m", type: "parallel", states: regions, on: { JUMP: ".talk.b" } });
    expect(findings(flat, "root-transition-into-region")).toEqual(["m.JUMP"]);
    const nested = createMachine({
      id: "m",
      initial: "p",
      states: { p: { type: "parallel", states: regions }, q: { on: { ENTER: "#b" } } },
      on: { JUMP: "#b" },
    });
    expect(findings(nested, "root-transition-into-region")).toEqual(["m.JUMP"]);
  });

  test("wait-without-wake: no expiry, nothing invoked, not tagged idle", () => {
    const machine = setup({ actors: { promise }, delays: { soon: 1 } }).createMachine({
      id: "m",
      initial: "waits",
      states: {
        waits: { on: { GO: "stuck" } },
        stuck: {},
        resting: { tags: "idle" },
        timed: { after: { soon: "stuck" } },
        invoking: { invoke: { src: "promise" } },
        raising: { entry: raise({ type: "T" }, { delay: 5 }) },
        spawning: { entry: spawnChild("promise") },
        covered: { after: { soon: "stuck" }, initial: "inner", states: { inner: {} } },
        over: { type: "final" },
      },
    });
    expect(findings(machine, "wait-without-wake")).toEqual(["m.waits", "m.stuck"]);
    const [waits, stuck] = lint(machine);
    expect(waits?.fix).toContain("expiry");
    expect(stuck?.message).toContain("no way out");
  });

  test("numeric-delay", () => {
    const machine = setup({ delays: { soon: 1 } }).createMachine({
      id: "m",
      initial: "a",
      states: { a: { after: { 100: "b", soon: "b" } }, b: { type: "final" } },
    });
    expect(findings(machine, "numeric-delay")).toEqual(["m.a.after.100"]);
  });

  test("enqueue-actions-unseen, because nobody can look inside", () => {
    const machine = createMachine({ id: "m", initial: "a", states: { a: { entry: enqueueActions(() => undefined) } } });
    expect(findings(machine, "enqueue-actions-unseen")).toEqual(["m.a.entry[0]"]);
  });

  test("action-without-implementation", () => {
    const machine = createMachine({ id: "m", entry: ["known", { type: "missing" }, assign({})] }).provide({
      actions: { known: () => undefined },
    });
    expect(findings(machine, "action-without-implementation")).toEqual(["m.entry[1]"]);
  });
});

test("a machine that follows the advice has no findings, and transition logic never has", () => {
  const machine = setup({ actors: { promise }, delays: { soon: 1 } }).createMachine({
    context: { n: 0 },
    initial: "idle",
    states: {
      idle: { tags: "idle", on: { GO: "busy" } },
      busy: { invoke: { src: "promise", id: "p", onDone: "over" }, after: { soon: "over" } },
      over: { type: "final" },
    },
  });
  expect(lint(machine)).toEqual([]);
  expect(lint(fromTransition((state) => state, {}))).toEqual([]);
});
