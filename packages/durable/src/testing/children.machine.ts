import {
  assign,
  createMachine,
  forwardTo,
  fromCallback,
  fromTransition,
  sendParent,
  sendTo,
  setup,
  stopChild,
  type AnyActorRef,
  type AnyEventObject,
} from "xstate";
import { typesOf } from "./scenario-types.ts";

export function childMachines() {
  const todo = setup({ types: typesOf<{ t: string }>({}) }).createMachine({
    id: "todo",
    initial: "open",
    context: ({ input }) => ({ t: String(input["t"]) }),
    states: {
      open: {
        on: { DONE: "closed", HEY: { actions: sendParent(({ context }) => ({ type: "HEY_BACK", t: context.t })) } },
      },
      closed: { type: "final" },
    },
    output: ({ context }) => context.t,
  });
  const todos = setup({
    types: typesOf<{ list: { ref: AnyActorRef }[]; back: string[] }>({}),
    actors: { todo },
  }).createMachine({
    id: "todos",
    context: ({ spawn }) => ({ list: [{ ref: spawn("todo", { id: "first", input: { t: "boot" } }) }], back: [] }),
    on: {
      ADD: {
        actions: assign({
          list: ({ context, spawn, event }) => [
            ...context.list,
            { ref: spawn("todo", { id: `todo${context.list.length}`, input: { t: event["t"] } }) },
          ],
        }),
      },
      PING: { actions: sendTo(({ context, event }) => refAt(context.list, event), { type: "HEY" }) },
      HEY_BACK: { actions: assign({ back: ({ context, event }) => [...context.back, String(event["t"])] }) },
      FINISH: { actions: sendTo(({ context, event }) => refAt(context.list, event), { type: "DONE" }) },
      "xstate.done.actor.*": {
        actions: assign({ back: ({ context, event }) => [...context.back, `done:${String(event["output"])}`] }),
      },
      DROP: {
        actions: [
          stopChild(({ context, event }) => refAt(context.list, event)),
          assign({ list: ({ context, event }) => context.list.filter((_, index) => index !== event["i"]) }),
        ],
      },
    },
  });

  const counter = createMachine({
    types: typesOf<{ c: number }>({}),
    id: "counter",
    context: { c: 0 },
    on: { INC: { actions: assign({ c: ({ context }) => context.c + 1 }) } },
  });
  const adder = fromTransition(
    (state: { sum: number }, event: AnyEventObject) =>
      event.type === "ADD" ? { sum: state.sum + Number(event["v"]) } : state,
    { sum: 0 },
  );
  const synced = setup({
    types: typesOf<{ last: unknown; sum: unknown }>({}),
    actors: { counter, adder },
  }).createMachine({
    id: "synced",
    context: { last: null, sum: null },
    invoke: [
      {
        src: "counter",
        id: "cnt",
        input: {},
        onSnapshot: { actions: assign({ last: ({ event }) => event.snapshot.context.c }) },
      },
      { src: "adder", id: "add", onSnapshot: { actions: assign({ sum: ({ event }) => event.snapshot.context.sum }) } },
    ],
    on: { INC: { actions: forwardTo("cnt") }, ADD: { actions: sendTo("add", ({ event }) => event) } },
  });

  const echo = fromCallback<AnyEventObject, string>(({ sendBack, receive, input }) => {
    receive((event) => sendBack({ type: "ECHO", v: String(event["v"]) + input }));
  });
  const cb = setup({ types: typesOf<{ got: unknown[] }>({}), actors: { echo } }).createMachine({
    id: "cb",
    initial: "on",
    context: { got: [] },
    states: {
      on: {
        invoke: { src: "echo", id: "e", input: "!" },
        on: {
          SAY: { actions: sendTo("e", ({ event }) => ({ type: "IN", v: event["v"] })) },
          ECHO: { actions: assign({ got: ({ context, event }) => [...context.got, event["v"]] }) },
          OFF: "off",
        },
      },
      off: {},
    },
  });

  const worker = createMachine({
    types: typesOf<object>({}),
    id: "worker",
    initial: "idle",
    states: {
      idle: {
        on: {
          WORK: {
            actions: [
              sendTo(({ system }) => system.get("boss"), { type: "RESULT" }),
              sendTo(({ event }) => event["replyTo"] as AnyActorRef, { type: "REPLY" }),
            ],
          },
        },
      },
    },
  });
  const bossM = createMachine({
    types: typesOf<{ results: number }>({}),
    id: "bossM",
    context: { results: 0 },
    on: {
      RESULT: {
        actions: [
          assign({ results: ({ context }) => context.results + 1 }),
          sendParent(({ context }) => ({ type: "BOSS", n: context.results })),
        ],
      },
    },
  });
  const systemIds = setup({
    types: typesOf<{ boss: number; replies: number }>({}),
    actors: { worker, bossM },
  }).createMachine({
    id: "sys",
    context: { boss: 0, replies: 0 },
    invoke: [
      { src: "bossM", id: "b", systemId: "boss", input: {} },
      { src: "worker", id: "w", systemId: "worker", input: {} },
    ],
    on: {
      GO: {
        actions: sendTo(
          ({ system }) => system.get("worker"),
          ({ self }) => ({ type: "WORK", replyTo: self }),
        ),
      },
      BOSS: { actions: assign({ boss: ({ event }) => Number(event["n"]) }) },
      REPLY: { actions: assign({ replies: ({ context }) => context.replies + 1 }) },
    },
  });
  return { todo, todos, counter, adder, synced, cb, worker, bossM, systemIds };
}

function refAt(list: readonly { readonly ref: AnyActorRef }[], event: AnyEventObject): AnyActorRef {
  const found = list[Number(event["i"])];
  if (found === undefined) throw new Error("no such entry");
  return found.ref;
}
