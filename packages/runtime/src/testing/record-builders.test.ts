import { ActorRecord, Effect } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { buildChild, buildEffect, buildParentLink, buildRecord, buildSnapshot, buildTimer } from "./record-builders.ts";

const KINDS = ["start", "send", "settled", "stop", "emit", "action", "log", "journal"] as const;

describe("record builders", () => {
  test("a built record is valid, and type and id follow its key", () => {
    const record = buildRecord({ key: "d-3.conversation.c7", rev: 9 });
    expect(ActorRecord.parse(record)).toEqual(record);
    expect(record).toMatchObject({ type: "conversation", id: "c7", rev: 9, status: "active" });
  });

  test("a record with everything in it is valid", () => {
    const record = buildRecord({
      parent: buildParentLink(),
      snapshot: buildSnapshot({ children: { child: buildChild() } }),
      timers: { "1": buildTimer() },
      outbox: KINDS.map((kind) => buildEffect(kind)),
      settled: buildEffect("settled"),
    });
    expect(record.outbox.map((effect) => effect.kind)).toEqual(KINDS);
  });

  test("a record that the overrides make invalid is refused", () => {
    expect(() => buildRecord({ genesis: "not a genesis" })).toThrow(/genesis/);
  });

  test.for(KINDS)("a built %s effect is valid and takes overrides", (kind) => {
    const effect = buildEffect(kind, { id: "12#3" });
    expect(Effect.parse(effect)).toEqual(effect);
    expect(effect).toMatchObject({ kind, id: "12#3" });
  });
});
