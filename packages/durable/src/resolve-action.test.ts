import { assign, createMachine, enqueueActions, setup } from "xstate";
import { expect, test, vi } from "vitest";
import { resolveAction, type Deliver } from "./index.ts";
import { roundTrip } from "./testing/round-trip.ts";
import { typesOf } from "./testing/scenario-types.ts";
import { GENESIS, KEY, PARENT, Subject } from "./testing/subject.ts";

function actionsOf(subject: Subject, deliver?: Deliver): (() => unknown)[] {
  return subject.effectsOf("action").map((effect) => resolveAction(subject.compiled, subject.record, effect, deliver));
}

test("a custom action runs after the commit, with its event, its params and the context it was decided in", () => {
  const note = vi.fn<(n: number, by: string, params: object) => void>();
  const machine = setup({
    types: typesOf<{ n: number }>({}),
    actions: { note: ({ context, event }, params: { k: number }) => note(context.n, String(event["by"]), params) },
  }).createMachine({
    context: { n: 0 },
    on: {
      GO: {
        actions: [
          { type: "note", params: { k: 1 } },
          assign({ n: 5 }),
          { type: "note", params: ({ context }) => ({ k: context.n }) },
        ],
      },
    },
  });
  for (const cold of [false, true]) {
    note.mockClear();
    const one = new Subject(machine, { cold }).start();
    one.send({ type: "GO", by: "ann" });
    expect(note).not.toHaveBeenCalled();
    expect(one.effectsOf("action").map((effect) => "context" in effect)).toEqual([true, false]);
    for (const run of actionsOf(one)) run();
    expect(note.mock.calls).toEqual([
      [0, "ann", { k: 1 }],
      [5, "ann", { k: 5 }],
    ]);
  }
});

test("an inline action is found again by its place", () => {
  const seen: string[] = [];
  const machine = createMachine({ id: "m", on: { GO: { actions: () => void seen.push("inline") } } });
  const one = new Subject(machine, { cold: true }).start();
  one.send("GO");
  expect(one.effectsOf("action")).toMatchObject([{ name: "inline:m.on.GO#0[0]" }]);
  for (const run of actionsOf(one)) run();
  expect(seen).toEqual(["inline"]);
});

test("it gives what the action gives, so that the caller can wait for it", async () => {
  const slow = (): unknown => Promise.resolve("done");
  const machine = createMachine({ entry: "slow" }).provide({ actions: { slow } });
  const [run] = actionsOf(new Subject(machine).start());
  await expect(run?.()).resolves.toBe("done");
});

test("a name without implementation does nothing, as in XState", () => {
  const machine = createMachine({ entry: "nothing" });
  expect(actionsOf(new Subject(machine).start())[0]?.()).toBeUndefined();
});

test("an inline function enqueued by enqueueActions runs in the process that knows it, and is reported where it cannot be found", () => {
  const seen: string[] = [];
  const machine = createMachine({
    on: { GO: { actions: enqueueActions(({ enqueue }) => enqueue(() => void seen.push("ran"))) } },
  });
  const one = new Subject(machine).start();
  one.send("GO");
  for (const run of actionsOf(one)) run();
  expect(seen).toEqual(["ran"]);
  one.record = roundTrip(one.record);
  expect(() => actionsOf(one)).toThrow(expect.objectContaining({ code: "HF-3003" }));
});

test("what an action sends by hand goes where the caller says, or nowhere with an error", () => {
  const machine = setup({
    actions: {
      talk: ({ self, system }) => {
        self.send({ type: "A" });
        system.get("boss")?.send({ type: "B" });
      },
    },
  }).createMachine({ entry: "talk" });
  const one = new Subject(machine, { parent: PARENT }).start();
  const sent: unknown[] = [];
  for (const run of actionsOf(one, (to, event) => void sent.push([to.key, to.genesis, event.type]))) run();
  expect(sent).toEqual([
    [KEY, GENESIS, "A"],
    ["$system/boss", undefined, "B"],
  ]);
  expect(() => actionsOf(one)[0]?.()).toThrow(expect.objectContaining({ code: "HF-1003" }));
});
