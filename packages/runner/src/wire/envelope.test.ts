import { expect, test } from "vitest";
import { EnvelopeSeq, RunnerEpoch, StoreSeq } from "./coordinates.ts";
import { EnvelopeDraft, isDurable, placeEnvelope, RunnerEnvelope } from "./envelope.ts";

const at = { seq: EnvelopeSeq.parse(4), epoch: RunnerEpoch.parse(2), conversation: "c1" };
const drafts: readonly EnvelopeDraft[] = [
  { op: "status", state: "idle" },
  { op: "event", messageType: "TaskStarted", message: { uuid: "u", tool: null, deep: [{ x: 1.5 }] } },
  { op: "event", messageType: "TaskNotification", message: {}, requiresPersistence: true },
  { op: "result", messageType: "Result", message: {}, storeSeq: StoreSeq.parse(9) },
  { op: "interaction", interactionId: "i1", question: { text: "may I?" } },
  { op: "inputAck", inputId: "m1", duplicate: false },
  { op: "turnInterrupted", commandId: "x1", continuesFifo: true },
  { op: "error", code: "HF-9002", message: "broken" },
];

test.each(drafts)("$op survives a hop as JSON unchanged", (draft) => {
  const envelope = placeEnvelope(draft, at);
  expect(RunnerEnvelope.parse(JSON.parse(JSON.stringify(envelope)))).toEqual(envelope);
});

test("only marked events are durable", () => {
  expect(drafts.map(isDurable)).toEqual([false, false, true, false, false, false, false, false]);
});

test("a result carries its own place beside what the store confirmed", () => {
  const result = placeEnvelope(drafts[3] ?? { op: "status", state: "idle" }, at);
  expect(result).toMatchObject({ seq: 4, liveSeq: 4, storeSeq: 9 });
  expect(RunnerEnvelope.safeParse({ ...result, liveSeq: 5 }).success).toBe(false);
  expect(RunnerEnvelope.safeParse({ ...result, storeSeq: undefined }).success).toBe(false);
});

test.each([
  ["the mark on a status", { ...at, op: "status", state: "idle", requiresPersistence: true }],
  [
    "the mark on a result",
    { ...placeEnvelope(drafts[3] ?? { op: "status", state: "idle" }, at), requiresPersistence: true },
  ],
  [
    "the mark as false",
    { ...placeEnvelope(drafts[1] ?? { op: "status", state: "idle" }, at), requiresPersistence: false },
  ],
  ["a coordinate on an event", { ...placeEnvelope(drafts[1] ?? { op: "status", state: "idle" }, at), storeSeq: 1 }],
  ["place 0", { ...placeEnvelope(drafts[0] ?? { op: "status", state: "idle" }, at), seq: 0 }],
  ["no conversation", { ...placeEnvelope(drafts[0] ?? { op: "status", state: "idle" }, at), conversation: "" }],
])("%s is refused", (_title, value) => {
  expect(RunnerEnvelope.safeParse(value).success).toBe(false);
});
