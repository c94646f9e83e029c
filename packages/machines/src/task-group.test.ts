import { describe, expect, test } from "vitest";
import { z } from "zod";
import { startConversation, type ConversationRig } from "./testing/conversation-rig.ts";
import { READER, reply, testChief } from "./testing/test-agent.ts";

const member = { subagent: "reader", prompt: "work" };
const start = (input: object, limits: Parameters<typeof testChief>[0] = {}) => {
  const rig = startConversation({ agent: testChief(limits), agents: { reader: READER } });
  rig.say("m1");
  rig.reply(reply("", [{ callId: "g", name: "task_group", input }]));
  return rig;
};
const three = (mode: string, more: object = {}) => start({ tasks: [member, member, member], mode, ...more });
const succeed = (rig: ConversationRig, index: number) =>
  rig.send({
    type: "taskReported",
    childId: `group-1-g-${index}`,
    runs: 0,
    output: { taskId: "actor", status: "completed", result: `result ${index}` },
  });
const fail = (rig: ConversationRig, index: number) =>
  rig.send({
    type: "taskReported",
    childId: `group-1-g-${index}`,
    runs: 0,
    output: { taskId: "actor", status: "failed", cause: "stuck", code: "HF-5202", message: "stuck", partial: "half" },
  });
const verdict = (rig: ConversationRig): unknown => {
  const last = rig.transcript().findLast((message) => message.role === "tool");
  if (last?.role !== "tool" || rig.modelStarts.length < 2) return undefined;
  return { ok: last.results[0]?.ok, ...z.looseObject({}).parse(JSON.parse(last.results[0]?.content ?? "")) };
};

describe("all", () => {
  test("waits for every member, and says of each how it ended", () => {
    const rig = three("all");
    succeed(rig, 2);
    fail(rig, 0);
    expect(verdict(rig)).toBeUndefined();
    succeed(rig, 1);
    expect(verdict(rig)).toMatchObject({
      ok: false,
      mode: "all",
      succeeded: 2,
      members: [
        { taskId: "group-1-g-0", status: "failed", cause: "stuck", partial: "half" },
        { taskId: "group-1-g-1", status: "completed", result: "result 1" },
        { taskId: "group-1-g-2", status: "completed", result: "result 2" },
      ],
    });
    expect(rig.sent).toEqual([]);
  });

  test("succeeds when every member has", () => {
    const rig = three("all");
    for (const index of [0, 1, 2]) succeed(rig, index);
    expect(verdict(rig)).toMatchObject({ ok: true, succeeded: 3 });
  });
});

describe("any", () => {
  test("the first success settles it, the others are stopped", () => {
    const rig = three("any");
    fail(rig, 0);
    expect(verdict(rig)).toBeUndefined();
    succeed(rig, 2);
    expect(verdict(rig)).toMatchObject({
      ok: true,
      members: [{ status: "failed" }, { isStopped: true }, { result: "result 2" }],
    });
    expect(rig.sent).toEqual(["group-1-g-1 cancel"]);
  });

  test("without any success it has failed", () => {
    const rig = three("any");
    for (const index of [0, 1, 2]) fail(rig, index);
    expect(verdict(rig)).toMatchObject({ ok: false, succeeded: 0 });
  });
});

describe("race", () => {
  test.each([
    ["a success", succeed, true],
    ["a failure", fail, false],
  ])("the first end settles it: %s", (_, end, ok) => {
    const rig = three("race");
    end(rig, 1);
    expect(verdict(rig)).toMatchObject({ ok });
    expect(rig.sent).toEqual(["group-1-g-0 cancel", "group-1-g-2 cancel"]);
  });

  test("a loser that ends later changes nothing", () => {
    const rig = three("race");
    succeed(rig, 1);
    const before = verdict(rig);
    succeed(rig, 0);
    rig.settle("group-1-g-2", { taskId: "actor", status: "cancelled", cause: "cancel" });
    expect(verdict(rig)).toEqual(before);
    expect(rig.modelStarts).toHaveLength(2);
  });
});

describe("quorum", () => {
  test("as many successes as wanted settle it", () => {
    const rig = three("quorum", { quorum: 2 });
    succeed(rig, 0);
    fail(rig, 1);
    expect(verdict(rig)).toBeUndefined();
    succeed(rig, 2);
    expect(verdict(rig)).toMatchObject({ ok: true, quorum: 2, succeeded: 2 });
  });

  test("it has failed as soon as it cannot be reached", () => {
    const rig = three("quorum", { quorum: 2 });
    fail(rig, 0);
    fail(rig, 1);
    expect(verdict(rig)).toMatchObject({ ok: false });
    expect(rig.sent).toEqual(["group-1-g-2 cancel"]);
  });

  test.each([
    ["larger than the group", { quorum: 4 }],
    ["missing", {}],
  ])("%s is refused", (_, more) => {
    expect(JSON.stringify(verdict(three("quorum", more)))).toContain("HF-5102");
  });
});

test("a group that does not fit whole is refused whole", () => {
  const rig = start({ tasks: [member, member, member], mode: "all" }, { maxOpenTasks: 2 });
  expect(JSON.stringify(verdict(rig))).toContain("HF-5202");
  expect(rig.snapshot().context.tasks ?? []).toEqual([]);
});

test("members wait for their turn like other tasks", () => {
  const rig = start({ tasks: [member, member], mode: "all" }, { maxRunningTasks: 1 });
  succeed(rig, 0);
  expect(rig.sent).toEqual(["group-1-g-1 proceed"]);
});

test("an interrupt stops every member", () => {
  const rig = three("all");
  succeed(rig, 0);
  rig.send({ type: "interrupt" });
  expect(rig.sent).toEqual(["group-1-g-1 cancel", "group-1-g-2 cancel"]);
});

test("a member is a task like any other afterwards", () => {
  const rig = three("any");
  succeed(rig, 0);
  rig.reply(reply("", [{ callId: "r", name: "task", input: { resume: "group-1-g-0", prompt: "more" } }]));
  expect(rig.sent.at(-1)).toBe("group-1-g-0 continueTask");
});
