import { describe, expect, test } from "vitest";
import { waitOutputToResult } from "./owner-wait-result.ts";
import { AGENT, ANNA, answer, askAs, BEN, CARA, decline, offers, revoke, whyNot } from "./testing/wait-rig.ts";

const approvers = ["person-anna", "person-ben", "person-cara"];
const two = (changes: object = {}) => {
  const rig = askAs({ quorum: 2, approvers, ...changes });
  rig.send({ type: "awaited" });
  return rig;
};

describe("a quorum of named people", () => {
  test("settles with as many equal answers of distinct people", () => {
    const rig = two();
    rig.send(answer(ANNA));
    expect(offers(rig)).toEqual([]);
    expect(rig.send(answer(ANNA, "yes", "again"))).toBe(false);
    expect(whyNot(rig, answer(ANNA, "yes", "again"))).toMatchObject({ code: "HF-6001" });
    rig.send(answer(BEN));
    expect(offers(rig)).toMatchObject([
      { status: "answered", answer: "yes", approvals: ["person-anna", "person-ben"] },
    ]);
    const result = waitOutputToResult({ callId: "c", name: "ask" }, offers(rig)[0]);
    expect(result.content).toBe('{"answer":"yes","by":"owner","approvals":["person-anna","person-ben"]}');
  });

  test("other answers do not add up; the order of the keys of an object is no difference", () => {
    const answerSchema = { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } } };
    const rig = two({ options: undefined, answerSchema });
    rig.send(answer(ANNA, { a: 1, b: 2 }));
    rig.send(answer(BEN, { a: 1, b: 3 }));
    expect(offers(rig)).toEqual([]);
    rig.send(answer(CARA, { b: 2, a: 1 }));
    expect(offers(rig)).toMatchObject([{ answer: { a: 1, b: 2 }, approvals: ["person-anna", "person-cara"] }]);
  });

  test("one decline does not end it; when nobody can bring it about any more, it is declined", () => {
    const rig = two();
    rig.send(decline(ANNA));
    expect(offers(rig)).toEqual([]);
    rig.send(decline(BEN));
    expect(offers(rig)).toMatchObject([{ status: "declined", principal: "person-ben" }]);
  });

  test("split answers decline it as well, and say why", () => {
    const rig = two({ options: ["a", "b", "c"] });
    rig.send(answer(ANNA, "a"));
    rig.send(answer(BEN, "b"));
    rig.send(answer(CARA, "c"));
    expect(offers(rig)).toMatchObject([{ status: "declined", reason: "no answer can have 2 approvals any more" }]);
  });

  test("W2: of nobody else, and of no agent", () => {
    const rig = two({ approvers: ["person-anna", "person-ben"] });
    for (const event of [answer(CARA), answer(AGENT)]) {
      expect(rig.send(event)).toBe(false);
      expect(whyNot(rig, event)).toMatchObject({ why: "notAllowed", code: "HF-6003" });
    }
  });

  test("W4: one that was given is taken back, the others stay", () => {
    const rig = two();
    rig.send(answer(ANNA));
    rig.send(decline(BEN));
    expect(rig.send(revoke(BEN, "d-ben"))).toBe(true);
    rig.send(answer(BEN));
    expect(offers(rig)).toMatchObject([{ approvals: ["person-anna", "person-ben"] }]);
  });

  test("a long answer does not fit: all of them stand in one record", () => {
    const rig = two({ options: undefined });
    expect(whyNot(rig, answer(ANNA, "x".repeat(2000)))).toMatchObject({ why: "mismatch", code: "HF-6002" });
  });
});

test("without names: as many as it takes of whoever comes, agreeing or declining", () => {
  const agreed = askAs({ quorum: 2 });
  agreed.send(answer(ANNA));
  agreed.send(decline(BEN));
  agreed.send(answer(CARA));
  expect(agreed.child.getSnapshot().context).toMatchObject({ status: "answered" });
  const declined = askAs({ quorum: 2 });
  declined.send(decline(ANNA));
  declined.send(answer(BEN));
  declined.send(decline(CARA));
  expect(declined.child.getSnapshot().context).toMatchObject({ status: "declined" });
});
