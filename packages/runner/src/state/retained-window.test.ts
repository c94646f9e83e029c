import { describe, expect, test } from "vitest";
import { EnvelopeSeq, RunnerEpoch, StoreSeq } from "../wire/coordinates.ts";
import { placeEnvelope, type EnvelopeDraft } from "../wire/envelope.ts";
import { RetainedWindow } from "./retained-window.ts";

const drafts = (storeSeq: number): Readonly<Record<string, EnvelopeDraft>> => ({
  status: { op: "status", state: "busy" },
  durable: { op: "event", messageType: "TaskNotification", message: {}, requiresPersistence: true },
  result: { op: "result", messageType: "Result", message: {}, storeSeq: StoreSeq.parse(storeSeq) },
});

/** A window of `s`tatus, `d`urable events and `R`esults; the n-th result says that the store confirmed n. */
function windowOf(kinds: string, window = new RetainedWindow()): RetainedWindow {
  let results = window.latestResult?.storeSeq ?? 0;
  for (const kind of kinds) {
    if (kind === "R") results += 1;
    const draft = drafts(results)[{ s: "status", d: "durable", R: "result" }[kind] ?? ""];
    if (draft === undefined) throw new Error(`no kind ${kind}`);
    const at = { seq: EnvelopeSeq.parse(window.lastSeq + 1), epoch: RunnerEpoch.parse(1), conversation: "c1" };
    window.append(placeEnvelope(draft, at));
  }
  return window;
}

function compact(window: RetainedWindow, options: { threshold?: number; storeFlushed?: boolean } = {}): number {
  const cut = window.planCut(window.latestResult?.seq ?? 0, { threshold: 1, storeFlushed: true, ...options });
  return cut === undefined ? 0 : window.cutBefore(cut);
}

const retained = (window: RetainedWindow): readonly [number | undefined, number] => [
  window.firstRetainedSeq,
  window.lastSeq,
];

describe("W1, W2: what a checkpoint removes", () => {
  test("an unreceipted durable event stays although the store covers the result", () => {
    const window = windowOf("sdR");
    expect(compact(window)).toBe(1);
    expect(retained(window)).toEqual([2, 3]);
  });

  test("its receipt releases it; the result stays, and a checkpoint can be repeated", () => {
    const window = windowOf("sdR");
    expect(compact(window)).toBe(1);
    window.receipt(2);
    expect(compact(window)).toBe(1);
    expect(retained(window)).toEqual([3, 3]);
    expect(compact(window)).toBe(0);
  });

  test("received in one go, everything before the result goes: a reader at 0 has a gap, one at 2 has none", () => {
    const window = windowOf("sdR");
    window.receipt(2);
    expect(compact(window)).toBe(2);
    expect(window.gapAfter(0)).toEqual({ afterSeq: 0, firstRetainedSeq: 3, lastSeq: 3 });
    expect(window.gapAfter(1)).toEqual({ afterSeq: 1, firstRetainedSeq: 3, lastSeq: 3 });
    expect(window.gapAfter(2)).toBeUndefined();
    expect(window.gapAfter(3)).toBeUndefined();
  });

  test("one unreceipted event pins every later envelope", () => {
    const window = windowOf("sdsdsR");
    window.receipt(4);
    expect(compact(window)).toBe(1);
    expect(retained(window)).toEqual([2, 6]);
    window.receipt(2);
    expect(compact(window)).toBe(4);
    expect(retained(window)).toEqual([6, 6]);
  });

  test("a durable event after the result is not touched by it, and is kept by the next one", () => {
    const window = windowOf("sRd");
    expect(compact(window)).toBe(1);
    expect(retained(window)).toEqual([2, 3]);
    windowOf("R", window);
    expect(compact(window)).toBe(1);
    expect(retained(window)).toEqual([3, 4]);
  });

  test("only the latest result is a checkpoint", () => {
    const window = windowOf("sRsR");
    expect(() => window.planCut(2, { storeFlushed: true, threshold: 1 })).toThrow(
      expect.objectContaining({ code: "HF-9002", facts: { found: 2, latest: 4 } }),
    );
    expect(() => windowOf("sd").planCut(2, { storeFlushed: true })).toThrow(
      expect.objectContaining({ code: "HF-9002" }),
    );
  });
});

test.each([
  ["W3: below the threshold", {}],
  ["W2: while the store has not everything", { storeFlushed: false }],
])("%s nothing is removed", (_title, options) => {
  const window = windowOf("sdR");
  window.receipt(2);
  expect(compact(window, { threshold: 2048, ...options })).toBe(0);
  expect(compact(window, { storeFlushed: false })).toBe(0);
  expect(retained(window)).toEqual([1, 3]);
});

describe("W4: receipts", () => {
  test("may come again, also late, after their envelope is gone", () => {
    const window = windowOf("sdR");
    expect(window.receipt(2)).toBe("receipted");
    expect(window.receipt(2)).toBe("duplicate");
    compact(window);
    expect(window.receipt(2)).toBe("duplicate");
  });

  test.each([0, 1, 3, 4])("for %i, which is no durable envelope, are a fault and change nothing", (seq) => {
    const window = windowOf("sdR");
    expect(() => window.receipt(seq)).toThrow(expect.objectContaining({ code: "HF-9002" }));
    expect(window.unreceipted).toEqual([2]);
  });
});

describe("W5: what the store confirmed", () => {
  test("never moves backwards, not below the coordinate of the latest result either", () => {
    const window = windowOf("RR");
    expect(() => window.confirmStore(1)).toThrow(expect.objectContaining({ code: "HF-9002" }));
    window.confirmStore(5);
    expect(() => window.confirmStore(4)).toThrow(expect.objectContaining({ code: "HF-9002" }));
    expect(window.confirmedStoreSeq).toBe(5);
  });

  test("a result whose coordinate goes backwards is not taken", () => {
    const window = windowOf("RR");
    const draft: EnvelopeDraft = { op: "result", messageType: "Result", message: {}, storeSeq: StoreSeq.parse(1) };
    const at = { seq: EnvelopeSeq.parse(3), epoch: RunnerEpoch.parse(1), conversation: "c1" };
    expect(() => window.append(placeEnvelope(draft, at))).toThrow(expect.objectContaining({ code: "HF-9002" }));
    expect(window.lastSeq).toBe(2);
  });
});

test("a cursor ahead of the journal is a fault", () => {
  expect(() => windowOf("sd").gapAfter(3)).toThrow(
    expect.objectContaining({ code: "HF-9002", facts: { cursor: 3, lastSeq: 2 } }),
  );
});

test("a window that begins from its base keeps receipts and confirmations", () => {
  const window = windowOf("sddR");
  window.receipt(3);
  window.confirmStore(7);
  expect(compact(window)).toBe(1);
  const again = new RetainedWindow(window.toBase());
  windowOf("ddR", again);
  expect(again.unreceipted).toEqual([2]);
  expect(retained(again)).toEqual([2, 4]);
  expect(again.confirmedStoreSeq).toBe(7);
});
