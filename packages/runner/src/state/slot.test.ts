import { describe, expect, test } from "vitest";
import { RUNNER_PROTOCOL, type EngineContract } from "../wire/contract.ts";
import { Opening } from "../wire/opening.ts";
import { admitOpening, destroySlot, EMPTY_SLOT, type AdmissionFacts, type Slot } from "./slot.ts";

const contract: EngineContract = { engine: "sim", options: ["model"], permissionModes: ["ask"] };
const facts: AdmissionFacts = { tokenFits: true, contract, lastSeq: 0 };
const common = {
  protocol: RUNNER_PROTOCOL,
  token: "secret",
  requirements: { engine: "sim", options: ["model"], permissionMode: "ask" },
};
const store = { bucket: "b1", prefix: "p" };
const prepare = (more: object = {}): Opening =>
  Opening.parse({ ...common, op: "prepare", slotId: "s1", options: {}, ...more });
const activate = (more: object = {}): Opening =>
  Opening.parse({ ...common, op: "activate", slotId: "s1", conversation: "c1", ...more });
const attach = (more: object = {}): Opening =>
  Opening.parse({
    ...common,
    op: "attach",
    conversation: "c1",
    cursor: { seq: 0 },
    speaker: { epoch: 1, host: "node-a:00000000" },
    ...more,
  });

function slotAfter(...openings: readonly Opening[]): Slot {
  let slot = EMPTY_SLOT;
  for (const opening of openings) {
    const admission = admitOpening(slot, opening, facts);
    if (admission.kind === "refused") throw new Error(admission.detail);
    slot = admission.slot;
  }
  return slot;
}

const reasonOf = (slot: Slot, opening: Opening, more: Partial<AdmissionFacts> = {}): string => {
  const admission = admitOpening(slot, opening, { ...facts, ...more });
  return admission.kind === "refused" ? admission.reason : "admitted";
};

test("S2: empty, prepared ahead of any conversation, active for one", () => {
  expect(slotAfter(prepare())).toEqual({ kind: "prepared", slotId: "s1", claim: undefined });
  expect(slotAfter(prepare(), activate({ store }))).toEqual({
    kind: "active",
    slotId: "s1",
    conversation: "c1",
    store,
  });
  expect(slotAfter(prepare(), activate())).toMatchObject({ store: undefined });
  expect(reasonOf(slotAfter(prepare(), activate()), attach())).toBe("admitted");
});

describe("S3: refused, and nothing changes", () => {
  const prepared = slotAfter(prepare());
  const claimed = slotAfter(prepare({ resume: "r1", claim: { conversation: "c1", store } }));
  const active = slotAfter(prepare(), activate());
  test.each<[string, Slot, Opening, string, Partial<AdmissionFacts>?]>([
    ["a second prepare", prepared, prepare({ slotId: "s2" }), "slot-taken"],
    ["a prepare of a live runner", active, prepare({ slotId: "s2" }), "slot-taken"],
    ["an activation before prepare", EMPTY_SLOT, activate(), "slot-not-prepared"],
    ["a second activation", active, activate(), "slot-not-prepared"],
    ["an activation of another slot", prepared, activate({ slotId: "s2" }), "slot-other"],
    ["an activation after an envelope was numbered", prepared, activate(), "sequence-used", { lastSeq: 1 }],
    [
      "an activation for another conversation than claimed",
      claimed,
      activate({ conversation: "c2" }),
      "conversation-other",
    ],
    ["an activation with another store than claimed", claimed, activate({ store: { bucket: "b2" } }), "store-other"],
    ["an attach to nothing", prepared, attach(), "slot-not-prepared"],
    ["an attach to another conversation", active, attach({ conversation: "c2" }), "conversation-other"],
    ["anything after a half-done activation", destroySlot(), prepare(), "slot-destroyed"],
    ["another protocol", EMPTY_SLOT, prepare({ protocol: "holdfast.runner.v2" }), "protocol"],
    [
      "an engine the image has not",
      EMPTY_SLOT,
      prepare({ requirements: { engine: "other", options: ["speed"], permissionMode: "never" } }),
      "contract",
    ],
  ])("%s", (_title, slot, opening, reason, more) => {
    const before = structuredClone(slot);
    expect(reasonOf(slot, opening, more)).toBe(reason);
    expect(slot).toEqual(before);
  });

  test("the same store in another order of its keys is the same store", () => {
    expect(reasonOf(claimed, activate({ store: { prefix: "p", bucket: "b1" } }))).toBe("admitted");
  });
});

test("S1: with a wrong token every opening gets the same answer, whatever the slot holds", () => {
  const slots: readonly Slot[] = [EMPTY_SLOT, slotAfter(prepare()), slotAfter(prepare(), activate()), destroySlot()];
  const openings = [prepare({ protocol: "x" }), activate({ conversation: "c2" }), attach({ conversation: "c2" })];
  const answers = slots.flatMap((slot) =>
    openings.map((opening) => admitOpening(slot, opening, { ...facts, tokenFits: false })),
  );
  expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
    new Set([JSON.stringify({ kind: "refused", reason: "token", detail: "the token is not the one of this seat" })]),
  );
});

test.each([
  ["resume without a claim", { ...common, op: "prepare", slotId: "s1", options: {}, resume: "r1" }],
  ["an empty conversation", { ...common, op: "activate", slotId: "s1", conversation: "" }],
  ["no conversation", { ...common, op: "activate", slotId: "s1" }],
  ["a place without its journal", { ...attach(), cursor: { seq: 3 } }],
  ["a negative place", { ...attach(), cursor: { seq: -1 } }],
  ["a place that is no number", { ...attach(), cursor: { seq: "0" } }],
  ["no token", { ...attach(), token: undefined }],
  ["another first frame", { ...common, op: "configure", conversation: "c1" }],
])("an opening with %s is none", (_title, value) => {
  expect(Opening.safeParse(value).success).toBe(false);
});
