import { expect, test } from "vitest";
import { FairSlots } from "./fair-slots.ts";

function desk(slots: number) {
  const fair = new FairSlots(slots);
  const order: string[] = [];
  const ask = (root: string, isRunning = false) => fair.take({ root, isRunning }, () => order.push(root));
  return { fair, order, ask };
}

test("S1: with a hundred of one root in the queue, another root has the second free slot", () => {
  const { fair, order, ask } = desk(4);
  const leave = Array.from({ length: 104 }, () => ask("wide"));
  ask("narrow");
  expect([fair.taken, fair.waiting]).toEqual([4, 101]);
  leave[0]?.();
  leave[1]?.();
  expect(order.slice(4)).toEqual(["wide", "narrow"]);
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
  ask("c");
  first();
  expect([order, fair.taken]).toEqual([["a", "b"], 1]);
  adopted();
  expect(order).toEqual(["a", "b", "c"]);
});

test("S3: leaving twice frees one slot, leaving the queue none", () => {
  const { fair, order, ask } = desk(1);
  const first = ask("a");
  const second = ask("b");
  ask("c");
  ask("d");
  second();
  second();
  expect([order, fair.waiting]).toEqual([["a"], 2]);
  first();
  first();
  expect([order, fair.taken, fair.waiting]).toEqual([["a", "c"], 1, 1]);
});
