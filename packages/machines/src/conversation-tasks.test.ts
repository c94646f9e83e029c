import { describe, expect, test } from "vitest";
import { TaskInput } from "./task-input.ts";
import { startConversation, type ConversationRig } from "./testing/conversation-rig.ts";
import { problemOfHistory } from "./testing/provider-history.ts";
import { READER, reply, taskCall, testAgent, testChief } from "./testing/test-agent.ts";

type Limits = Parameters<typeof testChief>[0];
const start = (limits: Limits = {}) => {
  const rig = startConversation({ agent: testChief(limits), agents: { reader: READER } });
  rig.say("m1");
  return rig;
};
const call = (callId: string, name: string, input: object) => ({ callId, name, input });
const task = (callId: string, more: object = {}) =>
  call(callId, "task", { subagent: "reader", prompt: "work", ...more });
const done = (result: string) => ({ taskId: "actor", status: "completed", result, conversationId: "conv" });
const failed = {
  taskId: "actor",
  status: "failed",
  cause: "limit",
  code: "HF-5202",
  message: "No answer after 3 model calls.",
  partial: "half",
};
const report = (rig: ConversationRig, childId: string, output: object, runs = 0) =>
  rig.send({ type: "taskReported", childId, runs, output });
/** Results of the last step as the model sees them, by call. */
const results = (rig: ConversationRig): Readonly<Record<string, unknown>> => {
  const last = rig.transcript().findLast((message) => message.role === "tool");
  if (last?.role !== "tool") return {};
  return Object.fromEntries(last.results.map(({ callId, content }) => [callId, JSON.parse(content) as unknown]));
};
const booked = (rig: ConversationRig) =>
  (rig.snapshot().context.tasks ?? []).map(({ childId, status, isHeld }) => `${childId} ${isHeld ? "held" : status}`);
const modelCalls = (rig: ConversationRig) => rig.modelStarts.length;

describe("a task in the foreground", () => {
  test("its report is the result, with an id to go on with; the child stays", () => {
    const rig = start();
    rig.reply(reply("", [task("a")]));
    report(rig, "call-1-a", done("42"));
    expect(results(rig)).toEqual({ a: { taskId: "call-1-a", status: "completed", result: "42" } });
    expect(rig.children()).toContain("call-1-a");
    expect(modelCalls(rig)).toBe(2);
  });

  test("one that hit its limit is an error with reason and partial result, never an empty success", () => {
    const rig = start();
    rig.reply(reply("", [task("a"), task("b")]));
    report(rig, "call-1-a", failed);
    report(rig, "call-1-b", { taskId: "actor", status: "completed" });
    expect(results(rig)).toMatchObject({
      a: { error: { cause: "limit", code: "HF-5202", partial: "half", taskId: "call-1-a" } },
      b: { error: { cause: "internal", taskId: "call-1-b" } },
    });
  });

  test("a report that comes twice, or late, changes no result", () => {
    const rig = start();
    rig.reply(reply("", [task("a"), task("b")]));
    report(rig, "call-1-a", done("first"));
    report(rig, "call-1-a", done("second"));
    report(rig, "call-1-b", done("b"));
    expect(results(rig)["a"]).toMatchObject({ result: "first" });
    const before = modelCalls(rig);
    report(rig, "call-1-a", done("third"));
    rig.settle("call-1-a", done("fourth"));
    expect(results(rig)["a"]).toMatchObject({ result: "first" });
    expect(modelCalls(rig)).toBe(before);
  });

  test("a reply that comes a second time starts nothing a second time", () => {
    const rig = start();
    const once = reply("", [task("a")]);
    rig.reply(once);
    expect(rig.settle("model-1-1", once)).toBe(false);
    expect(rig.children()).toEqual(["call-1-a"]);
    expect(booked(rig)).toEqual(["call-1-a running"]);
  });

  test("news of a task that nobody knows are ignored", () => {
    const rig = start();
    rig.reply(reply("", [task("a")]));
    expect(report(rig, "call-7-x", done("lost"))).toBe(false);
    expect(rig.state().status).toBe("waiting");
  });

  test("an actor that broke is an error", () => {
    const rig = start();
    rig.reply(reply("", [task("a")]));
    rig.fail("call-1-a", { name: "RuntimeFault", code: "HF-3002", message: "type unknown" });
    expect(results(rig)).toMatchObject({ a: { error: { code: "HF-3002", message: "type unknown" } } });
  });
});

describe("a task in the background", () => {
  const inBackground = () => {
    const rig = start();
    rig.reply(reply("", [task("a", { background: true })]));
    return rig;
  };

  test("the call has its result at once, the model goes on", () => {
    const rig = inBackground();
    expect(results(rig)).toEqual({ a: { taskId: "call-1-a", status: "running" } });
    expect(modelCalls(rig)).toBe(2);
  });

  test("it ends also when the conversation is idle, and task_output tells how", () => {
    const rig = inBackground();
    rig.reply(reply("meanwhile"));
    expect(rig.state().status).toBe("idle");
    report(rig, "call-1-a", done("42"));
    rig.say("m2");
    rig.reply(reply("", [call("o", "task_output", { taskId: "call-1-a" })]));
    expect(results(rig)).toEqual({ o: { taskId: "call-1-a", status: "completed", result: "42" } });
  });

  test("task_output waits for the end as long as it is told to", () => {
    const rig = inBackground();
    rig.reply(reply("", [call("o", "task_output", { taskId: "call-1-a", waitMs: 1000 })]));
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "tasks" });
    rig.clock.increment(1000);
    expect(results(rig)).toEqual({ o: { taskId: "call-1-a", status: "running" } });
    rig.reply(reply("", [call("p", "task_output", { taskId: "call-1-a", waitMs: 1000 })]));
    report(rig, "call-1-a", failed);
    expect(results(rig)).toMatchObject({ p: { error: { cause: "limit", partial: "half" } } });
    const before = modelCalls(rig);
    rig.clock.increment(1000);
    expect(modelCalls(rig)).toBe(before);
  });

  test("waiting for it again and again is not being stuck, asking again and again is", () => {
    const rig = inBackground();
    const output = (waitMs: number) => reply("", [call("o", "task_output", { taskId: "call-1-a", waitMs })]);
    for (let n = 0; n < 6; n += 1) {
      rig.reply(output(1000));
      rig.clock.increment(1000);
    }
    expect(rig.state().status).toBe("running");
    for (let n = 0; n < 5; n += 1) rig.reply(output(0));
    expect(rig.state().status).toBe("stuck");
  });

  test("task_stop tells it to stop; its end is known afterwards", () => {
    const rig = inBackground();
    rig.reply(reply("", [call("s", "task_stop", { taskId: "call-1-a", reason: "not needed" })]));
    expect(rig.sent).toEqual(["call-1-a cancel"]);
    expect(results(rig)).toEqual({ s: { taskId: "call-1-a", status: "stopping" } });
    report(rig, "call-1-a", { ...failed, status: "cancelled", cause: "cancel" });
    expect(booked(rig)).toEqual(["call-1-a cancelled"]);
  });

  test("an unknown id is an error that lists the known ones", () => {
    const rig = inBackground();
    rig.reply(reply("", [call("o", "task_output", { taskId: "call-1-b" })]));
    expect(results(rig)).toMatchObject({ o: { error: { code: "HF-5205" } } });
    expect(JSON.stringify(results(rig))).toContain("Known: call-1-a.");
  });
});

describe("resume", () => {
  const ended = () => {
    const rig = start();
    rig.reply(reply("", [task("a")]));
    report(rig, "call-1-a", done("first"));
    return rig;
  };

  test("goes on with the same child, and waits for the run that knows the message", () => {
    const rig = ended();
    rig.reply(reply("", [call("r", "task", { resume: "call-1-a", prompt: "more" })]));
    expect(rig.sent).toEqual(["call-1-a continueTask"]);
    expect(rig.children().filter((id) => id.startsWith("call-"))).toEqual(["call-1-a"]);
    report(rig, "call-1-a", done("still the first run"), 0);
    expect(rig.state().status).toBe("waiting");
    report(rig, "call-1-a", done("second"), 1);
    expect(results(rig)).toEqual({ r: { taskId: "call-1-a", status: "completed", result: "second" } });
  });

  test("a running task takes a message too", () => {
    const rig = start();
    rig.reply(reply("", [task("a", { background: true })]));
    rig.reply(reply("", [call("r", "task", { resume: "call-1-a", prompt: "also this", background: true })]));
    expect(rig.sent).toEqual(["call-1-a continueTask"]);
    expect(results(rig)).toEqual({ r: { taskId: "call-1-a", status: "running" } });
  });

  test("a task that ends for good while it is asked settles the call", () => {
    const rig = ended();
    rig.reply(reply("", [call("r", "task", { resume: "call-1-a", prompt: "more" })]));
    rig.settle("call-1-a", { ...failed, status: "cancelled", cause: "cancel" });
    expect(results(rig)).toMatchObject({ r: { error: { cause: "cancel" } } });
    rig.reply(reply("", [call("again", "task", { resume: "call-1-a", prompt: "more" })]));
    expect(results(rig)).toMatchObject({ again: { error: { code: "HF-3009" } } });
  });

  test("ids are never used again", () => {
    const rig = ended();
    rig.reply(reply("", [task("a")]));
    report(rig, "call-2-a", done("other"));
    expect(booked(rig)).toEqual(["call-1-a completed", "call-2-a completed"]);
  });

  test("after an interrupt the model still knows the id", () => {
    const rig = start();
    rig.reply(reply("", [task("a")]));
    rig.send({ type: "interrupt" });
    expect(rig.sent).toEqual(["call-1-a cancel"]);
    expect(results(rig)).toMatchObject({ a: { error: { cause: "cancel", taskId: "call-1-a" } } });
    report(rig, "call-1-a", { ...failed, status: "cancelled", cause: "cancel" });
    rig.say("m2");
    rig.reply(reply("", [call("r", "task", { resume: "call-1-a", prompt: "go on" })]));
    expect(rig.sent).toEqual(["call-1-a cancel", "call-1-a continueTask"]);
  });
});

describe("a question of a sub-agent", () => {
  test("reaches the one who waits; the answer goes to the same task", () => {
    const rig = start();
    rig.reply(reply("", [task("a")]));
    rig.send({ type: "taskAsked", childId: "call-1-a", runs: 0, question: "which file?" });
    expect(results(rig)).toEqual({ a: { taskId: "call-1-a", status: "waiting", question: "which file?" } });
    rig.reply(reply("", [call("r", "task", { resume: "call-1-a", prompt: "the second" })]));
    report(rig, "call-1-a", done("42"), 1);
    expect(results(rig)).toEqual({ r: { taskId: "call-1-a", status: "completed", result: "42" } });
  });

  test("of a task in the background is what task_output tells, until somebody answers", () => {
    const rig = start();
    rig.reply(reply("", [task("a", { background: true })]));
    rig.send({ type: "taskAsked", childId: "call-1-a", runs: 0, question: "which file?" });
    rig.reply(reply("", [call("o", "task_output", { taskId: "call-1-a", waitMs: 60_000 })]));
    expect(results(rig)).toEqual({ o: { taskId: "call-1-a", status: "waiting", question: "which file?" } });
    rig.send({ type: "taskStatus", childId: "call-1-a", status: "running" });
    rig.reply(reply("", [call("o", "task_output", { taskId: "call-1-a" })]));
    expect(results(rig)).toEqual({ o: { taskId: "call-1-a", status: "running" } });
  });
});

describe("limits", () => {
  test("as many tasks are open as may be; the next is refused, the others go on", () => {
    const rig = start({ maxOpenTasks: 2 });
    const background = { background: true };
    rig.reply(reply("", [task("a", background), task("b", background), task("c", background)]));
    expect(results(rig)).toMatchObject({ a: { status: "running" }, c: { error: { cause: "limit", code: "HF-5202" } } });
    report(rig, "call-1-a", done("a"));
    rig.reply(reply("", [task("d", background)]));
    expect(results(rig)).toMatchObject({ d: { status: "running" } });
  });

  test("as many run as may; the others are queued and get their turn in order", () => {
    const rig = start({ maxRunningTasks: 1 });
    const background = { background: true };
    rig.reply(reply("", [task("a", background), task("b", background), task("c", background)]));
    expect(results(rig)).toMatchObject({ a: { status: "running" }, b: { status: "queued" }, c: { status: "queued" } });
    expect(booked(rig)).toEqual(["call-1-a running", "call-1-b held", "call-1-c held"]);
    report(rig, "call-1-a", failed);
    expect(rig.sent).toEqual(["call-1-b proceed"]);
    rig.settle("call-1-b", { ...failed, status: "cancelled" });
    expect(rig.sent).toEqual(["call-1-b proceed", "call-1-c proceed"]);
  });

  test("levels of delegation", () => {
    const rig = start({ maxTaskDepth: 0 });
    rig.reply(reply("", [task("a")]));
    expect(results(rig)).toMatchObject({ a: { error: { cause: "limit", code: "HF-5202" } } });
  });
});

describe("limits count tasks that cannot be named as well", () => {
  const plain = (limits: Limits) => {
    const agent = testAgent({ limits: { ...testAgent().limits, ...limits } });
    return startConversation({ agent, agents: { reader: READER }, prompt: "go" });
  };
  const isHeld = (rig: ConversationRig, childId: string): unknown =>
    TaskInput.parse(rig.jobInput(childId)).isHeld ?? false;

  test("as many are open as may be; the next is refused", () => {
    const rig = plain({ maxOpenTasks: 2 });
    rig.reply(reply("", [taskCall("a"), taskCall("b"), taskCall("c")]));
    expect(rig.children()).toEqual(["call-1-a", "call-1-b"]);
    for (const id of rig.children()) rig.settle(id, done("1"));
    expect(results(rig)).toMatchObject({ a: 1, c: { error: { cause: "limit", code: "HF-5202" } } });
    expect(booked(rig)).toEqual([]);
    rig.reply(reply("", [taskCall("d")]));
    expect(rig.children()).toEqual(["call-2-d"]);
  });

  test("as many run as may; the others are queued, get their turn in order, and have their own results", () => {
    const rig = plain({ maxRunningTasks: 1 });
    rig.reply(reply("", [taskCall("a"), taskCall("b"), taskCall("c")]));
    expect(["a", "b", "c"].map((id) => isHeld(rig, `call-1-${id}`))).toEqual([false, true, true]);
    rig.fail("call-1-a", new Error("broken"));
    expect(rig.sent).toEqual(["call-1-b proceed"]);
    rig.settle("call-1-b", done("b"));
    expect(rig.sent).toEqual(["call-1-b proceed", "call-1-c proceed"]);
    rig.settle("call-1-c", done("c"));
    const seen = rig.modelStarts.at(-1)?.transcript ?? [];
    expect(problemOfHistory(seen)).toBeUndefined();
    expect(seen.at(-1)).toMatchObject({
      results: [{ callId: "a", ok: false }, { ok: true, content: "b" }, { content: "c" }],
    });
  });

  test("one that was ended counts until it has ended; nobody can name it meanwhile", () => {
    const rig = plain({ maxRunningTasks: 1 });
    rig.reply(reply("", [taskCall("a"), taskCall("b")]));
    rig.send({ type: "cancelTask", callId: "a" });
    expect(rig.sent).toEqual(["call-1-a cancel"]);
    rig.settle("call-1-a", { ...failed, status: "cancelled" });
    expect(rig.sent).toEqual(["call-1-a cancel", "call-1-b proceed"]);
  });

  test("those of an interrupted step are told once, and those in the background count beside them", () => {
    const rig = plain({ maxRunningTasks: 1 });
    rig.reply(reply("", [taskCall("a"), taskCall("b")]));
    rig.send({ type: "taskStatus", childId: "call-1-a", status: "waiting" });
    expect(rig.snapshot().context.calls[0]).toMatchObject({ isWaitingForPerson: true });
    rig.send({ type: "interrupt" });
    expect(rig.sent).toEqual(["call-1-a cancel", "call-1-b cancel"]);
    for (const id of rig.children()) rig.settle(id, { ...failed, status: "cancelled" });
    expect(booked(rig)).toEqual([]);
  });
});

test("a task that asks does not keep others from their turn: who could answer it may wait for one of them", () => {
  const rig = start({ maxRunningTasks: 1 });
  rig.reply(reply("", [task("a", { background: true }), task("b")]));
  rig.send({ type: "taskAsked", childId: "call-1-a", runs: 0, question: "?" });
  expect(rig.sent).toEqual(["call-1-b proceed"]);
});

describe("tasks that touch the same thing", () => {
  const background = { background: true };
  const touching = (...resources: string[]) => ({ ...background, resources });

  test("run one after the other, in order; the others are not held up", () => {
    const rig = start();
    rig.reply(
      reply("", [
        task("a", touching("x")),
        task("b", touching("x", "y")),
        task("c", touching("y")),
        task("d", touching("z")),
      ]),
    );
    expect(booked(rig)).toEqual(["call-1-a running", "call-1-b held", "call-1-c held", "call-1-d running"]);
    report(rig, "call-1-a", done("a"));
    expect(booked(rig)).toEqual(["call-1-a completed", "call-1-b running", "call-1-c held", "call-1-d running"]);
  });

  test("run beside each other when both allow it", () => {
    const rig = start();
    const allowing = { ...touching("x"), onConflict: "allow" };
    rig.reply(reply("", [task("a", allowing), task("b", allowing), task("c", touching("x"))]));
    expect(booked(rig)).toEqual(["call-1-a running", "call-1-b running", "call-1-c held"]);
  });
});

describe("a conversation that ends", () => {
  test.each([
    ["cancel", ["call-1-a cancel"], ["call-1-a"]],
    ["await", ["call-1-a release"], []],
    ["detach", ["call-1-a release"], []],
  ])("by close: a task with %s", (onClose, sent, waitedFor) => {
    const rig = start();
    rig.reply(reply("", [task("a", { onClose, background: true })]));
    rig.send({ type: "close" });
    expect(rig.sent).toEqual(sent);
    expect(rig.snapshot().context.ending).toEqual(waitedFor);
  });

  test("by interrupt: tasks in the background stop too, but those that are let go", () => {
    const rig = start();
    rig.reply(reply("", [task("a", { background: true }), task("b", { background: true, onClose: "detach" })]));
    rig.send({ type: "interrupt" });
    expect(rig.sent).toEqual(["call-1-a cancel"]);
  });

  test.each([
    ["before it has its turn", { resources: ["x"] }, []],
    ["when it has just been given it", { resources: ["x"] }, ["ends"]],
    ["while it runs", {}, []],
    ["while it asks", {}, ["asks"]],
  ])("by interrupt: a task is told to stop %s, and nothing of it starts afterwards", (_, more, news) => {
    const rig = start();
    rig.reply(reply("", [task("first", { resources: ["x"], background: true, onClose: "detach" }), task("a", more)]));
    if (news.includes("ends")) report(rig, "call-1-first", done("first"));
    if (news.includes("asks")) rig.send({ type: "taskAsked", childId: "call-1-a", runs: 0, question: "?" });
    rig.send({ type: "interrupt" });
    expect(rig.sent.filter((sent) => sent.startsWith("call-1-a")).at(-1)).toBe("call-1-a cancel");
    rig.settle("call-1-a", { ...failed, status: "cancelled", cause: "cancel" });
    const told = rig.sent.length;
    report(rig, "call-1-first", done("first"));
    expect(rig.sent).toHaveLength(told);
    expect(rig.state().status).toBe("paused");
  });

  test("tasks that rest are let go as well", () => {
    const rig = start();
    rig.reply(reply("", [task("a")]));
    report(rig, "call-1-a", done("42"));
    rig.reply(reply("thanks"));
    rig.send({ type: "close" });
    expect(rig.state().status).toBe("closed");
    rig.settle("call-1-a", done("42"));
    expect(rig.snapshot().status).toBe("done");
  });
});

test("whatever happens to tasks, the history is one that providers accept", () => {
  const rig = start({ maxRunningTasks: 2 });
  rig.reply(reply("", [task("a"), task("b", { background: true }), task("c", { resources: ["x"] })]));
  rig.send({ type: "taskAsked", childId: "call-1-a", runs: 0, question: "?" });
  report(rig, "call-1-b", failed);
  rig.settle("call-1-c", done("c"));
  rig.reply(
    reply("", [
      call("r", "task", { resume: "call-1-a", prompt: "!" }),
      call("o", "task_output", { taskId: "call-1-c" }),
    ]),
  );
  report(rig, "call-1-a", done("a"), 1);
  rig.reply(reply("done"));
  expect(rig.modelStarts).toHaveLength(3);
  for (const { transcript } of rig.modelStarts) expect(problemOfHistory(transcript)).toBeUndefined();
});
