import { expect, test } from "vitest";
import { admitSpeaker, isAttached, type Attachment } from "./attachment.ts";

const speaker = (epoch: number, host = "node-a:00000000") => ({ epoch, host });
const last: Attachment = { n: 3, speaker: speaker(7) };

test("A1: the greater lease epoch wins, and a host may attach again under its own", () => {
  expect(admitSpeaker(undefined, speaker(1), "attach", false)).toEqual({
    kind: "attached",
    attachment: { n: 1, speaker: speaker(1) },
  });
  for (const next of [speaker(8, "node-b:00000000"), speaker(7)])
    expect(admitSpeaker(last, next, "attach", true)).toEqual({ kind: "attached", attachment: { n: 4, speaker: next } });
});

test.each([
  ["an older epoch", speaker(6)],
  ["an older epoch of another host", speaker(6, "node-b:00000000")],
  ["the same epoch claimed by another host", speaker(7, "node-b:00000000")],
])("A1: %s is fenced, whether the newer one is connected or not", (_title, old) => {
  for (const connected of [true, false])
    for (const how of ["attach", "observe"] as const)
      expect(admitSpeaker(last, old, how, connected)).toEqual({ kind: "fenced", by: last.speaker });
});

test("A2: only frames of the current attachment pass, not those of an older connection of the same host", () => {
  expect([2, 3, 4].map((n) => isAttached(last, n))).toEqual([false, true, false]);
  expect(isAttached(undefined, 0)).toBe(false);
});

test("A3: of two observers one wins, and the other displaces nobody", () => {
  const first = admitSpeaker(undefined, speaker(7), "observe", false);
  if (first.kind !== "attached") throw new Error(first.kind);
  expect(admitSpeaker(first.attachment, speaker(9, "node-b:00000000"), "observe", true)).toEqual({
    kind: "observed",
    by: speaker(7),
  });
  expect(admitSpeaker(first.attachment, speaker(9, "node-b:00000000"), "observe", false).kind).toBe("attached");
});
