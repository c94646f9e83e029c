import { fromPromise } from "xstate";
import { describe, expect, test } from "vitest";
import { conversationMachine } from "./conversation.machine.ts";
import type { ModelJobInput, ToolJobInput } from "./job-input.ts";
import { startChild } from "./testing/child-rig.ts";
import { askCall, READER, readCall, reply, taskCall, testAgent } from "./testing/test-agent.ts";

const endless = <Input>() => fromPromise<unknown, Input>(() => new Promise<never>(() => {}));
const machine = conversationMachine.provide({
  actors: { "model.generate": endless<ModelJobInput>(), "tool.run.idempotent": endless<ToolJobInput>() },
});
const parentTask = { taskId: "t1", callId: "b", depth: 1 };

const start = (changes: object = {}) =>
  startChild(machine, { agent: testAgent(), agents: { reader: READER }, prompt: "work", parentTask, ...changes });
const told = (rig: ReturnType<typeof start>) =>
  rig.received.flatMap((event) => (event.type === "conversationStatus" ? [event["status"]] : []));

describe("the conversation of a task", () => {
  test("ends with its answer", () => {
    const rig = start();
    rig.settle("model-1-1", reply("42"));
    expect(rig.output()).toEqual({
      conversationId: "child",
      usage: { modelCalls: 1, inputTokens: 10, outputTokens: 5 },
      outcome: "answered",
      text: "42",
    });
  });

  test("ends with the cause and the last text when it comes to nothing", () => {
    const rig = start({ agent: testAgent({ limits: { maxIterations: 1, maxTurnMs: 60_000 } }) });
    rig.settle("model-1-1", reply("half of it", [readCall("a")]));
    rig.settle("call-1-a", "A");
    expect(rig.output()).toMatchObject({ outcome: "failed", failure: { cause: "limit" }, partial: "half of it" });
  });

  test("an empty answer is a failure", () => {
    const rig = start();
    rig.settle("model-1-1", reply("  "));
    expect(rig.output()).toMatchObject({ outcome: "failed", failure: { cause: "modelError" } });
  });

  test("a message of a person is answered before it ends", () => {
    const rig = start();
    rig.send({ type: "userMessage", messageId: "m1", text: "also this" });
    rig.settle("model-1-1", reply("first"));
    expect(rig.output()).toBeUndefined();
    rig.settle("model-2-2", reply("second"));
    expect(rig.output()).toMatchObject({ outcome: "answered", text: "second" });
  });

  test("tells its task when it waits for a person and when it goes on", () => {
    const rig = start();
    rig.settle("model-1-1", reply("", [askCall("c"), taskCall("b")]));
    expect(told(rig)).toEqual([]);
    rig.send({ type: "taskStatus", childId: "call-1-b", status: "waiting" });
    expect(told(rig)).toEqual(["waiting"]);
    rig.settle("call-1-c", { waitId: "w", status: "expired" });
    expect(told(rig)).toEqual(["waiting"]);
    rig.send({ type: "taskStatus", childId: "call-1-b", status: "running" });
    expect(told(rig)).toEqual(["waiting", "running"]);
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    expect(told(rig)).toEqual(["waiting", "running", "held", "running"]);
  });

  test("closed, it reports what it had", () => {
    const rig = start();
    rig.settle("model-1-1", reply("half of it", [readCall("a")]));
    rig.send({ type: "close" });
    expect(rig.output()).toMatchObject({ outcome: "closed", partial: "half of it" });
  });
});

test("a conversation that no task waits for tells nobody", () => {
  const rig = start({ parentTask: undefined });
  rig.settle("model-1-1", reply("", [askCall("c")]));
  rig.send({ type: "interrupt" });
  expect(rig.received).toEqual([]);
});
