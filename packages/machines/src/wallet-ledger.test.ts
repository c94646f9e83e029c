import type { PlainEvent } from "@holdfast/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  amount,
  ANNA,
  fence,
  leave,
  release,
  reserve,
  settle,
  startWallet,
  type WalletRig,
} from "./testing/wallet-rig.ts";
import { balanceOf, plus } from "./wallet-balance.ts";
import { foldWalletLedger } from "./wallet-ledger.ts";

const JOBS = ["j1", "j2", "j3"];
const RUNS = ["r1", "r2", "r3", "r4", "r5"];

const oneEvent: fc.Arbitrary<PlainEvent> = fc
  .record({
    kind: fc.constantFrom(
      "reserve",
      "settle",
      "release",
      "leave",
      "fence",
      "close",
      "limit",
      "lift",
      "reserve",
      "settle",
    ),
    job: fc.constantFrom(...JOBS),
    number: fc.integer({ min: 1, max: 12 }),
    run: fc.constantFrom(...RUNS),
    microUsd: fc.option(fc.nat(40), { nil: undefined, freq: 8 }),
    tokens: fc.nat(40),
  })
  .map(({ kind, job, number, run, microUsd, tokens }) => {
    const cost = amount(microUsd, tokens);
    switch (kind) {
      case "reserve":
        return reserve(job, run, cost);
      case "settle":
        return settle(job, run, cost, Math.max(0, (microUsd ?? 0) * 1000 - 0.5));
      case "release":
        return release(job, run);
      case "leave":
        return leave(job, run);
      case "fence":
        return fence(job, run, cost);
      case "close":
        return { type: "closeHold", reservation: `${job}:${number}`, charged: cost };
      case "limit":
        return { type: "setLimit", tokens: tokens * 10 };
      case "lift":
        return { type: "liftFence", fenceId: "fence-1" };
    }
  });

const BY_OWNERS = new Set(["closeHold", "setLimit", "liftFence"]);
const send = (wallet: WalletRig, event: PlainEvent) => wallet.send(event, ...(BY_OWNERS.has(event.type) ? [ANNA] : []));

/** Any order of any events: late ones, second ones, and processes that die after any of them. */
const history = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: oneEvent.map((event) => ({ kind: "event", event }) as const) },
    { weight: 2, arbitrary: oneEvent.map((event) => ({ kind: "twice", event }) as const) },
    { weight: 2, arbitrary: fc.constant({ kind: "crash" } as const) },
    { weight: 2, arbitrary: fc.constant({ kind: "look" } as const) },
  ),
  { minLength: 1, maxLength: 60 },
);

test("whatever comes in whatever order, the balance is that of the ledger, and no reservation ends twice", () => {
  fc.assert(
    fc.property(history, (steps) => {
      const wallet = startWallet({ scope: "root", limit: { tokens: 300 } });
      for (const step of steps) {
        if (step.kind === "crash") wallet.crash();
        else if (step.kind === "look") wallet.look();
        else {
          send(wallet, step.event);
          if (step.kind === "twice") expect(send(wallet, step.event).kind).not.toBe("applied");
        }
        const { limit } = wallet.state();
        const { accounted, held } = balanceOf(wallet.state());
        // What is held was allowed: a limit that was lowered below it afterwards takes nothing back.
        if (limit.tokens === 300) expect(accounted.tokens).toBeLessThanOrEqual(300 + overrun(wallet));
        expect(held.tokens).toBeGreaterThanOrEqual(0);
      }
      expectLedger(wallet);
    }),
    { seed: 4711, numRuns: 300 },
  );
});

/** What was charged beyond what was held: a model may use more than anybody thought, and that is told as it is. */
function overrun(wallet: WalletRig): number {
  return foldWalletLedger(wallet.journal).lines.reduce(
    (sum, { charged, maximum }) => sum + Math.max(0, (charged?.tokens ?? 0) - maximum.tokens),
    0,
  );
}

/** The record of a wallet says what its journal adds up to, and every reservation of it has one end at most. */
function expectLedger(wallet: WalletRig): void {
  const ledger = foldWalletLedger(wallet.journal);
  const { settled, held, unresolved } = balanceOf(wallet.state());
  expect(ledger.settled).toEqual(settled);
  expect(ledger.held).toEqual(plus(held, unresolved));
  expect(ledger.unpricedCalls).toBe(wallet.state().settled.unpricedCalls);
  const ids = ledger.lines.map(({ reservation }) => reservation);
  expect(new Set(ids).size).toBe(ids.length);
  const open = ledger.lines.filter(({ end }) => end === undefined).map(({ reservation }) => reservation);
  expect(open).toEqual(Object.keys(wallet.state().open));
}

const longStep = fc.record({
  kind: fc.constantFrom(
    ...(["begin", "begin", "begin", "settle", "release", "leave", "leave", "copy", "crash"] as const),
  ),
  pick: fc.nat(1_000_000),
  tokens: fc.nat(40),
});

test("more ends than it remembers: copies of any age hold and charge nothing twice, and what is not told apart any more can be closed", () => {
  fc.assert(
    fc.property(fc.array(longStep, { minLength: 900, maxLength: 900 }), (steps) => {
      const wallet = startWallet({ scope: "root", limit: {} });
      const attempts: (readonly [string, string])[] = [];
      const sent: PlainEvent[] = [];
      const deliver = (event: PlainEvent) => {
        sent.push(event);
        send(wallet, event);
      };
      for (const { kind, pick, tokens } of steps) {
        const [job, run] = attempts[attempts.length - 1 - (pick % Math.min(6, attempts.length))] ?? ["j", "none"];
        const next = [`job-${attempts.length % 40}`, `run-${attempts.length}`] as const;
        if (kind === "begin") {
          attempts.push(next);
          deliver(reserve(...next, amount(tokens, tokens), { asOf: wallet.state().ends }));
        } else if (kind === "settle") deliver(settle(job, run, amount(tokens, tokens)));
        else if (kind === "release") deliver(release(job, run));
        else if (kind === "leave") deliver(leave(job, run));
        else if (kind === "crash") wallet.crash();
        else send(wallet, sent[pick % Math.max(1, sent.length)] ?? release(job, run));
      }
      const taken = wallet.journal.filter(({ type }) => type === "reserve").map(({ run }) => run);
      expect(taken).toEqual(attempts.map(([, run]) => run));
      expect(wallet.state().ends).toBeGreaterThan(wallet.state().ended.length);
      expectLedger(wallet);
      const { calls, microUsd, tokens } = wallet.state().olderUnresolved;
      expect(calls).toBeGreaterThan(0);
      const before = balanceOf(wallet.state()).accounted;
      const close: PlainEvent = { type: "closeHold", reservation: "older", charged: amount(1, 2) };
      expect(send(wallet, close)).toEqual({ kind: "applied" });
      expect(send(wallet, close)).toMatchObject({ kind: "refused", code: "HF-5305" });
      expect(balanceOf(wallet.state()).accounted).toEqual(
        plus({ microUsd: before.microUsd - microUsd, tokens: before.tokens - tokens }, { microUsd: 1, tokens: 2 }),
      );
      expectLedger(wallet);
    }),
    { seed: 4712, numRuns: 8, endOnFailure: true },
  );
});

test("a late receipt for one that is not told apart any more is refused: its hold stays, and is told", () => {
  const wallet = startWallet({ scope: "root", limit: {} });
  for (let n = 0; n < 130; n += 1) {
    send(wallet, reserve(`j${n}`, "r", amount(5), { asOf: wallet.state().ends }));
    send(wallet, leave(`j${n}`, "r"));
  }
  expect(wallet.state().olderUnresolved).toEqual({ calls: 2, microUsd: 10, tokens: 2 });
  const before = wallet.stored();
  expect(send(wallet, settle("j0", "r", amount(3)))).toMatchObject({ kind: "refused", code: "HF-5305" });
  expect(send(wallet, leave("j0", "r"))).toEqual({ kind: "duplicate" });
  expect(send(wallet, reserve("j0", "r", amount(5)))).toMatchObject({ kind: "refused", code: "HF-5305" });
  expect(wallet.stored()).toBe(before);
});
