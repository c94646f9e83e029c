import type { Principal } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { noEffectOf } from "./no-effect.ts";
import { OwnerWaitInput } from "./owner-wait-input.ts";
import { waitOutputToResult } from "./owner-wait-result.ts";
import { ownerWaitMachine } from "./owner-wait.machine.ts";
import { startChild, type ChildRig } from "./testing/child-rig.ts";

const anna: Principal = { kind: "person", id: "anna", roles: [] };
const ben: Principal = { kind: "person", id: "ben", roles: [] };
const agent: Principal = { kind: "agent", id: "chief", roles: [] };
const ticker: Principal = { kind: "service", id: "ticker", roles: [] };

const base = { conversationId: "c1", agent: "chief", callId: "c", question: "Ship it?" };
const start = (changes: object = {}) => startChild(ownerWaitMachine, { ...base, options: ["yes", "no"], ...changes });
const answer = (value: unknown, principal: Principal | undefined = anna, answerId = "a1") => ({
  type: "answer",
  answerId,
  value,
  ...(principal === undefined ? {} : { principal }),
});
const state = (rig: ChildRig) => rig.child.getSnapshot();
const why = (rig: ChildRig, event: { type: string }) => {
  const { context, value } = state(rig);
  return noEffectOf("ownerWait", context, value, event);
};

test("it stands open, and may for ever", () => {
  const rig = start();
  expect(state(rig).context).toMatchObject({ status: "open", waitId: "child" });
  expect(state(rig).hasTag("idle")).toBe(true);
  rig.clock.increment(365 * 24 * 3_600_000);
  expect(state(rig).status).toBe("active");
  expect(rig.emitted).toEqual([
    { type: "waitOpened", waitId: "child", conversationId: "c1", agent: "chief", callId: "c", assignee: "owner" },
  ]);
});

test("W1: the first fitting answer counts and goes to the one who asked", () => {
  const rig = start();
  expect(rig.send(answer("yes"))).toBe(true);
  expect(rig.output()).toEqual({
    waitId: "child",
    status: "answered",
    answer: "yes",
    by: "owner",
    principal: "person-anna",
  });
  expect(rig.received).toHaveLength(1);
  expect(rig.send(answer("no", ben, "a2"))).toBe(false);
  expect(rig.output()).toMatchObject({ answer: "yes" });
});

test("W1: what became of later replies can be told: the same one again, or a closed question", () => {
  const rig = start();
  rig.send(answer("yes"));
  expect(why(rig, answer("yes"))).toEqual({ kind: "duplicate" });
  expect(why(rig, answer("no", ben, "a2"))).toMatchObject({ kind: "refused", code: "HF-6001", why: "closed" });
  // Another person's reply of the same id is another reply.
  expect(why(rig, answer("yes", ben))).toMatchObject({ kind: "refused", why: "closed" });
});

test("W1: a closed question says so also to somebody else than its assignee, never to an agent", () => {
  const rig = start({ assignee: "person-anna" });
  rig.send(answer("yes"));
  expect(why(rig, answer("no", ben, "a2"))).toMatchObject({ why: "closed", code: "HF-6001" });
  expect(why(rig, answer("no", agent, "a3"))).toMatchObject({ why: "notAllowed", code: "HF-6003" });
});

test("a mismatch names its place", () => {
  const properties = { lines: { type: "array", items: { type: "integer" } } };
  const rig = start({ options: undefined, answerSchema: { type: "object", properties } });
  const reason = "answer.lines[1] must be integer, found string.";
  expect(why(rig, answer({ lines: [1, "2"] }))).toMatchObject({ code: "HF-6002", why: "mismatch", reason });
});

describe("an answer that does not do is refused, the question stays open", () => {
  test.each([
    ["not one of the options", {}, answer("maybe"), "outOfRange", "HF-6005"],
    ["an option in other letters", {}, answer("Yes"), "outOfRange", "HF-6005"],
    ["a number of an option", {}, answer(0), "outOfRange", "HF-6005"],
    ["blank text", { options: undefined }, answer("  "), "empty", "HF-6006"],
    ["no text", { options: undefined }, answer(7), "mismatch", "HF-6002"],
    ["a huge text", { options: undefined }, answer("x".repeat(20_000)), "mismatch", "HF-6002"],
    [
      "against the schema",
      { options: undefined, answerSchema: { type: "object", required: ["n"], properties: { n: { type: "integer" } } } },
      answer({ n: "3" }),
      "mismatch",
      "HF-6002",
    ],
    ["W2: of an agent", {}, answer("yes", agent), "notAllowed", "HF-6003"],
    ["W2: of nobody", {}, { type: "answer", answerId: "a1", value: "yes" }, "notAllowed", "HF-6003"],
    ["W2: of another than the assignee", { assignee: "person-anna" }, answer("yes", ben), "notAllowed", "HF-6003"],
    ["W2: declined by an agent", {}, { type: "decline", answerId: "a1", principal: agent }, "notAllowed", "HF-6003"],
  ])("%s", (_, changes, event, reason, code) => {
    const rig = start(changes);
    expect(rig.send(event)).toBe(false);
    expect(state(rig).context.status).toBe("open");
    expect(why(rig, event)).toMatchObject({ kind: "refused", why: reason, code });
    const good = "answerSchema" in changes ? { n: 3 } : "yes";
    expect(rig.send(answer(good))).toBe(true);
  });

  test("a service may answer, and free text and objects are answers where they fit", () => {
    expect(start().send(answer("no", ticker))).toBe(true);
    const rig = start({ options: undefined, answerSchema: { type: "object", properties: { n: { type: "integer" } } } });
    rig.send(answer({ n: 3 }));
    expect(waitOutputToResult({ callId: "c", name: "ask" }, rig.output()).content).toBe(
      '{"answer":{"n":3},"by":"owner"}',
    );
  });
});

describe("W3: expiry", () => {
  test("fail: there is no answer, also when there would be a default", () => {
    const rig = start({ expiresInMs: 60_000, default: "yes" });
    expect(state(rig).hasTag("idle")).toBe(false);
    rig.clock.increment(59_999);
    expect(state(rig).status).toBe("active");
    rig.clock.increment(1);
    expect(rig.output()).toMatchObject({ status: "expired" });
    expect(rig.output()).not.toHaveProperty("answer");
    const result = waitOutputToResult({ callId: "c", name: "ask" }, rig.output());
    expect(result.ok).toBe(false);
    expect(JSON.parse(result.content)).toMatchObject({ error: { cause: "timeout", code: "HF-5204" } });
  });

  test("default: it is taken and called one", () => {
    const rig = start({ expiresInMs: 60_000, default: "no", onExpiry: "default" });
    rig.clock.increment(60_000);
    expect(rig.output()).toMatchObject({ status: "expired", answer: "no", by: "default" });
    expect(waitOutputToResult({ callId: "c", name: "ask" }, rig.output())).toMatchObject({
      ok: true,
      content: '{"answer":"no","by":"default"}',
    });
    expect(rig.emitted.at(-1)).toMatchObject({ type: "waitExpired", by: "default" });
  });

  test("an answer before it is the answer", () => {
    const rig = start({ expiresInMs: 60_000, default: "no", onExpiry: "default" });
    rig.clock.increment(59_999);
    rig.send(answer("yes"));
    rig.clock.increment(60_000);
    expect(rig.output()).toMatchObject({ status: "answered", answer: "yes", by: "owner" });
  });

  test("an answer after it is refused as closed", () => {
    const rig = start({ expiresInMs: 60_000 });
    rig.clock.increment(60_000);
    expect(rig.send(answer("yes"))).toBe(false);
    expect(why(rig, answer("yes"))).toMatchObject({ why: "expired", code: "HF-6004" });
  });
});

test("declined is an end of its own", () => {
  const rig = start();
  rig.send({ type: "decline", answerId: "a1", reason: "not my job", principal: anna });
  expect(rig.output()).toMatchObject({ status: "declined", principal: "person-anna", reason: "not my job" });
  const result = waitOutputToResult({ callId: "c", name: "ask" }, rig.output());
  expect(JSON.parse(result.content)).toMatchObject({ error: { cause: "policy" } });
});

test("withdrawn by the one who asked, but not by an agent from outside", () => {
  const rig = start();
  expect(rig.send({ type: "cancel", principal: agent })).toBe(false);
  expect(rig.send({ type: "cancel", reason: "closed" })).toBe(true);
  expect(rig.output()).toMatchObject({ status: "cancelled", reason: "closed" });
  expect(JSON.parse(waitOutputToResult({ callId: "c", name: "ask" }, rig.output()).content)).toMatchObject({
    error: { cause: "cancel" },
  });
});

describe("withdrawn by a person", () => {
  test("by anybody where a word is asked, by nobody but the assignee where one is named", () => {
    expect(start().send({ type: "cancel", principal: ben })).toBe(true);
    const rig = start({ assignee: "person-anna" });
    const cancel = { type: "cancel", principal: ben };
    expect(rig.send(cancel)).toBe(false);
    expect(why(rig, cancel)).toMatchObject({ kind: "refused", why: "notAllowed", code: "HF-6003" });
    expect(rig.send({ type: "cancel", principal: anna })).toBe(true);
  });

  test("not once it is answered", () => {
    const rig = start();
    rig.send(answer("yes"));
    expect(why(rig, { type: "cancel", principal: anna })).toMatchObject({ why: "closed", code: "HF-6001" });
  });
});

describe("questions that are refused", () => {
  test.each([
    ["a default that is no answer", { options: ["yes"], default: "no" }],
    ["a default on expiry without one", { onExpiry: "default", expiresInMs: 60_000 }],
    ["a default on expiry that never comes", { onExpiry: "default", default: "x" }],
    ["options that are equal", { options: ["a", "a"] }],
    ["a quorum that there are not enough for", { approvers: ["person-anna"], quorum: 2 }],
    ["approvers that are equal", { approvers: ["person-anna", "person-anna"] }],
    ["an agent as approver", { approvers: ["agent-chief"] }],
    ["a schema with a part that nobody would check", { answerSchema: { type: "string", pattern: "x" } }],
  ])("%s", (_, changes) => {
    expect(OwnerWaitInput.safeParse({ ...base, ...changes }).success).toBe(false);
  });
});
