import { IDLE_TAG } from "@holdfast/protocol";
import { fromPromise } from "xstate";
import { describe, expect, test } from "vitest";
import { conversationMachine } from "./conversation.machine.ts";
import type { ModelJobInput, ToolJobInput } from "./job-input.ts";
import { startChild } from "./testing/child-rig.ts";
import { ASKER, READER, readCall, reply, testAgent } from "./testing/test-agent.ts";

const endless = <Input>() => fromPromise<unknown, Input>(() => new Promise<never>(() => {}));
const machine = conversationMachine.provide({
  actors: { "model.generate": endless<ModelJobInput>(), "tool.run.idempotent": endless<ToolJobInput>() },
});
const parentTask = { taskId: "t1", callId: "b", depth: 1, isKept: true, canAsk: true };
const start = (changes: object = {}) =>
  startChild(machine, { agent: testAgent(), agents: { reader: READER }, prompt: "work", parentTask, ...changes });
type Rig = ReturnType<typeof start>;
const reported = (rig: Rig) =>
  rig.received.flatMap((event) => (event.type === "conversationReported" ? [event["output"]] : []));
const top = (rig: Rig): unknown => rig.child.getSnapshot().value;
const ask = reply("", [{ callId: "q", name: "ask_parent", input: { question: "which?" } }]);

describe("the conversation of a task that can be continued", () => {
  test("reports its answer and rests; a follow-up is a further turn of it", () => {
    const rig = start();
    rig.settle("model-1-1", reply("42"));
    rig.send({ type: "userMessage", messageId: "follow-up-1", text: "more" });
    rig.settle("model-2-2", reply("43"));
    expect(reported(rig)).toMatchObject([
      { outcome: "answered", text: "42" },
      { outcome: "answered", text: "43" },
    ]);
    expect(top(rig)).toBe("idle");
  });

  test("reports that it hit its limit, and keeps the limit for the next run", () => {
    const agent = testAgent({ limits: { maxIterations: 1, maxTurnMs: 60_000 } });
    const rig = start({ agent });
    for (const run of [1, 2]) {
      rig.settle(`model-${run}-${run}`, reply("half of it", [readCall("a")]));
      rig.settle(`call-${run}-a`, "A");
      rig.send({ type: "userMessage", messageId: `follow-up-${run}`, text: "go on" });
    }
    expect(reported(rig)).toMatchObject(
      [1, 2].map(() => ({ outcome: "failed", failure: { cause: "limit" }, partial: "half of it" })),
    );
  });

  test("an empty answer is a failure", () => {
    const rig = start();
    rig.settle("model-1-1", reply("  "));
    expect(reported(rig)).toMatchObject([{ outcome: "failed", failure: { cause: "modelError" } }]);
  });

  test("stopped, it reports what it had, and a follow-up goes on", () => {
    const rig = start();
    rig.settle("model-1-1", reply("half of it", [readCall("a")]));
    rig.send({ type: "stopRun" });
    expect(reported(rig)).toMatchObject([{ outcome: "closed", partial: "half of it" }]);
    rig.send({ type: "userMessage", messageId: "follow-up-1", text: "go on" });
    rig.settle("model-2-2", reply("done"));
    expect(reported(rig)).toHaveLength(2);
  });

  test("stopped while a person had paused it, it reports as well", () => {
    const rig = start();
    rig.send({ type: "pause" });
    rig.settle("model-1-1", reply("half of it", [readCall("a")]));
    rig.settle("call-1-a", "A");
    rig.send({ type: "stopRun" });
    expect(reported(rig)).toMatchObject([{ outcome: "closed", partial: "half of it" }]);
  });

  test("stopped after its answer, it has nothing to add", () => {
    const rig = start();
    rig.settle("model-1-1", reply("42"));
    expect(rig.send({ type: "stopRun" })).toBe(false);
    expect(reported(rig)).toHaveLength(1);
  });
});

describe("a question to whoever delegated the work", () => {
  test("waits for the answer, which is the result of the call", () => {
    const rig = start({ agent: ASKER });
    rig.settle("model-1-1", ask);
    expect(rig.received[0]).toEqual({ type: "conversationAsked", callId: "q", question: "which?" });
    expect(rig.received[1]).toEqual({ type: "conversationStatus", status: "waiting" });
    expect(rig.child.getSnapshot().hasTag(IDLE_TAG)).toBe(true);
    rig.send({ type: "parentAnswered", callId: "q", text: "the second" });
    rig.send({ type: "parentAnswered", callId: "q", text: "the third" });
    expect(rig.child.getSnapshot().children).toHaveProperty("model-2-1");
    expect(rig.received.at(-1)).toEqual({ type: "conversationStatus", status: "running" });
  });

  test("is refused where nobody answers", () => {
    const rig = start({ agent: ASKER, parentTask: { ...parentTask, canAsk: false } });
    rig.settle("model-1-1", ask);
    expect(rig.received).toEqual([]);
    expect(rig.child.getSnapshot().children).toHaveProperty("model-2-1");
  });
});

test("a summary of its past is no run: nothing is reported again", () => {
  const rig = start();
  rig.settle("model-1-1", reply("42"));
  rig.send({ type: "condense" });
  const [condenser = ""] = Object.keys(rig.child.getSnapshot().children);
  rig.settle(condenser, reply("a summary"));
  expect(top(rig)).toBe("idle");
  expect(reported(rig)).toHaveLength(1);
});

test("its answer is reported before its past is condensed by itself, and once", () => {
  const agent = testAgent({ limits: { maxIterations: 5, maxTurnMs: 60_000, condenseAboveTokens: 15 } });
  const rig = start({ agent });
  rig.settle("model-1-1", reply("42"));
  expect(reported(rig)).toMatchObject([{ outcome: "answered", text: "42" }]);
  rig.settle("condense-2-1", reply("sum"));
  expect(top(rig)).toBe("idle");
  expect(reported(rig)).toHaveLength(1);
});

test("what happens in it is told when somebody above listens", () => {
  const rig = start({ parentTask: { ...parentTask, wantsPulse: true } });
  const pulses = () => rig.received.filter(({ type }) => type === "conversationActive").length;
  expect(pulses()).toBe(1);
  rig.settle("model-1-1", reply("", [readCall("a"), readCall("b")]));
  rig.settle("call-1-a", "A");
  expect(pulses()).toBe(2);
  rig.send({ type: "taskActive", childId: "call-9-x" });
  expect(pulses()).toBe(3);
});
