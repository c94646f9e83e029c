import { describe, expect, test } from "vitest";
import { Limiter } from "./limiter.ts";
import { ManualClock } from "./testing/index.ts";

/** Names of those who got in, in the order in which they did. */
function visitors(limiter: Limiter) {
  const inside: string[] = [];
  return {
    inside,
    arrive: async (name: string, weight = 0): Promise<void> => {
      await limiter.enter(weight);
      inside.push(name);
    },
  };
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("a limiter", () => {
  test("L1, L2: lets in as many as there are slots, the others in the order they came", async () => {
    const limiter = new Limiter({ slots: () => 2, clock: new ManualClock() });
    const { inside, arrive } = visitors(limiter);
    for (const name of ["a", "b", "c", "d"]) void arrive(name);
    await turn();
    expect([inside, limiter.active, limiter.waiting]).toEqual([["a", "b"], 2, 2]);
    limiter.leave();
    await turn();
    expect(inside).toEqual(["a", "b", "c"]);
    limiter.leave();
    limiter.leave();
    await turn();
    expect([inside, limiter.active, limiter.highest]).toEqual([["a", "b", "c", "d"], 1, 2]);
  });

  test("L2: nobody enters past those who wait", async () => {
    const limiter = new Limiter({ slots: () => 1, clock: new ManualClock() });
    await limiter.enter();
    void limiter.enter();
    expect(limiter.tryEnter()).toBe(false);
  });

  test("L1: what is inside never weighs more than the limit, but one that is heavier still gets in, alone", async () => {
    const limiter = new Limiter({ slots: () => 10, weightLimit: 100, clock: new ManualClock() });
    const { inside, arrive } = visitors(limiter);
    void arrive("light", 60);
    void arrive("heavy", 500);
    void arrive("last", 1);
    await turn();
    expect(inside).toEqual(["light"]);
    limiter.leave(60);
    await turn();
    expect(inside).toEqual(["light", "heavy"]);
    limiter.leave(500);
    await turn();
    expect(inside).toEqual(["light", "heavy", "last"]);
  });

  test("L1: slots that shrink take effect with the next turn, and one always counts", async () => {
    let slots = 3;
    const limiter = new Limiter({ slots: () => slots, clock: new ManualClock() });
    const { inside, arrive } = visitors(limiter);
    for (const name of ["a", "b", "c", "d", "e"]) void arrive(name);
    slots = 0;
    limiter.leave();
    limiter.leave();
    await turn();
    expect([inside, limiter.active]).toEqual([["a", "b", "c"], 1]);
    limiter.leave();
    await turn();
    expect(inside).toEqual(["a", "b", "c", "d"]);
  });

  test("L3: a long queue that needs no IO lets the event loop turn in between", async () => {
    const clock = new ManualClock();
    const limiter = new Limiter({ slots: () => 1, clock });
    let done = 0;
    for (let n = 0; n < 200; n += 1) void limiter.run(() => Promise.resolve((done += 1)));
    await turn();
    expect(done).toBeLessThan(100);
    await clock.advanceUntil("all had their turn", () => done === 200);
  });

  test("what fails leaves, too", async () => {
    const limiter = new Limiter({ slots: () => 1, clock: new ManualClock() });
    await expect(limiter.run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(limiter.active).toBe(0);
  });
});
