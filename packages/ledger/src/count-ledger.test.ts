import { describe, expect, test } from "vitest";
import { countLedger } from "./count-ledger.ts";
import { LedgerFault } from "./ledger-fault.ts";

const attempt = (attempt: number, callId: string, idempotencyKey: string) =>
  JSON.stringify({ line: "attempt", attempt, at: 0, callId, idempotencyKey, kind: "mail" });
const applied = (attempt: number) => JSON.stringify({ line: "applied", attempt, at: 0 });
const settled = (callId: string, outcome = "completed") =>
  JSON.stringify({ line: "settlement", at: 0, callId, outcome });

const clean = {
  attempts: 0,
  calls: 0,
  applied: 0,
  settled: 0,
  duplicateEffects: 0,
  lost: 0,
  details: {
    keysAppliedTwice: [],
    callsWithTwoKeys: [],
    effectsAfterSettlement: [],
    lostCalls: [],
    attemptsAfterSettlement: 0,
    callsWithTwoOutcomes: [],
  },
};

describe("figures", () => {
  test("an empty log is clean", () => {
    expect(countLedger([])).toEqual(clean);
  });

  test("a retried effect that was applied once is clean", () => {
    const lines = [attempt(1, "c", "k"), applied(1), attempt(2, "c", "k"), settled("c")];
    expect(countLedger(lines)).toEqual({ ...clean, attempts: 2, calls: 1, applied: 1, settled: 1 });
  });

  test("a key applied twice is one duplicate, however often it was applied", () => {
    const lines = [attempt(1, "c", "k"), applied(1), attempt(2, "c", "k"), applied(2), applied(2)];
    expect(countLedger(lines)).toEqual({
      ...clean,
      attempts: 2,
      calls: 1,
      applied: 3,
      duplicateEffects: 1,
      details: { ...clean.details, keysAppliedTwice: ["k"] },
    });
  });

  test("a call that asks under two keys is a duplicate", () => {
    const lines = [attempt(1, "c", "k1"), applied(1), attempt(2, "c", "k2"), applied(2)];
    expect(countLedger(lines)).toMatchObject({
      applied: 2,
      duplicateEffects: 1,
      details: { callsWithTwoKeys: ["c"] },
    });
  });

  test("an effect after the first settlement of its call is late, whatever the outcome", () => {
    const lines = [attempt(1, "c", "k"), settled("c", "cancelled"), applied(1)];
    expect(countLedger(lines)).toMatchObject({
      duplicateEffects: 1,
      lost: 0,
      details: { effectsAfterSettlement: [{ callId: "c", attempt: 1 }] },
    });
  });

  test("an attempt after settlement that changes nothing is listed, not counted", () => {
    const lines = [attempt(1, "c", "k"), applied(1), settled("c"), attempt(2, "c", "k")];
    expect(countLedger(lines)).toMatchObject({
      duplicateEffects: 0,
      details: { attemptsAfterSettlement: 1 },
    });
  });

  test("a call settled as completed without an effect is lost; other outcomes promise none", () => {
    const lines = [attempt(1, "c", "k"), settled("c"), settled("d"), settled("e", "failed")];
    expect(countLedger(lines)).toMatchObject({
      calls: 3,
      settled: 3,
      lost: 2,
      details: { lostCalls: ["c", "d"] },
    });
  });

  test("a call whose effect was swallowed by another call's key is lost", () => {
    const lines = [attempt(1, "c", "k"), applied(1), attempt(2, "d", "k"), settled("d")];
    expect(countLedger(lines)).toMatchObject({ lost: 1, details: { lostCalls: ["d"] } });
  });

  test("the first settlement stands; another outcome is listed", () => {
    const lines = [settled("c", "failed"), settled("c"), settled("d", "failed"), settled("d", "failed")];
    expect(countLedger(lines)).toMatchObject({
      settled: 2,
      lost: 0,
      details: { callsWithTwoOutcomes: ["c"] },
    });
  });
});

describe("a log that cannot be trusted is a fault", () => {
  test.each([
    ["no JSON", ["{"], "Line 1 of the ledger is not a ledger line."],
    ["another shape", [settled("c"), "{}"], "Line 2 of the ledger is not a ledger line."],
    ["a missing attempt", [attempt(2, "c", "k")], "expected attempt 1, found attempt 2"],
    ["a repeated attempt", [attempt(1, "c", "k"), attempt(1, "c", "k")], "expected attempt 2"],
    ["an effect from nowhere", [applied(1)], "found an effect of attempt 1"],
  ])("%s", (_name, lines, message) => {
    expect(() => countLedger(lines)).toThrow(LedgerFault);
    expect(() => countLedger(lines)).toThrow(message);
  });
});
