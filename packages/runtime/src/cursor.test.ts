import { expect, test } from "vitest";
import { Cursor } from "./cursor.ts";

test("C1: the cursor is the lowest sequence not yet considered, whatever order the actors work in", () => {
  const cursor = new Cursor(10);
  expect(cursor.next).toBe(10);
  for (const seq of [12, 15, 20]) cursor.delivered(seq); // other partitions of the stream own the rest
  expect(cursor.next).toBe(12);
  cursor.considered(20);
  cursor.considered(15);
  expect(cursor.next).toBe(12);
  cursor.considered(12);
  expect([cursor.next, cursor.pending, cursor.highest]).toEqual([21, 0, 20]);
});

test("a quiet partition's cursor follows the stream, so that it does not keep the others' messages (F54)", () => {
  const cursor = new Cursor(10);
  cursor.readThrough(500);
  expect(cursor.next).toBe(501);
  cursor.delivered(510);
  cursor.readThrough(600);
  expect(cursor.next).toBe(510);
});
