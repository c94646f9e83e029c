import { describe, expect, test } from "vitest";
import { taskStatus } from "./task-status.ts";
import { taskMachine } from "./task.machine.ts";
import { startChild, type ChildRig } from "./testing/child-rig.ts";
import { READER } from "./testing/test-agent.ts";

const usage = { modelCalls: 1, inputTokens: 1, outputTokens: 1 };
const answered = (text = "42") => ({ conversationId: "conv", usage, outcome: "answered", text });
const limit = { cause: "limit", code: "HF-5202", message: "No answer after 3 model calls." };
const failed = { conversationId: "conv", usage, outcome: "failed", failure: limit, partial: "half" };
const closed = { conversationId: "conv", usage, outcome: "closed", partial: "half" };

const start = (changes: object = {}) =>
  startChild(taskMachine, {
    callId: "b",
    childId: "call-1-b",
    subagent: READER,
    prompt: "work",
    isKept: true,
    ...changes,
  });
const status = (rig: ChildRig) => taskStatus(rig.child.getSnapshot().value, rig.child.getSnapshot().context);
const tell = (rig: ChildRig, output: object) => rig.send({ type: "conversationReported", output });
const reports = (rig: ChildRig) => rig.received.filter(({ type }) => type === "taskReported");
const isOver = (rig: ChildRig) => rig.received.some(({ type }) => type === "xstate.done.actor.child");
const follow = (rig: ChildRig, runs = 1) => rig.send({ type: "continueTask", runs, prompt: "more" });

describe("K4: a task that is kept", () => {
  test("tells how its run ended, and rests with that status", () => {
    const rig = start();
    tell(rig, answered());
    expect(reports(rig)).toEqual([
      {
        type: "taskReported",
        childId: "call-1-b",
        runs: 0,
        output: { taskId: "child", status: "completed", result: "42", conversationId: "conv" },
      },
    ]);
    expect(status(rig)).toBe("completed");
    expect(isOver(rig)).toBe(false);
    expect(rig.emitted.at(-1)).toMatchObject({ type: "taskCompleted" });
  });

  test("that hit its limit says so, with what there is", () => {
    const rig = start();
    tell(rig, failed);
    expect(reports(rig)[0]).toMatchObject({ output: { status: "failed", cause: "limit", partial: "half" } });
    expect(status(rig)).toBe("failed");
  });

  test("goes on in the same conversation, with a report of its own for every follow-up", () => {
    const rig = start();
    tell(rig, failed);
    follow(rig);
    expect(rig.sent).toEqual(["conversation userMessage"]);
    expect(status(rig)).toBe("running");
    tell(rig, answered("more"));
    expect(reports(rig).map((report) => report["runs"])).toEqual([0, 1]);
    expect(status(rig)).toBe("completed");
  });

  test("takes a message while it runs; the next report knows it", () => {
    const rig = start();
    follow(rig);
    tell(rig, answered());
    expect(reports(rig)).toMatchObject([{ runs: 1 }]);
  });

  test("that is stopped ends its run with what there is, and can go on", () => {
    const rig = start();
    rig.send({ type: "cancel", reason: "not now" });
    expect(rig.sent).toEqual(["conversation stopRun"]);
    tell(rig, closed);
    rig.send({ type: "conversationStatus", status: "held" });
    expect(reports(rig)[0]).toMatchObject({ output: { status: "cancelled", cause: "cancel", partial: "half" } });
    expect(status(rig)).toBe("cancelled");
    expect(rig.received.some(({ type }) => type === "taskStatus")).toBe(false);
    follow(rig);
    tell(rig, answered());
    expect(status(rig)).toBe("completed");
  });

  test("that was done when it was stopped is done", () => {
    const rig = start();
    rig.send({ type: "cancel" });
    tell(rig, answered());
    expect(status(rig)).toBe("completed");
  });

  test("a follow-up that meets it while it is being stopped is settled with that end", () => {
    const rig = start();
    rig.send({ type: "cancel" });
    follow(rig);
    expect(rig.sent).toEqual(["conversation stopRun"]);
    tell(rig, closed);
    expect(reports(rig)).toMatchObject([{ runs: 1, output: { status: "cancelled" } }]);
  });

  test("K2: a conversation that does not answer is left behind, and the task is over", () => {
    const rig = start();
    rig.send({ type: "cancel" });
    rig.clock.increment(15_000);
    expect(rig.output()).toMatchObject({ status: "cancelled" });
    expect(isOver(rig)).toBe(true);
  });

  test("every run has the deadline anew", () => {
    const rig = start({ deadlineMs: 60_000 });
    rig.clock.increment(50_000);
    tell(rig, answered());
    rig.clock.increment(100_000);
    expect(status(rig)).toBe("completed");
    follow(rig);
    rig.clock.increment(59_999);
    expect(rig.sent).toEqual(["conversation userMessage"]);
    rig.clock.increment(1);
    expect(rig.sent.at(-1)).toBe("conversation stopRun");
    tell(rig, closed);
    expect(reports(rig).at(-1)).toMatchObject({ output: { status: "timedOut", cause: "timeout" } });
  });

  test.each([
    ["is let go", { type: "release" }],
    ["is ended for good", { type: "cancel", isFinal: true }],
  ])("that rests is over when it %s", (_, event) => {
    const rig = start();
    tell(rig, answered());
    rig.send(event);
    expect(isOver(rig)).toBe(true);
    expect(rig.output()).toMatchObject({ status: "completed", result: "42" });
    expect(rig.emitted.at(-1)).toMatchObject({ type: "taskClosed" });
  });

  test("that is let go while it runs ends with its work", () => {
    const rig = start();
    rig.send({ type: "release" });
    expect(rig.sent).toEqual([]);
    tell(rig, answered());
    expect(isOver(rig)).toBe(true);
  });

  test("whose conversation somebody closed is over", () => {
    const rig = start();
    rig.settle("conversation", closed);
    expect(rig.output()).toMatchObject({ status: "cancelled", partial: "half" });
  });
});

describe("a question", () => {
  const asking = () => {
    const rig = start({ canAsk: true });
    rig.send({ type: "conversationAsked", callId: "q", question: "which?" });
    rig.send({ type: "conversationStatus", status: "waiting" });
    return rig;
  };

  test("is passed on, and the task waits", () => {
    const rig = asking();
    expect(rig.received[0]).toEqual({ type: "taskAsked", childId: "call-1-b", runs: 0, question: "which?" });
    expect(status(rig)).toBe("waiting");
  });

  test("is answered by a follow-up, in the same conversation", () => {
    const rig = asking();
    follow(rig);
    expect(rig.sent).toEqual(["conversation parentAnswered"]);
    follow(rig, 2);
    expect(rig.sent).toEqual(["conversation parentAnswered", "conversation userMessage"]);
  });

  test("may be answered by a person as well", () => {
    const rig = asking();
    rig.send({ type: "followUp", messageId: "m", text: "the second" });
    expect(rig.sent).toEqual(["conversation parentAnswered"]);
  });
});

describe("K5: a task that waits", () => {
  test("for its turn is queued, and begins when it has it", () => {
    const rig = start({ isHeld: true });
    expect(status(rig)).toBe("queued");
    expect(rig.child.getSnapshot().children).toEqual({});
    rig.send({ type: "proceed" });
    expect(status(rig)).toBe("running");
    expect(rig.emitted.map(({ type }) => type)).toEqual(["taskCreated", "taskQueued", "taskStarted"]);
  });

  test("for a slot of its node begins when there is one, and gives it back when it rests", () => {
    const rig = start({ root: "c1" });
    expect(status(rig)).toBe("running");
    expect(Object.keys(rig.child.getSnapshot().children)).toEqual(["slot", "conversation"]);
    tell(rig, answered());
    expect(Object.keys(rig.child.getSnapshot().children)).toEqual(["conversation"]);
  });

  test("for a person has none meanwhile", () => {
    const rig = start({ root: "c1" });
    rig.send({ type: "conversationStatus", status: "waiting" });
    expect(Object.keys(rig.child.getSnapshot().children)).toEqual(["conversation"]);
    rig.send({ type: "conversationStatus", status: "running" });
    expect(Object.keys(rig.child.getSnapshot().children)).toEqual(["conversation", "slot"]);
  });

  test.each([
    ["cancelled", { type: "cancel" }],
    ["timedOut", undefined],
  ])("can end as %s without having begun", (end, event) => {
    const rig = start({ isHeld: true, deadlineMs: 60_000 });
    if (event === undefined) rig.clock.increment(60_000);
    else rig.send(event);
    expect(rig.output()).toMatchObject({ status: end });
  });

  test("takes a follow-up as part of its assignment", () => {
    const rig = start({ isHeld: true });
    follow(rig);
    expect(rig.child.getSnapshot().context).toMatchObject({ prompt: "work\n\nmore", runs: 1 });
    rig.send({ type: "proceed" });
    tell(rig, answered());
    expect(reports(rig)).toMatchObject([{ runs: 1 }]);
  });

  test("is not silent", () => {
    const rig = start({ isHeld: true, idleMs: 1000 });
    rig.clock.increment(10_000);
    expect(status(rig)).toBe("queued");
  });
});

describe("silence", () => {
  test("of a task is limited; what happens in it, or below, counts as activity", () => {
    const rig = start({ idleMs: 1000 });
    for (let n = 0; n < 5; n += 1) {
      rig.clock.increment(999);
      rig.send({ type: "conversationActive" });
    }
    expect(rig.sent).toEqual([]);
    rig.clock.increment(1000);
    expect(rig.sent).toEqual(["conversation stopRun"]);
    tell(rig, closed);
    expect(reports(rig)[0]).toMatchObject({ output: { status: "timedOut", cause: "timeout", code: "HF-5204" } });
    expect(JSON.stringify(reports(rig))).toContain("Nothing happened");
  });

  test("activity is told upwards only when somebody there listens", () => {
    const quiet = start({ idleMs: 1000 });
    quiet.send({ type: "conversationActive" });
    expect(quiet.received).toEqual([]);
    const told = start({ wantsPulse: true });
    told.send({ type: "conversationActive" });
    expect(told.received).toEqual([{ type: "taskActive", childId: "call-1-b" }]);
  });
});

test("a deadline, silence, a stop and a limit are told apart", () => {
  const causes = [
    [{ deadlineMs: 1000 }, undefined, closed],
    [{ idleMs: 1000 }, undefined, closed],
    [{}, { type: "cancel", reason: "not needed" }, closed],
    [{}, undefined, failed],
  ] as const;
  const said = causes.map(([changes, event, output]) => {
    const rig = start(changes);
    if (event !== undefined) rig.send(event);
    rig.clock.increment(1000);
    tell(rig, output);
    const { cause, message } = rig.child.getSnapshot().context.end;
    return `${cause}: ${message}`;
  });
  expect(said).toEqual([
    "timeout: The task was not done within 1000 ms.",
    "timeout: Nothing happened in the task for 1000 ms.",
    "cancel: The task was cancelled: not needed.",
    "limit: No answer after 3 model calls.",
  ]);
});
