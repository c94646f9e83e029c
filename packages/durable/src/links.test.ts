import { MAX_FOREIGN_LINKS } from "@holdfast/protocol";
import { assign, createMachine, enqueueActions, sendTo, setup, spawnChild, stopChild, type AnyActorRef } from "xstate";
import { describe, expect, test } from "vitest";
import { ActorAddress } from "./index.ts";
import { CLOSED_LINKS_REMEMBERED } from "./links.ts";
import { typesOf } from "./testing/scenario-types.ts";
import { KEY, Subject } from "./testing/subject.ts";

const kid = createMachine({ id: "kid" });
const hub = setup({
  types: typesOf<{ heard: string[] }>({}),
  actors: { kid },
}).createMachine({
  id: "hub",
  initial: "open",
  context: { heard: [] },
  states: {
    open: {
      on: {
        TELL: { actions: sendTo(({ event }) => event["to"], { type: "HELLO" }) },
        SPAWN: { actions: spawnChild("kid", { id: "k" }) },
        DROP: { actions: stopChild("k") },
        CLOSE: "closed",
        "*": { actions: assign({ heard: ({ context, event }) => [...context.heard, event.type] }) },
      },
    },
    closed: { type: "final" },
  },
});
const start = (options = {}): Subject => new Subject(hub, { actors: { kid: {} }, ...options }).start();
const heard = (subject: Subject): unknown => subject.record.snapshot.context;
const stranger = (n: number, key = "d-0.other.o", genesis = "g:5") => ({ key, genesis, n });

describe("F3: messages on a link are applied densely and once", () => {
  test("in order; a repeated one is a duplicate; one too far ahead is a gap that changes nothing", () => {
    const one = start();
    expect(one.hear(stranger(1), "A").kind).toBe("stepped");
    const { record } = one;
    expect(one.hear(stranger(3), "C")).toEqual({ kind: "dropped", reason: "gap", gap: { expected: 2, got: 3 } });
    expect(one.record).toBe(record);
    expect(one.hear(stranger(2), "B").kind).toBe("stepped");
    expect(one.hear(stranger(3), "C").kind).toBe("stepped");
    for (const n of [1, 2, 3]) expect(one.hear(stranger(n), "X")).toEqual({ kind: "dropped", reason: "duplicate" });
    expect(heard(one)).toEqual({ heard: ["A", "B", "C"] });
  });

  test("the first message of an unknown sender must be its first", () => {
    const one = start();
    expect(one.hear(stranger(2), "B")).toEqual({ kind: "dropped", reason: "gap", gap: { expected: 1, got: 2 } });
  });

  test("F13: another genesis of the same sender is another link", () => {
    const one = start();
    one.hear(stranger(1), "A");
    expect(one.hear(stranger(1, "d-0.other.o", "g:6"), "B").kind).toBe("stepped");
  });

  test("links do not disturb each other", () => {
    const one = start();
    one.hear(stranger(1, "d-0.other.p"), "P1");
    one.hear(stranger(1, "d-0.other.q"), "Q1");
    one.hear(stranger(2, "d-0.other.p"), "P2");
    expect(heard(one)).toEqual({ heard: ["P1", "Q1", "P2"] });
  });
});

describe("F15: a record knows a bounded number of senders", () => {
  test(`${MAX_FOREIGN_LINKS} strangers, not one more; those that are known go on`, () => {
    const one = start();
    for (let index = 0; index < MAX_FOREIGN_LINKS; index += 1) one.hear(stranger(1, `d-0.other.s${index}`), "HI");
    expect(one.hear(stranger(1, "d-0.other.late"), "HI")).toEqual({ kind: "dropped", reason: "too-many-links" });
    expect(one.hear(stranger(2, "d-0.other.s0"), "AGAIN").kind).toBe("stepped");
  });

  test("a child is not a stranger: its counter is in its entry", () => {
    const one = start({ limits: { foreignLinks: 0 } });
    one.send("SPAWN");
    const { key } = one.child("k");
    expect(one.hear({ key, genesis: "g:2", n: 1 }, "UP").kind).toBe("stepped");
    expect(one.child("k").mark).toBe(1);
    expect(one.record.marks).toEqual({});
    expect(one.hear({ key, genesis: "g:2", n: 1 }, "UP")).toEqual({ kind: "dropped", reason: "duplicate" });
    expect(one.hear(stranger(1), "HI")).toEqual({ kind: "dropped", reason: "too-many-links" });
  });

  test("the last message of a link frees its place, and its old messages stay duplicates", () => {
    const one = start({ limits: { foreignLinks: 1 } });
    one.hear(stranger(1), "HI");
    expect(one.hear(stranger(1, "d-0.other.p"), "HI")).toEqual({ kind: "dropped", reason: "too-many-links" });
    one.hear(stranger(2), "xstate.link.closed");
    expect(heard(one)).toEqual({ heard: ["HI"] });
    expect(one.hear(stranger(1, "d-0.other.p"), "HI").kind).toBe("stepped");
    for (const n of [1, 2, 3]) expect(one.hear(stranger(n), "HI")).toEqual({ kind: "dropped", reason: "duplicate" });
  });

  test("closed links are forgotten one after the other, the oldest first", () => {
    const one = start();
    for (let index = 0; index <= CLOSED_LINKS_REMEMBERED; index += 1) {
      one.hear(stranger(1, `d-0.other.s${index}`), "xstate.link.closed");
    }
    expect(Object.keys(one.record.marks)).toHaveLength(CLOSED_LINKS_REMEMBERED);
    expect(one.record.marks).not.toHaveProperty(["d-0.other.s0^g:5"]);
  });
});

describe("a child that is gone", () => {
  test("its late messages are dropped, neither applied again as a first message nor taken for a gap", () => {
    const one = start();
    one.send("SPAWN");
    const { key } = one.child("k");
    one.hear({ key, genesis: "g:2", n: 1 }, "UP");
    one.send("DROP");
    expect(one.hear({ key, genesis: "g:2", n: 1 }, "UP")).toEqual({ kind: "dropped", reason: "duplicate" });
    expect(one.hear({ key, genesis: "g:2", n: 2 }, "UP")).toEqual({ kind: "dropped", reason: "stale-child" });
    expect(heard(one)).toEqual({ heard: ["UP"] });
  });

  test("one that has settled but still has its entry may be late: what it sent before counts", () => {
    const one = start();
    one.send("SPAWN");
    const { key } = one.child("k");
    one.settle("k", undefined);
    expect(one.hear({ key, genesis: "g:2", n: 1 }, "UP").kind).toBe("stepped");
  });
});

test("the sending side forgets children that are gone and tells strangers at the end that nothing more will come", () => {
  const one = start();
  one.send("SPAWN");
  const child = new ActorAddress(one.child("k").key, "k");
  const other = new ActorAddress("d-0.other.o", "o", "g:5");
  const unknown = new ActorAddress("d-0.other.u", "u");
  for (const to of [child, other, unknown, other]) one.send({ type: "TELL", to });
  expect(one.record.linksOut).toEqual({ [child.key]: 1, "d-0.other.o^g:5": 2, "d-0.other.u": 1 });
  one.send("DROP");
  expect(one.record.linksOut).toEqual({ "d-0.other.o^g:5": 2, "d-0.other.u": 1 });
  one.send("CLOSE");
  expect(one.effectsOf("send")).toEqual([
    { kind: "send", id: "8#0", to: "d-0.other.o", toGenesis: "g:5", n: 3, event: { type: "xstate.link.closed" } },
    { kind: "send", id: "8#1", to: "d-0.other.u", n: 2, event: { type: "xstate.link.closed" } },
  ]);
  expect(one.record).toMatchObject({ linksOut: {}, marks: {} });
});

test("a message to a reference that names no actor is refused, so that a hostile event cannot spoil the record", () => {
  const one = start();
  for (const to of [
    new ActorAddress("no key", "x"),
    new ActorAddress("d-0.other.o", "o", "no genesis"),
    { id: "nothing" },
  ]) {
    one.send({ type: "TELL", to });
    expect(one.kinds).toBe("log journal");
  }
});

test("imperative sends inside of a transition are stored like any other", () => {
  const machine = setup({ actors: { kid }, types: typesOf<{ k?: AnyActorRef }>({}) }).createMachine({
    context: {},
    on: {
      GO: {
        actions: assign(({ self, spawn }) => {
          self.send({ type: "ME" });
          const k = spawn("kid", { id: "k" });
          k.send({ type: "HI" });
          return { k };
        }),
      },
      LATER: { actions: enqueueActions(({ context }) => context.k?.send({ type: "HI" })) },
      ME: {},
    },
  });
  const one = new Subject(machine, { actors: { kid: {} } }).start();
  one.send("GO");
  expect(one.effectsOf("send").map(({ to, event }) => [to, event.type])).toEqual([
    [KEY, "ME"],
    [one.child("k").key, "HI"],
  ]);
  // Afterwards the reference is an address; in a record that was decoded it never was anything else.
  one.send("LATER");
  expect(one.record.snapshot.error).toMatchObject({
    code: "HF-1003",
    message: expect.stringContaining("sendTo(ref, event)"),
  });
});
