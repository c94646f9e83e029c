import { expect, test } from "vitest";
import { FairSlots } from "./fair-slots.ts";

function desk(slots: number) {
  const fair = new FairSlots(slots);
  const order: string[] = [];
  const ask = (root: string, isRunning = false) => fair.take({ root, isRunning }, () => order.push(root));
  return { fair, order, ask };
}

test("S1: with a hundred of one root in the queue, every other root has the second free slot at the latest", () => {
  const { fair, order, ask } = desk(4);
  const leave = Array.from({ length: 104 }, () => ask("wide"));
  ask("first");
  ask("narrow");
  expect([order.slice(4), fair.taken, fair.waiting]).toEqual([["first"], 5, 101]);
  leave[0]?.();
  leave[1]?.();
  expect(order.slice(5)).toEqual(["narrow"]);
  leave[2]?.();
  expect([order.slice(6), fair.taken]).toEqual([["wide"], 4]);
});

test("S4: with a hundred of one root queued on two nodes, a task of another root starts at once on either, and only one more", () => {
  for (const home of [0, 1]) {
    const nodes = [desk(2), desk(2)] as const;
    for (let n = 0; n < 104; n += 1) nodes[n % 2]?.ask("wide");
    expect(nodes.map(({ fair }) => [fair.taken, fair.waiting])).toEqual([
      [2, 50],
      [2, 50],
    ]);
    const { order, ask, fair } = nodes[home === 0 ? 0 : 1];
    ask("narrow");
    ask("narrow");
    expect([order, fair.taken, fair.waiting]).toEqual([["wide", "wide", "narrow"], 3, 51]);
  }
});

test("S4: the slot for roots without any goes to the next such root, in turn, and never to one that has a slot", () => {
  const { order, ask } = desk(1);
  const wide = ask("wide");
  const a = ask("a");
  for (const root of ["wide", "b", "c", "a"]) ask(root);
  expect(order).toEqual(["wide", "a"]);
  a();
  expect(order).toEqual(["wide", "a", "b"]);
  wide();
  expect(order).toEqual(["wide", "a", "b", "wide"]); // it had none any more, and its turn is before that of c
});

test("S4: a task that takes its slot for the time it runs, before it gives back its place in the queue, makes no room", () => {
  const { fair, order, ask } = desk(1);
  ask("wide");
  const place = ask("a");
  const slot = ask("a", true);
  place();
  ask("b");
  expect([order, fair.taken]).toEqual([["wide", "a", "a"], 2]);
  slot();
  expect(order).toEqual(["wide", "a", "a", "b"]);
});

test("within a root, first come, first served; never more than the slots", () => {
  const { fair, order } = desk(1);
  const leave = ["a", "b", "c"].map((name) => fair.take({ root: "r", isRunning: false }, () => order.push(name)));
  expect(order).toEqual(["a"]);
  leave[0]?.();
  expect([order, fair.taken]).toEqual([["a", "b"], 1]);
});

test("S2: who runs already is let in and counted", () => {
  const { fair, order, ask } = desk(1);
  const first = ask("a");
  const adopted = ask("b", true);
  ask("b");
  first();
  expect([order, fair.taken]).toEqual([["a", "b"], 1]);
  adopted();
  expect(order).toEqual(["a", "b", "b"]);
});

test("S3: leaving twice frees one slot, leaving the queue none", () => {
  const { fair, order, ask } = desk(1);
  const first = ask("a");
  const second = ask("a");
  ask("a");
  ask("a");
  second();
  second();
  expect([order, fair.waiting]).toEqual([["a"], 2]);
  first();
  first();
  expect([order, fair.taken, fair.waiting]).toEqual([["a", "a"], 1, 1]);
});
