import type { PlainEvent } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { listFieldsOf } from "./list-fields.ts";
import { amount, ANNA, fence, leave, release, reserve, settle, startWallet } from "./testing/wallet-rig.ts";
import { balanceOf } from "./wallet-balance.ts";

const root = (microUsd: number | undefined, more: object = {}) =>
  startWallet({ scope: "root", limit: microUsd === undefined ? {} : { microUsd }, ...more });
const APPLIED = { kind: "applied" };
const refusal = (code: string) => expect.objectContaining({ kind: "refused", code });

describe("a reservation", () => {
  test("B1: holds its maximum until it is settled to what was measured", () => {
    const wallet = root(100);
    expect(wallet.send(reserve("j1", "r1", amount(60, 50)))).toEqual(APPLIED);
    expect(balanceOf(wallet.state())).toMatchObject({ held: { microUsd: 60, tokens: 50 }, settled: { microUsd: 0 } });
    expect(wallet.send(settle("j1", "r1", amount(13, 20), 12_345.5))).toEqual(APPLIED);
    expect(wallet.state().settled).toEqual({ microUsd: 13, tokens: 20, nanoUsd: 12_345.5, calls: 1, unpricedCalls: 0 });
    expect(wallet.state().open).toEqual({});
  });

  test("B1: that fits only without what others hold has to wait; one that never fits is refused", () => {
    const wallet = root(100);
    wallet.send(reserve("j1", "r1", amount(60)));
    expect(wallet.send(reserve("j2", "r2", amount(60)))).toEqual(refusal("HF-5302"));
    expect(wallet.send(reserve("j3", "r3", amount(101)))).toEqual(refusal("HF-5301"));
    wallet.send(settle("j1", "r1", amount(10)));
    expect(wallet.send(reserve("j2", "r2", amount(60)))).toEqual(APPLIED);
  });

  test("a limit of 0 allows nothing, not even what costs nothing", () => {
    expect(root(0).send(reserve("j1", "r1", amount(0)))).toEqual(refusal("HF-5301"));
  });

  test("tokens have a limit of their own", () => {
    const wallet = startWallet({ scope: "root", limit: { tokens: 10 } });
    expect(wallet.send(reserve("j1", "r1", amount(1, 11)))).toEqual(refusal("HF-5301"));
    expect(wallet.send(reserve("j1", "r1", amount(1, 10)))).toEqual(APPLIED);
  });

  test("that comes twice is held once", () => {
    const wallet = root(100);
    wallet.send(reserve("j1", "r1", amount(60)));
    expect(wallet.send(reserve("j1", "r1", amount(60)))).toEqual({ kind: "duplicate" });
    expect(Object.keys(wallet.state().open)).toEqual(["j1:1"]);
  });

  test("of a further attempt leaves the one before it unresolved, and its hold stays", () => {
    const wallet = root(100);
    wallet.send(reserve("j1", "r1", amount(30)));
    expect(wallet.send(reserve("j1", "r2", amount(30)))).toEqual(APPLIED);
    expect(Object.keys(wallet.state().open)).toEqual(["j1:2"]);
    expect(Object.keys(wallet.state().unresolved)).toEqual(["j1:1"]);
    expect(balanceOf(wallet.state()).accounted.microUsd).toBe(60);
  });

  test.each([
    ["settled", settle("j1", "r1", amount(5))],
    ["released", release("j1", "r1")],
  ])("B2: once %s ends no other way", (_how, end) => {
    const wallet = root(100);
    wallet.send(reserve("j1", "r1", amount(30)));
    wallet.send(end);
    const before = wallet.stored();
    for (const again of [settle("j1", "r1", amount(9)), release("j1", "r1"), leave("j1", "r1")])
      expect(wallet.send(again)).toEqual({ kind: "duplicate" });
    expect(wallet.send(reserve("j1", "r1", amount(1)))).toEqual(refusal("HF-5305"));
    expect(wallet.stored()).toBe(before);
  });

  test("B2: that nobody knows the outcome of keeps its hold; a late receipt tells it, once", () => {
    const wallet = root(100);
    wallet.send(reserve("j1", "r1", amount(90)));
    wallet.send(leave("j1", "r1"));
    expect(wallet.send(reserve("j2", "r2", amount(20)))).toEqual(refusal("HF-5301"));
    expect(wallet.send(settle("j1", "r1", amount(5)))).toEqual(APPLIED);
    expect(wallet.send(settle("j1", "r1", amount(5)))).toEqual({ kind: "duplicate" });
    expect(balanceOf(wallet.state()).accounted.microUsd).toBe(5);
  });

  test("B2: that nobody ends is unresolved after half an hour", () => {
    const wallet = root(100);
    wallet.send(reserve("j1", "r1", amount(90)));
    wallet.clock.increment(10 * 60_000);
    wallet.clock.increment(10 * 60_000);
    expect(Object.keys(wallet.state().open)).toEqual(["j1:1"]);
    wallet.clock.increment(10 * 60_000);
    expect(Object.keys(wallet.state().unresolved)).toEqual(["j1:1"]);
    expect(balanceOf(wallet.state()).accounted.microUsd).toBe(90);
  });

  test("a person closes the hold of an unresolved one, by what it cost", () => {
    const wallet = root(100);
    wallet.send(reserve("j1", "r1", amount(90)));
    const close = { type: "closeHold", reservation: "j1:1", charged: amount(7, 3) };
    expect(wallet.send(close, ANNA)).toEqual(refusal("HF-5305"));
    wallet.send(leave("j1", "r1"));
    expect(wallet.send(close, ANNA)).toEqual(APPLIED);
    expect(wallet.send(close, ANNA)).toEqual(refusal("HF-5305"));
    expect(balanceOf(wallet.state()).accounted).toEqual({ microUsd: 7, tokens: 3 });
  });
});

describe("B3: what has no price", () => {
  test("is refused where money is limited", () => {
    expect(root(100).send(reserve("j1", "r1", amount(undefined)))).toEqual(refusal("HF-5303"));
  });

  test("is counted where it is not, and never as 0", () => {
    const wallet = root(undefined);
    wallet.send(reserve("j1", "r1", amount(undefined, 9)));
    wallet.send(settle("j1", "r1", amount(undefined, 7)));
    expect(wallet.state().settled).toMatchObject({ calls: 1, unpricedCalls: 1, tokens: 7, microUsd: 0 });
    const fields = listFieldsOf("wallet", wallet.state(), wallet.value());
    expect(fields).toMatchObject({ unpricedCalls: 1, spentTokens: 7 });
  });
});

describe("a limit", () => {
  test("B4: that was raised counts for the next reservation", () => {
    const wallet = root(10);
    expect(wallet.send(reserve("j1", "r1", amount(20)))).toEqual(refusal("HF-5301"));
    expect(wallet.send({ type: "setLimit", microUsd: 20 }, ANNA)).toEqual(APPLIED);
    expect(wallet.send(reserve("j1", "r1", amount(20)))).toEqual(APPLIED);
    expect(wallet.send({ type: "setLimit", microUsd: null }, ANNA)).toEqual(APPLIED);
    expect(wallet.state().limit).toEqual({});
  });

  test("is not for agents, nor for those who spend", () => {
    const wallet = root(10);
    const raise = { type: "setLimit", microUsd: 1_000_000 };
    expect(wallet.send(raise)).toEqual(refusal("HF-5305"));
    expect(wallet.send(raise, { kind: "agent", id: "chief", roles: [] })).toEqual(refusal("HF-5305"));
    expect(wallet.send(reserve("j1", "r1", amount(1)), ANNA)).toEqual(refusal("HF-5305"));
    expect(wallet.state()).toMatchObject({ limit: { microUsd: 10 }, open: {} });
  });
});

describe("B5: a fence", () => {
  const spent = () => {
    const wallet = root(10);
    wallet.send(reserve("j0", "r0", amount(4)));
    wallet.send(reserve("j1", "r1", amount(4)));
    wallet.send(settle("j1", "r1", amount(4)));
    return wallet;
  };

  test("is put only when everything is spent, and once", () => {
    const wallet = spent();
    expect(wallet.send(fence("j2", "r2", amount(6)))).toEqual(refusal("HF-5305"));
    expect(wallet.send(fence("j2", "r2", amount(7)))).toEqual(APPLIED);
    expect(wallet.value()).toBe("fenced");
    const first = wallet.state().fence;
    expect(first).toEqual({
      fenceId: "fence-1",
      status: "paused",
      scope: "root",
      wallet: "w1",
      autoResume: false,
      by: "j2",
    });
    expect(wallet.send(fence("j3", "r3", amount(7)))).toEqual({ kind: "duplicate" });
    expect(wallet.state().fence).toEqual(first);
  });

  test("refuses what would fit, also after the limit was raised and after a restart, and takes the ends of what runs", () => {
    const wallet = spent();
    wallet.send(fence("j2", "r2", amount(7)));
    wallet.send({ type: "setLimit", microUsd: 1000 }, ANNA);
    const before = wallet.stored();
    wallet.crash();
    expect(wallet.stored()).toBe(before);
    expect(wallet.send(reserve("j4", "r4", amount(1)))).toEqual(
      expect.objectContaining({
        code: "HF-5304",
        facts: { wallet: "w1", scope: "root", fence: "fence-1", reason: "root_budget_fence" },
      }),
    );
    expect(wallet.send(settle("j0", "r0", amount(1)))).toEqual(APPLIED);
  });

  test("lets through what a person let through, bound to it, as far as the limit goes", () => {
    const wallet = spent();
    wallet.send(fence("j2", "r2", amount(7)));
    const pass = { pass: "fence-1" };
    expect(wallet.send(reserve("j2", "r3", amount(7), pass))).toEqual(refusal("HF-5301"));
    wallet.send({ type: "setLimit", microUsd: 100 }, ANNA);
    expect(wallet.send(reserve("j2", "r3", amount(7), { pass: "fence-0" }))).toEqual(refusal("HF-5304"));
    expect(wallet.send(reserve("j2", "r3", amount(7), pass))).toEqual(APPLIED);
    expect(wallet.value()).toBe("fenced");
  });

  test("is lifted by its name, and the next one has another", () => {
    const wallet = spent();
    wallet.send(fence("j2", "r2", amount(7)));
    const lift = (fenceId: string): PlainEvent => ({ type: "liftFence", fenceId });
    expect(wallet.send(lift("fence-2"), ANNA)).toEqual({ kind: "duplicate" });
    expect(wallet.send(lift("fence-1"), ANNA)).toEqual(APPLIED);
    expect(wallet.send(reserve("j2", "r2", amount(1)))).toEqual(APPLIED);
    wallet.send(fence("j3", "r3", amount(7)));
    expect(wallet.state().fence?.fenceId).toBe("fence-2");
    expect(wallet.emitted).toEqual([
      { type: "walletFenced", scope: "root", fenceId: "fence-1" },
      { type: "walletFenceLifted", scope: "root", fenceId: "fence-1" },
      { type: "walletFenced", scope: "root", fenceId: "fence-2" },
    ]);
  });
});

describe("a wallet below another one", () => {
  const KEY = "d-1.wallet.w1";
  const GLOBAL = "d-2.wallet.global";

  test("B1: uses what it borrowed and nothing else, and says how much it needs in all", () => {
    const wallet = root(undefined, { parent: GLOBAL });
    const wanted = reserve("j1", "r1", amount(60, 5));
    expect(wallet.send(wanted)).toEqual(
      expect.objectContaining({
        code: "HF-5306",
        facts: { wallet: "w1", scope: "root", parent: GLOBAL, microUsd: 60, tokens: 5 },
      }),
    );
    const fund = { type: "fund", total: { microUsd: 100, tokens: 10 } };
    expect(wallet.send(fund)).toEqual(APPLIED);
    expect(wallet.send(fund)).toEqual({ kind: "duplicate" });
    expect(wallet.send(wanted)).toEqual(APPLIED);
    wallet.send(settle("j1", "r1", amount(10, 5)));
    expect(wallet.send({ type: "giveBack" })).toEqual(APPLIED);
    expect(wallet.state().returned).toEqual({ microUsd: 90, tokens: 5 });
    expect(wallet.send({ type: "giveBack" })).toEqual({ kind: "duplicate" });
    expect(wallet.send(reserve("j2", "r2", amount(1, 1)))).toEqual(
      expect.objectContaining({ facts: expect.objectContaining({ microUsd: 101, tokens: 11 }) }),
    );
  });

  test("is lent to in totals: what comes twice or late changes nothing", () => {
    const wallet = startWallet({ scope: "global", limit: { microUsd: 100 } });
    const lend = (microUsd: number): PlainEvent => ({ type: "lend", to: KEY, total: { microUsd, tokens: 9 } });
    expect(wallet.send(lend(60))).toEqual(APPLIED);
    expect(wallet.send(lend(60))).toEqual({ kind: "duplicate" });
    expect(wallet.send(lend(40))).toEqual({ kind: "duplicate" });
    expect(wallet.send(lend(120))).toEqual(refusal("HF-5302"));
    const gone = { microUsd: 10, tokens: 9 };
    const repaid = { type: "repaid", from: KEY, total: { microUsd: 50, tokens: 0 }, gone, asOf: 7 };
    expect(wallet.send(repaid)).toEqual(APPLIED);
    expect(wallet.send(repaid)).toEqual({ kind: "duplicate" });
    expect(balanceOf(wallet.state()).lent).toEqual({ microUsd: 10, tokens: 9 });
    expect(wallet.send({ ...repaid, gone: { microUsd: 0, tokens: 0 }, asOf: 6 })).toEqual({ kind: "duplicate" });
    // 10 of the 120 are gone and 50 came back: 60 more are to be lent, and 90 are there.
    expect(wallet.send(lend(120))).toEqual(APPLIED);
  });

  test("that has spent what it was lent leaves nothing to wait for", () => {
    const wallet = startWallet({ scope: "root", limit: { microUsd: 100 } });
    wallet.send({ type: "lend", to: KEY, total: { microUsd: 90, tokens: 9 } });
    expect(wallet.send(reserve("j1", "r1", amount(20)))).toEqual(
      expect.objectContaining({ code: "HF-5302", facts: expect.objectContaining({ isLent: true }) }),
    );
    const none = { microUsd: 0, tokens: 0 };
    wallet.send({ type: "repaid", from: KEY, total: none, gone: { microUsd: 85, tokens: 9 }, asOf: 3 });
    expect(wallet.send(reserve("j1", "r1", amount(20)))).toEqual(refusal("HF-5301"));
    expect(wallet.send(fence("j1", "r1", amount(20)))).toEqual(APPLIED);
  });
});
