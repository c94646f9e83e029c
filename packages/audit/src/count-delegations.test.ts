import { describe, expect, test } from "vitest";
import { countDelegations } from "./count-delegations.ts";
import { orderSteps, type AuditedActor, type AuditedStep } from "./evidence.ts";

const parent = "d-1.conversation.c1";
const step = (rev: number, event: AuditedStep["event"]): AuditedStep => ({
  key: parent,
  genesis: "g:1",
  rev,
  event,
  status: "active",
  node: "a",
  atMs: 0,
});
const reply = (rev: number, calls: readonly string[]): AuditedStep =>
  step(rev, {
    type: "xstate.done.actor.model-1-1",
    output: { toolCalls: calls.map((callId) => ({ callId, name: "task" })) },
  });
const done = (rev: number, call: string): AuditedStep => step(rev, { type: `xstate.done.actor.call-1-${call}` });
const task = (id: string, call: string, status = "done"): AuditedActor => ({
  key: `d-2.task.${id}`,
  type: "task",
  id,
  genesis: "g:9",
  rev: 4,
  status,
  parent: { key: parent, genesis: "g:1", childId: `call-1-${call}` },
  outbox: [],
  snapshot: { value: "x", context: {}, children: {} },
});
const count = (actors: readonly AuditedActor[], steps: readonly AuditedStep[]) =>
  countDelegations({ actors, ...orderSteps(steps) }, { delegatingTools: ["task"] });

describe("counting delegations", () => {
  const good = [reply(2, ["a", "b"]), done(3, "a"), done(4, "b")];

  test("a clean run: decided equals applied", () => {
    expect(count([task("t1", "a"), task("t2", "b")], good)).toMatchObject({
      decided: 2,
      created: 2,
      settled: 2,
      applied: 2,
      duplicates: 0,
      lost: 0,
    });
  });

  test("a journal entry that was sent twice counts once", () => {
    expect(count([task("t1", "a"), task("t2", "b")], [...good, done(4, "b")])).toMatchObject({
      applied: 2,
      duplicates: 0,
    });
  });

  test("planted: a result applied twice moves duplicates", () => {
    expect(count([task("t1", "a"), task("t2", "b")], [...good, done(5, "b")])).toMatchObject({
      applied: 3,
      duplicates: 1,
    });
  });

  test("planted: a task created twice for one call moves duplicates", () => {
    expect(count([task("t1", "a"), task("t2", "b"), task("t3", "b")], good)).toMatchObject({
      created: 3,
      duplicates: 1,
    });
  });

  test("planted: a result that never came moves lost", () => {
    expect(count([task("t1", "a"), task("t2", "b", "active")], good.slice(0, 2))).toMatchObject({
      settled: 1,
      applied: 1,
      lost: 1,
    });
  });

  test("a result of a call that nobody made does not make up for one that never came", () => {
    expect(count([task("t1", "a"), task("t2", "x")], [reply(2, ["a", "b"]), done(3, "a"), done(4, "x")])).toMatchObject(
      {
        decided: 2,
        applied: 1,
        lost: 1,
      },
    );
  });

  test("planted: one revision with two contents is a contradiction", () => {
    expect(count([task("t1", "a"), task("t2", "b")], [...good, done(4, "a")])).toMatchObject({
      duplicates: 1,
      details: { contradictions: [`${parent}^g:1@4`] },
    });
  });
});

describe("tasks that can be continued", () => {
  const calls = (rev: number, ...inputs: readonly object[]): AuditedStep =>
    step(rev, {
      type: `xstate.done.actor.model-${rev}-1`,
      output: { toolCalls: inputs.map((input, index) => ({ callId: `c${index}`, name: "task", input })) },
    });
  const news = (rev: number, type: "taskReported" | "taskAsked", runs: number): AuditedStep =>
    step(rev, { type, childId: "call-2-c0", runs });
  const kept = { ...task("t1", "a", "active"), parent: { key: parent, genesis: "g:1", childId: "call-2-c0" } };
  const followUp = { resume: "call-2-c0", prompt: "more" };

  test("each follow-up is a delegation of its own, applied when a run that knew it has ended or asks", () => {
    const steps = [calls(2, {}), news(3, "taskReported", 0), calls(4, followUp), news(5, "taskAsked", 1)];
    expect(count([kept], steps)).toMatchObject({
      decided: 2,
      created: 1,
      settled: 0,
      applied: 2,
      duplicates: 0,
      lost: 0,
    });
  });

  test("planted: a follow-up whose run is only reported by what was before it is lost", () => {
    const steps = [calls(2, {}), news(3, "taskReported", 0), calls(4, followUp), news(5, "taskReported", 0)];
    expect(count([kept], steps)).toMatchObject({ decided: 2, applied: 1, lost: 1 });
  });

  test("the end of the task settles what was still open, and is no second result of a run", () => {
    const end = step(6, { type: "xstate.done.actor.call-2-c0" });
    const steps = [calls(2, {}), news(3, "taskReported", 0), calls(4, followUp), end];
    expect(count([{ ...kept, status: "done" }], steps)).toMatchObject({
      decided: 2,
      settled: 1,
      applied: 2,
      duplicates: 0,
    });
  });

  test("members of a group are one delegation each", () => {
    const end = step(3, { type: "xstate.done.actor.group-2-c0-0" });
    expect(count([], [calls(2, { tasks: [{}, {}] }), end])).toMatchObject({ decided: 2, applied: 1, lost: 1 });
  });

  test("calls whose ids are alike are told apart as conversations do", () => {
    const toolCalls = ["a/1", "a-1", "a-1"].map((callId) => ({ callId, name: "task" }));
    const end = (rev: number, name: string) => step(rev, { type: `xstate.done.actor.call-1-${name}` });
    const steps = [
      step(2, { type: "xstate.done.actor.model-1-1", output: { toolCalls } }),
      end(3, "a-1"),
      end(4, "a-1-3"),
    ];
    expect(count([], steps)).toMatchObject({ decided: 3, applied: 2, lost: 1 });
  });
});
