import type { Principal } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { Question } from "./owner-wait-input.ts";
import { waitOutputToResult } from "./owner-wait-result.ts";
import { AGENT, ANNA, answer, askAs, BEN, CARA, decline, offers, revoke, whyNot } from "./testing/wait-rig.ts";
import type { ChildRig } from "./testing/child-rig.ts";

const context = (rig: ChildRig) => rig.child.getSnapshot().context;
const announced = (rig: ChildRig) => rig.emitted.map(({ type }) => type);
const withRole = (principal: Principal, ...roles: string[]): Principal => ({ ...principal, roles });
const boss = withRole({ kind: "person", id: "boss", roles: [] }, "operator");
const reassign = (principal: Principal, to: object, more: object = {}) => ({
  type: "reassign",
  to,
  principal,
  ...more,
});

describe("a role", () => {
  test("W2: whoever has it may answer, nobody else, an operator neither", () => {
    const rig = askAs({ role: "reviewer" });
    expect(context(rig)).toMatchObject({ assignee: "reviewer" });
    for (const sender of [ANNA, withRole(BEN, "writer"), boss, withRole(AGENT, "reviewer")]) {
      expect(rig.send(answer(sender))).toBe(false);
      expect(whyNot(rig, answer(sender))).toMatchObject({ why: "notAllowed", code: "HF-6003" });
    }
    expect(rig.send(answer(withRole(CARA, "writer", "reviewer")))).toBe(true);
  });
});

describe("reassignment", () => {
  test("the former assignee may not answer any more, the new one may", () => {
    const rig = askAs({ assignee: "person-anna" });
    expect(rig.send(reassign(ANNA, { assignee: "person-ben" }))).toBe(true);
    expect(whyNot(rig, reassign(boss, { assignee: "person-ben" }))).toEqual({ kind: "duplicate" });
    expect(rig.send(answer(ANNA))).toBe(false);
    expect(rig.send(answer(BEN))).toBe(true);
    expect(announced(rig)).toEqual(["waitOpened", "waitReassigned", "waitAnswered"]);
    expect(rig.emitted[1]).toMatchObject({ assignee: "person-ben" });
  });

  test("to a role, and from it to a person", () => {
    const rig = askAs({ assignee: "person-anna" });
    rig.send(reassign(ANNA, { role: "reviewer" }));
    expect(rig.send(answer(ANNA))).toBe(false);
    expect(rig.send(reassign(withRole(CARA, "reviewer"), { assignee: "person-ben" }))).toBe(true);
    expect(rig.send(answer(withRole(CARA, "reviewer")))).toBe(false);
    expect(rig.send(answer(BEN))).toBe(true);
  });

  test("by nobody else than who may answer, or an operator; not once it is answered", () => {
    const rig = askAs({ assignee: "person-anna" });
    for (const sender of [BEN, AGENT, withRole(AGENT, "operator")]) {
      expect(rig.send(reassign(sender, { assignee: "person-ben" }))).toBe(false);
      expect(whyNot(rig, reassign(sender, { assignee: "person-ben" }))).toMatchObject({ code: "HF-6003" });
    }
    expect(rig.send(reassign(boss, { assignee: "person-ben" }))).toBe(true);
    rig.send(answer(BEN));
    expect(whyNot(rig, reassign(boss, { assignee: "person-anna" }))).toMatchObject({ why: "closed", code: "HF-6001" });
  });

  test("one of several approvers hands on what is asked of them", () => {
    const rig = askAs({ quorum: 2, approvers: ["person-anna", "person-ben"] });
    const toCara = { assignee: "person-cara" };
    expect(whyNot(rig, reassign(ANNA, { assignee: "person-ben" }))).toMatchObject({ code: "HF-6002" });
    expect(whyNot(rig, reassign(ANNA, { role: "reviewer" }))).toMatchObject({ code: "HF-6002" });
    expect(whyNot(rig, reassign(ANNA, toCara, { from: "person-ben" }))).toMatchObject({ code: "HF-6003" });
    expect(whyNot(rig, reassign(boss, toCara))).toMatchObject({ code: "HF-6003" });
    rig.send(answer(ANNA));
    expect(whyNot(rig, reassign(ANNA, toCara))).toMatchObject({ why: "closed", code: "HF-6001" });
    expect(rig.send(reassign(boss, toCara, { from: "person-ben" }))).toBe(true);
    expect(rig.send(answer(BEN))).toBe(false);
    expect(rig.send(answer(CARA))).toBe(true);
    expect(context(rig)).toMatchObject({ status: "answered", approvals: ["person-anna", "person-cara"] });
  });

  test("a question that takes several people is asked of no single one", () => {
    const rig = askAs({ quorum: 2 });
    expect(whyNot(rig, reassign(ANNA, { assignee: "person-ben" }))).toMatchObject({ code: "HF-6002" });
  });
});

describe("escalation", () => {
  const escalation = [
    { assignee: "person-ben", expiresInMs: 20_000 },
    { role: "reviewer", expiresInMs: 30_000 },
  ];
  const start = (changes: object = {}) =>
    askAs({ assignee: "person-anna", expiresInMs: 10_000, onExpiry: "escalate", escalation, ...changes });

  test("step by step, each once, and in the end nobody has answered", () => {
    const rig = start();
    rig.clock.increment(10_000);
    expect(context(rig)).toMatchObject({ assignee: "person-ben", status: "open", escalated: 1 });
    expect(rig.send(answer(ANNA))).toBe(false);
    rig.clock.increment(19_999);
    expect(context(rig)).toMatchObject({ escalated: 1 });
    rig.clock.increment(1);
    expect(context(rig)).toMatchObject({ assignee: "reviewer", escalated: 2 });
    expect(rig.send(answer(BEN))).toBe(false);
    rig.clock.increment(30_000);
    expect(context(rig)).toMatchObject({ status: "expired" });
    expect(context(rig)).not.toHaveProperty("answer");
    expect(announced(rig)).toEqual(["waitOpened", "waitEscalated", "waitEscalated", "waitExpired"]);
  });

  test("whoever is asked last may answer", () => {
    const rig = start();
    rig.clock.increment(10_000);
    rig.clock.increment(20_000);
    rig.send({ type: "awaited" });
    expect(rig.send(answer(withRole(CARA, "reviewer")))).toBe(true);
    expect(offers(rig)).toMatchObject([{ status: "answered", principal: "person-cara" }]);
    rig.clock.increment(100_000);
    expect(context(rig)).toMatchObject({ status: "answered" });
  });

  test("W3: the default is taken at its end only where that is said", () => {
    const rig = start({ escalation: [escalation[0]], default: "no", onEscalated: "default" });
    rig.clock.increment(10_000);
    rig.clock.increment(20_000);
    expect(context(rig)).toMatchObject({ status: "expired", answer: "no", by: "default" });
    const silent = start({ escalation: [escalation[0]], default: "no" });
    silent.clock.increment(10_000);
    silent.clock.increment(20_000);
    expect(context(silent)).toMatchObject({ status: "expired", endReason: "Nobody answered in time." });
  });

  test("an answer that is taken back too late goes up", () => {
    const rig = start();
    rig.send(answer(ANNA));
    rig.clock.increment(10_000);
    expect(context(rig)).toMatchObject({ status: "answered" });
    rig.send(revoke(ANNA));
    expect(context(rig)).toMatchObject({ status: "open", assignee: "person-ben" });
    rig.clock.increment(20_000);
    expect(context(rig)).toMatchObject({ assignee: "reviewer" });
  });
});

describe("reminders", () => {
  const reminders = (rig: ChildRig) => announced(rig).filter((type) => type === "waitReminded").length;

  test("so often, so many times, and none once it is answered", () => {
    const rig = askAs({ remindEveryMs: 1000, maxReminders: 3 });
    rig.clock.increment(999);
    expect(reminders(rig)).toBe(0);
    for (let n = 1; n <= 5; n += 1) {
      rig.clock.increment(1000);
      expect(reminders(rig)).toBe(Math.min(n, 3));
    }
    const answered = askAs({ remindEveryMs: 1000 });
    answered.send(answer(ANNA));
    answered.clock.increment(10_000);
    expect(reminders(answered)).toBe(0);
    answered.send(revoke(ANNA));
    answered.clock.increment(1000);
    expect(reminders(answered)).toBe(1);
  });

  test("they begin anew with whoever is asked next", () => {
    const rig = askAs({ remindEveryMs: 1000, maxReminders: 1 });
    rig.clock.increment(5000);
    rig.send(reassign(ANNA, { assignee: "person-ben" }));
    rig.clock.increment(1000);
    expect(reminders(rig)).toBe(2);
  });
});

describe("a call that is to be approved", () => {
  const toolCall = { id: "t1", name: "pay", args: { amount: 5 } };
  const answerSchema = {
    type: "object",
    required: ["amount"],
    properties: { amount: { type: "integer", maximum: 9 } },
  };
  const start = (changes: object = {}) => {
    const actions = ["accept", "edit", "respond", "reject"];
    const rig = askAs({ kind: "tool_call", toolCall, actions, answerSchema, options: undefined, ...changes });
    rig.send({ type: "awaited" });
    return rig;
  };
  const act = (action: string, value?: unknown) => ({
    type: "answer",
    answerId: "a1",
    action,
    ...(value !== undefined && { value }),
    principal: ANNA,
  });
  const told = (rig: ChildRig) => waitOutputToResult({ callId: "c", name: "ask" }, offers(rig)[0]).content;

  test.each([
    ["accept", undefined, '{"answer":true,"by":"owner","action":"accept"}'],
    ["edit", { amount: 3 }, '{"answer":{"amount":3},"by":"owner","action":"edit"}'],
    ["respond", "why so much?", '{"answer":"why so much?","by":"owner","action":"respond"}'],
  ])("%s", (action, value, result) => {
    const rig = start();
    expect(rig.send(act(action, value))).toBe(true);
    expect(told(rig)).toBe(result);
  });

  test("reject is to decline", () => {
    const rig = start();
    rig.send({ ...act("reject"), reason: "too much" });
    expect(offers(rig)).toMatchObject([{ status: "declined", reason: "too much" }]);
    const declined = start();
    declined.send(decline(ANNA));
    expect(offers(declined)).toMatchObject([{ status: "declined" }]);
  });

  test.each([
    ["accept with a value", act("accept", true), "mismatch", "HF-6002"],
    ["edit without one", act("edit"), "empty", "HF-6006"],
    ["edit with no arguments", act("edit", "3"), "mismatch", "HF-6002"],
    ["edit against the schema", act("edit", { amount: 10 }), "mismatch", "HF-6002"],
    ["blank words", act("respond", " "), "empty", "HF-6006"],
  ])("%s is refused", (_, event, reason, code) => {
    const rig = start();
    expect(rig.send(event)).toBe(false);
    expect(whyNot(rig, event)).toMatchObject({ why: reason, code });
  });

  test("an action that is not allowed is refused", () => {
    const rig = start({ actions: ["accept"] });
    for (const event of [act("edit", { amount: 3 }), { ...act("respond", "x"), action: undefined }]) {
      expect(rig.send(event)).toBe(false);
      expect(whyNot(rig, event)).toMatchObject({ why: "outOfRange", code: "HF-6005" });
    }
    expect(whyNot(askAs(), act("accept"))).toMatchObject({ code: "HF-6005" });
  });
});

test.each([
  ["escalation without its time", { onExpiry: "escalate", escalation: [{ assignee: "x", expiresInMs: 1000 }] }],
  ["escalation to nobody", { onExpiry: "escalate", expiresInMs: 1000 }],
  ["steps that are never taken", { expiresInMs: 1000, escalation: [{ assignee: "x", expiresInMs: 1000 }] }],
  [
    "a step to two",
    { onExpiry: "escalate", expiresInMs: 1000, escalation: [{ assignee: "x", role: "y", expiresInMs: 1000 }] },
  ],
  ["a quorum of one person", { assignee: "person-anna", quorum: 2 }],
  ["approvers and a role", { approvers: ["person-anna"], role: "reviewer" }],
  ["actions that are equal", { actions: ["accept", "accept"] }],
  ["a kind that nobody knows", { kind: "shout" }],
  ["a huge call", { toolCall: { id: "t", name: "n", args: "x".repeat(20_000) } }],
])("a question with %s is refused", (_, changes) => {
  expect(Question.safeParse({ question: "Ship it?", ...changes }).success).toBe(false);
});
