import { describe, expect, test } from "vitest";
import { HotActors } from "./hot-actors.ts";
import { heldLimitOf, MemoryBudget } from "./memory-budget.ts";

const KIB = 1024;

describe("the account of what is held", () => {
  test("M1: full above the limit, and until a fifth of it is free again", () => {
    const memory = new MemoryBudget(100 * KIB);
    const told: boolean[] = [];
    memory.onChange((isFull) => told.push(isFull));
    memory.hold("mail", 90 * KIB);
    memory.hold("records", 10 * KIB);
    expect(memory.isFull).toBe(false);
    memory.hold("records", 1);
    expect(memory.isFull).toBe(true);
    memory.hold("mail", -15 * KIB);
    expect(memory.isFull).toBe(true);
    memory.hold("mail", -10 * KIB);
    expect([memory.isFull, told, memory.highest]).toEqual([false, [true, false], 100 * KIB + 1]);
  });

  test("M2: what cannot be worked off does not stop the reading: there must be messages for that", () => {
    const memory = new MemoryBudget(100 * KIB);
    memory.hold("records", 500 * KIB);
    expect(memory.isFull).toBe(false);
    memory.hold("mail", 20 * KIB);
    expect(memory.isFull).toBe(true);
    memory.hold("mail", -19 * KIB);
    expect(memory.isFull).toBe(false);
  });

  test("grows with the memory that the process is meant for, and is never nothing", () => {
    expect([160, 192, 512, 4096].map((mb) => heldLimitOf(mb) / KIB / KIB)).toEqual([16, 32, 192, 1984]);
  });
});

describe("actors that stay decoded", () => {
  test("H1: the longest unused leave while memory is tight, and only as many as it takes", () => {
    const memory = new MemoryBudget(100);
    const hot = new HotActors(memory);
    const left: string[] = [];
    const actor = (name: string) => ({
      leave: () => {
        left.push(name);
        memory.hold("records", -20);
      },
    });
    const [a, b, c, d] = [actor("a"), actor("b"), actor("c"), actor("d")];
    for (const one of [a, b, c]) {
      memory.hold("records", 20);
      hot.cameToRest(one);
    }
    expect(left).toEqual([]);
    hot.left(a); // it works again
    hot.cameToRest(a);
    memory.hold("records", 20);
    hot.cameToRest(d);
    expect([left, hot.size]).toEqual([["b"], 3]);
  });

  test("H1: one that cannot leave is not asked again before it comes to rest the next time", () => {
    const memory = new MemoryBudget(10);
    memory.hold("records", 100);
    const hot = new HotActors(memory);
    let asked = 0;
    const stubborn = { leave: () => (asked += 1) };
    hot.cameToRest(stubborn);
    for (let n = 0; n < 5; n += 1) hot.cameToRest({ leave: () => undefined });
    expect(asked).toBe(1);
  });
});
