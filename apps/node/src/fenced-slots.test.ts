import { FairSlots } from "holdfast";
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { FencedSlots } from "./fenced-slots.ts";

/** One slot, and wallets that are fenced, or cannot be read. */
function oneSlot() {
  const fenced = new Set<string>();
  const unreadable = new Set<string>();
  const slots = new FairSlots(1);
  const looks: string[] = [];
  const gate = new FencedSlots({
    slots,
    lookMs: 1,
    isFenced: async (wallet) => {
      looks.push(wallet);
      if (unreadable.has(wallet)) throw new Error("its record cannot be read");
      return fenced.has(wallet);
    },
  });
  const inside: string[] = [];
  const take = (name: string, more: { root?: string; wallet?: string; isRunning?: boolean }) =>
    gate.take({ isRunning: false, ...more }, () => void inside.push(name));
  return { fenced, unreadable, slots, looks, inside, take };
}

const settled = async (): Promise<void> => {
  for (let n = 0; n < 10; n += 1) await turn();
};

test("F4: who has no wallet, or runs already, is let in at once, and nothing is read", () => {
  const { inside, looks, take, fenced } = oneSlot();
  fenced.add("w1");
  take("plain", { root: "r1" });
  take("running", { root: "r2", wallet: "w1", isRunning: true });
  expect(inside).toEqual(["plain", "running"]);
  expect(looks).toEqual([]);
});

test("F1: a fence that comes while it waits for a slot is seen; F2: it holds none then; when it is lifted it is let in", async () => {
  const { fenced, inside, take, slots } = oneSlot();
  const leave = take("first", { root: "r1", wallet: "w1" });
  take("queued", { root: "r1", wallet: "w1" });
  await settled();
  expect(inside).toEqual(["first"]);
  fenced.add("w1");
  leave();
  await expect.poll(() => slots.taken).toBe(0);
  const leaveOther = take("other", { root: "r2", wallet: "w2" });
  await settled();
  expect(inside).toEqual(["first", "other"]);
  leaveOther();
  fenced.delete("w1");
  await expect.poll(() => inside).toEqual(["first", "other", "queued"]);
});

test("F3: it waits as long as its wallet cannot be read", async () => {
  const { unreadable, inside, looks, take } = oneSlot();
  unreadable.add("w1");
  take("queued", { root: "r1", wallet: "w1" });
  await expect.poll(() => looks.length).toBeGreaterThan(3);
  expect(inside).toEqual([]);
  unreadable.delete("w1");
  await expect.poll(() => inside).toEqual(["queued"]);
});

test("many below one fence look together, those without a root need no slot, and who has gone is not let in", async () => {
  const { fenced, inside, looks, take } = oneSlot();
  fenced.add("w1");
  const leaves = Array.from({ length: 20 }, (_, n) => take(`t${n}`, { wallet: "w1" }));
  expect(looks).toHaveLength(1);
  leaves[3]?.();
  fenced.delete("w1");
  await expect.poll(() => inside).toHaveLength(19);
  expect(inside).not.toContain("t3");
});

test("a wallet that nobody waits for any more is not looked at", async () => {
  const { fenced, looks, take } = oneSlot();
  fenced.add("w1");
  const leave = take("queued", { wallet: "w1" });
  await expect.poll(() => looks.length).toBeGreaterThan(2);
  leave();
  await settled();
  const looksAt = (wallet: string): number => looks.filter((one) => one === wallet).length;
  const before = looksAt("w1");
  fenced.add("w2");
  take("other", { wallet: "w2" });
  await expect.poll(() => looksAt("w2")).toBeGreaterThan(4);
  expect(looksAt("w1")).toBeLessThanOrEqual(before + 1);
});
