import { assign, createMachine, setup, type AnyActorRef } from "xstate";
import { expect, test } from "vitest";
import { ActorAddress, actorRefExtension } from "./index.ts";
import { isPlainObject } from "./plain-object.ts";
import { typesOf } from "./testing/scenario-types.ts";
import { Subject } from "./testing/subject.ts";

const kid = createMachine({ id: "kid" });
const machine = setup({
  actors: { kid },
  types: typesOf<{ k?: AnyActorRef; me?: AnyActorRef; again?: unknown }>({}),
}).createMachine({
  context: {},
  on: {
    SPAWN: { actions: assign({ k: ({ spawn }) => spawn("kid", { id: "k" }), me: ({ self }) => self }) },
    COMPARE: {
      actions: assign({ again: ({ context, self }) => context.me !== undefined && context.me.id === self.id }),
    },
    PEEK: { actions: assign(({ context }) => ({ again: context.k?.getSnapshot() })) },
  },
});
const spawned = (cold: boolean): Subject => {
  const one = new Subject(machine, { actors: { kid: {} }, cold }).start();
  one.send("SPAWN");
  return one;
};

test("the extension writes key, id and the genesis where it is known, and reads them back", () => {
  const address = new ActorAddress("d-1.task.t", "t", "g:4");
  expect(actorRefExtension.tag).toBe("ref");
  expect(actorRefExtension.is(address)).toBe(true);
  expect(actorRefExtension.is({ key: "d-1.task.t", id: "t" })).toBe(false);
  expect(actorRefExtension.encode(address)).toEqual({ key: "d-1.task.t", id: "t", genesis: "g:4" });
  expect(actorRefExtension.encode(new ActorAddress("k", "i"))).toEqual({ key: "k", id: "i" });
  expect(actorRefExtension.decode(actorRefExtension.encode(address))).toEqual(address);
  expect(() => actorRefExtension.encode({})).toThrow(/HF|expected an actor address/);
});

function held(subject: Subject, name: "k" | "me"): ActorAddress {
  const { context } = subject.record.snapshot;
  const ref = isPlainObject(context) ? context[name] : undefined;
  if (ref instanceof ActorAddress) return ref;
  throw new Error(`the context holds no address under ${name}`);
}

test("what a context holds after a step is what it holds when it comes from bytes", () => {
  for (const cold of [false, true]) {
    const one = spawned(cold);
    const [k, me] = [held(one, "k"), held(one, "me")];
    expect(Object.keys(k)).toEqual(["key", "id", "genesis"]);
    expect([k.key, me.key, me.genesis]).toEqual([one.child("k").key, "d-0.subject.one", "g:1"]);
    for (const ref of [k, me]) expect(() => ref.send({ type: "X" })).toThrow("sendTo(ref, event)");
  }
});

test("an address is a name: what would act at once is refused, with the way to do it", () => {
  const address = new ActorAddress("d-1.task.t", "t");
  expect(() => address.send({ type: "X" })).toThrow("sendTo(ref, event)");
  expect(() => address.getSnapshot()).toThrow("onSnapshot");
  expect(() => address.subscribe()).toThrow("onSnapshot");
  expect(() => address.on()).toThrow("send an event");
  expect(JSON.stringify(address)).toBe('{"xstate$$type":1,"id":"t","key":"d-1.task.t"}');
});

test("an actor knows itself by id; the state of others it cannot read, hot or cold", () => {
  for (const cold of [false, true]) {
    const one = spawned(cold);
    one.send("COMPARE");
    expect(one.record.snapshot.context).toMatchObject({ again: true });
    one.send("PEEK");
    expect(one.record.snapshot.error).toMatchObject({ message: expect.stringContaining("in another record") });
  }
});
