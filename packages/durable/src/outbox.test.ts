import {
  assign,
  emit,
  fromPromise,
  log,
  sendParent,
  sendTo,
  setup,
  spawnChild,
  stopChild,
  createMachine,
} from "xstate";
import { expect, test } from "vitest";
import { resolveAction, step } from "./index.ts";
import { deepFreeze } from "./testing/deep-freeze.ts";
import { roundTrip } from "./testing/round-trip.ts";
import { typesOf } from "./testing/scenario-types.ts";
import { GENESIS, KEY, PARENT, PERSON, Subject } from "./testing/subject.ts";

const kid = createMachine({ id: "kid" });
const busy = setup({
  types: typesOf<{ n: number }>({}),
  actors: { kid, job: fromPromise(async () => 1) },
  actions: { note: () => undefined },
}).createMachine({
  id: "busy",
  initial: "idle",
  context: { n: 0 },
  on: {
    GO: {
      actions: [
        emit({ type: "going" }),
        sendTo("first", { type: "HELLO" }),
        "note",
        assign({ n: ({ context }) => context.n + 1 }),
        log("gone", "progress"),
        stopChild("first"),
        spawnChild("kid", { id: "second", input: { a: 1 } }),
        spawnChild("job", { id: "job", input: 7 }),
      ],
    },
    ADD: { actions: [assign({ n: ({ context }) => context.n + 1 }), "note"] },
    DONE: ".over",
  },
  entry: spawnChild("kid", { id: "first" }),
  states: { idle: {}, over: { type: "final" } },
  output: ({ context }) => context.n,
});
const subject = (options = {}): Subject => new Subject(busy, { actors: { kid: {} }, ...options });

test("effects leave in the order: starts, everything else as XState ordered it, the journal entry last", () => {
  const one = subject().start();
  one.send("GO");
  expect(one.effects.map(({ id, kind }) => `${id} ${kind}`)).toEqual([
    "2#0 start",
    "2#1 emit",
    "2#2 send",
    "2#3 action",
    "2#4 log",
    "2#5 stop",
    "2#6 journal",
  ]);
  expect(one.local.map(({ kind }) => kind)).toEqual(["startJob"]);
});

test("an effect says who it is for, and a child gets its input and the principal of its parent", () => {
  const one = subject().start();
  const first = one.child("first").key;
  one.send("GO");
  const second = one.child("second").key;
  expect(one.effectsOf("start")).toEqual([
    {
      kind: "start",
      id: "2#0",
      to: second,
      childId: "second",
      sync: false,
      principal: PERSON,
      atMs: one.nowMs,
      input: { a: 1 },
    },
  ]);
  expect(one.effectsOf("send")).toEqual([{ kind: "send", id: "2#2", to: first, n: 1, event: { type: "HELLO" } }]);
  expect(one.effectsOf("stop")).toEqual([{ kind: "stop", id: "2#5", to: first }]);
  expect(one.effectsOf("log")).toEqual([{ kind: "log", id: "2#4", label: "progress", value: "gone" }]);
  expect(second).toMatch(/^d-0\.kid\.second-[a-z2-7]{26}$/);
});

test("the journal entry of a macrostep names what was applied, why, by whom, from where to where, and every other effect", () => {
  const one = subject().start();
  one.nowMs = 5000;
  one.send({ type: "DONE", because: "tired" }, "msg-7");
  expect(one.effectsOf("journal")).toEqual([
    {
      kind: "journal",
      id: "2#1",
      rev: 2,
      prevRev: 1,
      event: { type: "DONE", because: "tired" },
      cause: { kind: "event", id: "msg-7" },
      principal: PERSON,
      from: "idle",
      to: "over",
      status: "done",
      effects: ["2#0"],
      atMs: 5000,
    },
  ]);
});

test("the settled effect of a terminal record is kept, so that a duplicate start can be answered", () => {
  const one = subject({ parent: PARENT }).start();
  one.send("DONE");
  const settled = one.effectsOf("settled");
  expect(settled).toEqual([
    {
      kind: "settled",
      id: "2#1",
      to: PARENT.key,
      toGenesis: PARENT.genesis,
      childId: "kid",
      childKey: KEY,
      event: { type: "xstate.done.actor.kid", output: 0, actorId: "kid" },
    },
  ]);
  expect(one.record.settled).toEqual(settled[0]);
});

test("F4: entries that were not acknowledged survive the next steps in front of the new ones, unchanged and in order", () => {
  const one = subject().start();
  const first = one.record.outbox;
  const env = { nowMs: 0, scheme: { pools: { d: 1 }, shards: 1 } };
  one.apply({ kind: "event", id: "a", event: { type: "GO" }, external: true }, env); // everything of rev 1 is carried
  expect(one.record.outbox.slice(0, first.length)).toEqual(first);
  const second = one.record.outbox;

  one.apply(
    { kind: "event", id: "b", event: { type: "GO" }, external: true },
    { ...env, carriedOutbox: second.slice(1) },
  );
  expect(one.record.outbox.slice(0, second.length - 1)).toEqual(second.slice(1));
  expect(one.record.outbox.map(({ id }) => id).slice(second.length - 1)).toEqual(
    one.record.outbox.slice(second.length - 1).map((_, index) => `3#${index}`),
  );
});

test("an action that still waits when its context is replaced runs with the context of its own transition", () => {
  const seen: number[] = [];
  const machine = setup({
    types: { context: { n: 0 } },
    actions: { note: ({ context }) => void seen.push(context.n) },
  }).createMachine({
    context: { n: 1 },
    on: { ADD: { actions: [assign({ n: ({ context }) => context.n + 1 }), "note"] } },
  });
  for (const cold of [false, true]) {
    seen.length = 0;
    const one = new Subject(machine, { cold }).start();
    one.send("ADD");
    one.apply(
      { kind: "event", id: "x", event: { type: "ADD" }, external: true },
      { ...one.env, carriedOutbox: one.record.outbox },
    );
    const actions = one.effectsOf("action");
    expect(actions.map(({ id }) => id)).toEqual(["2#0", "3#0"]);
    for (const action of actions) resolveAction(one.compiled, one.record, action)();
    expect(seen).toEqual([2, 3]);
  }
});

test("stepping the same record twice gives the same result, hot or from bytes: nothing is left over from a failed commit", () => {
  const one = subject().start();
  one.send("ADD");
  const message = { kind: "event", id: "again", event: { type: "GO" }, external: true } as const;
  const results = [one.try(message), one.try(message), one.try(message)];
  const cold = step(one.compiled, deepFreeze(roundTrip(one.record)), message, one.env);
  for (const result of [...results, cold]) expect(roundTrip(result)).toEqual(roundTrip(results[0]));
});

test("a step changes nothing of the record and the message it was given", () => {
  const one = subject().start();
  const before = roundTrip(one.record);
  const message = deepFreeze({ kind: "event", id: "x", event: { type: "GO", list: [{}] }, external: true } as const);
  one.try(message);
  expect(roundTrip(one.record)).toEqual(before);
});

test("sends to another actor carry dense counters per link, and the genesis of the receiver where it is known", () => {
  const machine = createMachine({
    on: {
      UP: { actions: [sendParent({ type: "A" }), sendParent({ type: "B" })] },
      SELF: { actions: sendTo(({ self }) => self, { type: "ME" }) },
      ME: {},
    },
  });
  const one = new Subject(machine, { parent: PARENT }).start();
  one.send("UP");
  one.send("UP");
  expect(one.effectsOf("send").map(({ to, toGenesis, n }) => [to, toGenesis, n])).toEqual([
    [PARENT.key, PARENT.genesis, 3],
    [PARENT.key, PARENT.genesis, 4],
  ]);
  one.send("SELF");
  expect(one.effectsOf("send")).toMatchObject([{ to: KEY, toGenesis: GENESIS, n: 1 }]);
  expect(one.record.linksOut).toEqual({ [`${PARENT.key}^${PARENT.genesis}`]: 4, [`${KEY}^${GENESIS}`]: 1 });
});

test("F27: an actor that starts more children than one commit may fails, and starts none of them", () => {
  const machine = setup({ actors: { kid } }).createMachine({
    on: { FAN: { actions: Array.from({ length: 65 }, (_, index) => spawnChild("kid", { id: `k${index}` })) } },
  });
  const one = new Subject(machine, { actors: { kid: {} } }).start();
  one.send("FAN");
  expect(one.record.status).toBe("error");
  expect(one.kinds).toBe("journal");
  expect(one.record.snapshot.error).toMatchObject({ code: "HF-5202" });
});

test("what cannot be delivered is logged and never sent to the actor itself", () => {
  const machine = createMachine({
    on: {
      GHOST: { actions: sendTo(({ system }) => system.get("ghost"), { type: "BOO" }) },
      BOO: { actions: () => expect.unreachable() },
      ODD: {
        actions: sendTo(
          ({ self }) => self,
          () => ({ type: "" }),
        ),
      },
      RESERVED: { actions: sendTo(({ self }) => self, { type: "xstate.stop" }) },
    },
  });
  const one = new Subject(machine).start();
  for (const type of ["GHOST", "ODD", "RESERVED"]) {
    one.send(type);
    expect(one.kinds, type).toBe("log journal");
    expect(one.effectsOf("log")[0], type).toMatchObject({ label: "holdfast.refused" });
  }
});
