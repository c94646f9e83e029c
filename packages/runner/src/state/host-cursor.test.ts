import { describe, expect, test } from "vitest";
import { EnvelopeSeq, RunnerEpoch } from "../wire/coordinates.ts";
import { placeEnvelope, type RunnerEnvelope } from "../wire/envelope.ts";
import { advance, greet, nextOf, passGap, type HostCursor } from "./host-cursor.ts";

const envelope = (seq: number, epoch = 1): RunnerEnvelope =>
  placeEnvelope(
    { op: "status", state: "idle" },
    { seq: EnvelopeSeq.parse(seq), epoch: RunnerEpoch.parse(epoch), conversation: "c1" },
  );
const cursor: HostCursor = { journal: "j1", epoch: 2, seq: 5 };
const broken = (facts: object): unknown => expect.objectContaining({ code: "HF-9002", facts });

test("C2: the next place is taken, an earlier one passed over, a later one is a fault", () => {
  expect(nextOf(cursor, envelope(6))).toBe("next");
  expect([5, 1].map((seq) => nextOf(cursor, envelope(seq)))).toEqual(["duplicate", "duplicate"]);
  expect(() => nextOf(cursor, envelope(7))).toThrow(broken({ expected: 6, found: 7 }));
  expect(advance(cursor, envelope(6))).toEqual({ ...cursor, seq: 6 });
});

test("a gap that was announced moves the cursor to before the first retained envelope, and never back", () => {
  expect(passGap(cursor, { afterSeq: 5, firstRetainedSeq: 9, lastSeq: 12 })).toEqual({ ...cursor, seq: 8 });
  expect(passGap(cursor, { afterSeq: 5, firstRetainedSeq: 3, lastSeq: 12 })).toEqual(cursor);
});

describe("greetings", () => {
  test("the first one, the same runner, and one that restarted", () => {
    expect(greet(undefined, { journal: "j1", epoch: 2, lastSeq: 9 })).toEqual({
      kind: "first",
      cursor: { journal: "j1", epoch: 2, seq: 0 },
    });
    expect(greet(cursor, { journal: "j1", epoch: 2, lastSeq: 9 })).toEqual({ kind: "same", cursor });
    expect(greet(cursor, { journal: "j1", epoch: 3, lastSeq: 5 })).toEqual({
      kind: "restarted",
      cursor: { ...cursor, epoch: 3 },
    });
  });

  test("C3: a journal that was created again begins at its first envelope, and says that it did", () => {
    expect(greet(cursor, { journal: "j2", epoch: 1, lastSeq: 2 })).toEqual({
      kind: "recreated",
      cursor: { journal: "j2", epoch: 1, seq: 0 },
    });
  });

  test("C4: a leftover of an older epoch, and a journal that lost its end, are faults", () => {
    expect(() => greet(cursor, { journal: "j1", epoch: 1, lastSeq: 9 })).toThrow(broken({ found: 1, known: 2 }));
    expect(() => greet(cursor, { journal: "j1", epoch: 3, lastSeq: 4 })).toThrow(broken({ found: 4, known: 5 }));
    expect(() => nextOf(cursor, envelope(6, 3))).toThrow(broken({ found: 3, known: 2 }));
  });
});
