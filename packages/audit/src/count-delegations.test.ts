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

  test("planted: one revision with two contents is a contradiction", () => {
    expect(count([task("t1", "a"), task("t2", "b")], [...good, done(4, "a")])).toMatchObject({
      duplicates: 1,
      details: { contradictions: [`${parent}^g:1@4`] },
    });
  });
});
