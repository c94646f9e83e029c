import { subjectsOf, type EventPlace } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { formatEventCursor, parseEventCursor } from "./event-cursor.ts";
import { eventFilters } from "./event-filters.ts";
import { EventMarks } from "./event-marks.ts";

describe("what a subscriber asks for", () => {
  test.each([
    ["task.>", ["hf.main.task.>"]],
    ["hf.main.task.reader.*.completed", ["hf.main.task.reader.*.completed"]],
    ["wait.w1.opened", ["hf.main.wait.w1.opened"]],
    [">", ["hf.main.task.>", "hf.main.conversation.>", "hf.main.wait.>", "hf.main.wallet.>"]],
    ["hf.main.>", ["hf.main.task.>", "hf.main.conversation.>", "hf.main.wait.>", "hf.main.wallet.>"]],
    [
      "*.*.c1.*",
      ["hf.main.task.*.c1.*", "hf.main.conversation.*.c1.*", "hf.main.wait.*.c1.*", "hf.main.wallet.*.c1.*"],
    ],
  ])("%s becomes filters of the events stream alone", (subject, filters) => {
    expect(eventFilters(subjectsOf("main"), subject)).toEqual(filters);
  });

  test.each([
    "",
    "task",
    "journal.>",
    "hf.other.task.>",
    "task.>.completed",
    "task..x",
    "task.a b",
    "inbox.d-0.>",
    "task. >",
  ])("%j is refused", (subject) => {
    expect(() => eventFilters(subjectsOf("main"), subject)).toThrow(expect.objectContaining({ code: "HF-1001" }));
  });
});

describe("a cursor", () => {
  const stream = { created: "2027-01-15T08:00:00.123456789Z", firstSeq: 1, lastSeq: 90 };
  const cursor = formatEventCursor(stream, { seq: 42, storedAtMs: 1_800_000_000_000 });

  test("is one word, and comes back as the message it stands behind", () => {
    expect(cursor).toMatch(/^[a-z0-9-]+$/);
    expect(parseEventCursor(cursor, stream)).toEqual({ seq: 42, storedAtMs: 1_800_000_000_000 });
  });

  test("of another stream is refused, one that is none too", () => {
    const other = { ...stream, created: "2027-01-16T08:00:00Z" };
    expect(() => parseEventCursor(cursor, other)).toThrow(expect.objectContaining({ code: "HF-4006" }));
    expect(() => parseEventCursor("42", stream)).toThrow(expect.objectContaining({ code: "HF-1001" }));
  });

  test("is refused once the event behind it may have been removed, and not before", () => {
    expect(parseEventCursor(cursor, { ...stream, firstSeq: 43 })).toMatchObject({ seq: 42 });
    expect(() => parseEventCursor(cursor, { ...stream, firstSeq: 44 })).toThrow(
      expect.objectContaining({ code: "HF-4009" }),
    );
  });
});

describe("which events were seen", () => {
  const at = (rev: number, index = 0, actor = "a"): EventPlace => ({ actor, rev, index });

  test("M1: what is not later than the newest of its actor is a repetition", () => {
    const marks = new EventMarks(true);
    marks.note(at(5, 1), true);
    expect([at(4), at(5), at(5, 1), at(5, 2), at(6)].map((place) => marks.judge(place))).toEqual([
      "repeated",
      "repeated",
      "repeated",
      "fresh",
      "fresh",
    ]);
    expect(marks.judge(at(1, 0, "b"))).toBe("fresh");
  });

  test("M3: a reader that began in the middle knows nothing of an actor before it has seen a first copy", () => {
    const marks = new EventMarks(false);
    expect(marks.judge(at(3))).toBe("unknown");
    marks.note(at(3), false);
    expect([marks.judge(at(3)), marks.judge(at(4))]).toEqual(["repeated", "unknown"]);
    marks.note(at(4), true);
    expect([marks.judge(at(4)), marks.judge(at(5))]).toEqual(["repeated", "fresh"]); // M2
  });

  test("M3: of an actor that it had to forget it knows nothing either", () => {
    const marks = new EventMarks(true, 2);
    for (const actor of ["a", "b"]) marks.note(at(1, 0, actor), true);
    expect(marks.judge(at(1, 0, "c"))).toBe("fresh");
    marks.note(at(2, 0, "a"), true); // the one heard of longest ago is b now
    marks.note(at(1, 0, "c"), true);
    expect(["a", "b", "c", "d"].map((actor) => marks.judge(at(1, 0, actor)))).toEqual([
      "repeated",
      "unknown",
      "repeated",
      "unknown",
    ]);
  });
});
