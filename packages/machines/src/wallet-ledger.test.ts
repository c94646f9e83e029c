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
const RUNS = ["r1", "r2", "r3"];

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
    run: fc.constantFrom(...RUNS),
    microUsd: fc.option(fc.nat(40), { nil: undefined, freq: 8 }),
    tokens: fc.nat(40),
  })
  .map(({ kind, job, run, microUsd, tokens }) => {
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
        return { type: "closeHold", reservation: `${job}:1`, charged: cost };
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
      const ledger = foldWalletLedger(wallet.journal);
      const { settled, held, unresolved } = balanceOf(wallet.state());
      expect(ledger.settled).toEqual(settled);
      expect(ledger.held).toEqual(plus(held, unresolved));
      expect(ledger.unpricedCalls).toBe(wallet.state().settled.unpricedCalls);
      const ids = ledger.lines.map(({ reservation }) => reservation);
      expect(new Set(ids).size).toBe(ids.length);
      const open = ledger.lines.filter(({ end }) => end === undefined).map(({ reservation }) => reservation);
      expect(open).toEqual(Object.keys(wallet.state().open));
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
