import { describe, expect, test } from "vitest";
import { EnvelopeSeq, RunnerEpoch } from "../wire/coordinates.ts";
import { placeEnvelope, type EnvelopeDraft, type RunnerEnvelope } from "../wire/envelope.ts";
import { assertSameFact, claimKeyOf, factOf, type RunnerFact } from "./fact-claim.ts";

type Message = Extract<EnvelopeDraft, { op: "event" }>["message"];
const envelope = (message: Message, seq = 7): RunnerEnvelope =>
  placeEnvelope(
    { op: "event", messageType: "TaskUpdated", message, requiresPersistence: true },
    { seq: EnvelopeSeq.parse(seq), epoch: RunnerEpoch.parse(1), conversation: "c1" },
  );
const fact: RunnerFact = factOf("sim", envelope({ uuid: "u1", status: "killed", summary: null }));

test("a fact keeps the message as it came, nulls and the vendor's words included", () => {
  expect(fact).toEqual({
    conversation: "c1",
    type: "engine.message",
    causation: "sim:TaskUpdated:u1",
    payload: { engine: "sim", runnerSeq: 7, message: { uuid: "u1", status: "killed", summary: null } },
  });
});

describe("causation", () => {
  test("without a uuid is the content, in any order of its keys", () => {
    const [first, second, other] = [{ a: 1, b: [2, { c: 3, d: 4 }] }, { b: [2, { d: 4, c: 3 }], a: 1 }, { a: 2 }].map(
      (message) => factOf("sim", envelope(message)).causation,
    );
    expect(second).toBe(first);
    expect(other).not.toBe(first);
  });

  test("an envelope that is not durable has none", () => {
    const at = { seq: EnvelopeSeq.parse(1), epoch: RunnerEpoch.parse(1), conversation: "c1" };
    expect(() => factOf("sim", placeEnvelope({ op: "status", state: "idle" }, at))).toThrow(
      expect.objectContaining({ code: "HF-1001" }),
    );
  });
});

describe("claims", () => {
  test("are keyed by conversation, type and causation, each for itself", () => {
    const keys = [
      fact,
      { ...fact, conversation: "c2" },
      { ...fact, type: "other" },
      { ...fact, causation: "x" },
      { ...fact, conversation: "c1x", type: fact.type.slice(1) },
    ].map((each) => claimKeyOf(each));
    expect(new Set(keys).size).toBe(keys.length);
    expect(claimKeyOf({ ...fact })).toBe(keys[0]);
  });

  test.each(["conversation", "type", "causation"])("an empty %s is refused", (field) => {
    expect(() => claimKeyOf({ ...fact, [field]: "" })).toThrow(expect.objectContaining({ facts: { field } }));
  });

  test("a runner that counts anew brings the same fact", () => {
    const again = factOf("sim", envelope({ summary: null, status: "killed", uuid: "u1" }, 1));
    expect(claimKeyOf(again)).toBe(claimKeyOf(fact));
    expect(() => assertSameFact(again, fact.payload)).not.toThrow();
  });

  test.each([
    ["message", { ...fact.payload, message: { uuid: "u1", status: "completed", summary: null } }],
    ["nulls", { ...fact.payload, message: { uuid: "u1", status: "killed" } }],
    ["engine", { ...fact.payload, engine: "other" }],
  ])("the same id with another content (%s) is a loud error", (_what, stored) => {
    expect(() => assertSameFact(fact, stored)).toThrow(expect.objectContaining({ code: "HF-9003" }));
  });
});
