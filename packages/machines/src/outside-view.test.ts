import { AnnouncedEvent, isLifecycleEventType, LIFECYCLE_EVENTS } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import type { ConversationEmitted, OwnerWaitEmitted, TaskEmitted, WalletEmitted } from "./emitted-event.ts";
import { listFieldsOf } from "./list-fields.ts";
import { MACHINES } from "./machine-table.ts";
import { noEffectOf } from "./no-effect.ts";
import { ownerWaitMachine } from "./owner-wait.machine.ts";
import { publicEventOf } from "./public-event.ts";
import { taskMachine } from "./task.machine.ts";
import { startChild } from "./testing/child-rig.ts";
import { startConversation } from "./testing/conversation-rig.ts";
import { askCall, READER, reply, testAgent } from "./testing/test-agent.ts";

describe("list fields", () => {
  test("of a conversation", () => {
    const rig = startConversation({ prompt: "secret", title: "Report" });
    const fields = () => listFieldsOf("conversation", rig.snapshot().context, rig.snapshot().value);
    expect(fields()).toEqual({ status: "running", agent: "chief", title: "Report" });
    rig.reply(reply("secret", [askCall("c")]));
    expect(fields()).toEqual({ status: "waiting", agent: "chief", title: "Report", waitingOn: "owner" });
    rig.send({ type: "interrupt" });
    rig.say("m2");
    rig.failModel(new Error("secret"));
    expect(fields()).toEqual({ status: "error", agent: "chief", title: "Report", cause: "modelError" });
  });

  test("of a task", () => {
    const rig = startChild(taskMachine, {
      callId: "b",
      childId: "call-1-b",
      subagent: READER,
      prompt: "secret",
      description: "a.md",
    });
    const fields = () => {
      const { context, value } = rig.child.getSnapshot();
      return listFieldsOf("task", context, value);
    };
    expect(fields()).toEqual({ status: "running", agent: "reader", title: "a.md" });
    rig.send({ type: "conversationStatus", status: "waiting" });
    expect(fields()).toEqual({ status: "waiting", agent: "reader", title: "a.md", waitingOn: "owner" });
    rig.settle("conversation", undefined);
    expect(fields()).toEqual({ status: "failed", agent: "reader", title: "a.md", cause: "internal" });
  });

  test("of an owner-wait", () => {
    const rig = startChild(ownerWaitMachine, { conversationId: "c1", agent: "chief", callId: "c", question: "secret" });
    const { context, value } = rig.child.getSnapshot();
    expect(listFieldsOf("ownerWait", context, value)).toEqual({
      status: "open",
      agent: "chief",
      assignee: "owner",
      conversation: "c1",
      waitingOn: "owner",
    });
  });

  test("of an owner-wait that is consumed: how it was settled, not what the answer is", () => {
    const asked = { question: "secret", role: "reviewer", kind: "confirmation" };
    const input = { conversationId: "c1", agent: "chief", callId: "c", childId: "child", ...asked };
    const rig = startChild(ownerWaitMachine, input);
    rig.send({ type: "awaited" });
    rig.send({
      type: "answer",
      answerId: "a1",
      value: "secret",
      principal: { kind: "person", id: "anna", roles: ["reviewer"] },
    });
    rig.send({ type: "consumed" });
    const { context, value } = rig.child.getSnapshot();
    expect(listFieldsOf("ownerWait", context, value)).toEqual({
      status: "consumed",
      outcome: "answered",
      agent: "chief",
      assignee: "reviewer",
      role: "reviewer",
      kind: "confirmation",
      conversation: "c1",
    });
  });

  test("of anything else: none", () => {
    expect(listFieldsOf("wallet", {}, "idle")).toEqual({});
    expect(listFieldsOf("conversation", undefined, undefined)).toEqual({});
  });
});

describe("public events", () => {
  test.each([
    [
      "task",
      { type: "taskCompleted", agent: "reader", callId: "b", conversationId: "x" },
      {
        kind: "task",
        name: ["reader", "id1", "completed"],
        type: "holdfast.task.completed",
        data: { agent: "reader", callId: "b", conversationId: "x", taskId: "id1" },
      },
    ],
    [
      "conversation",
      { type: "conversationError", agent: "chief", cause: "limit" },
      {
        kind: "conversation",
        name: ["chief", "id1", "error"],
        type: "holdfast.conversation.error",
        data: { agent: "chief", cause: "limit", conversationId: "id1" },
      },
    ],
    [
      "conversation",
      { type: "waitConsumed", waitId: "w1", callId: "c" },
      {
        kind: "wait",
        name: ["w1", "consumed"],
        type: "holdfast.wait.consumed",
        data: { waitId: "w1", callId: "c", conversationId: "id1" },
      },
    ],
    [
      "ownerWait",
      { type: "waitOpened", waitId: "w1", conversationId: "c1", agent: "chief", callId: "c", assignee: "owner" },
      {
        kind: "wait",
        name: ["w1", "opened"],
        type: "holdfast.wait.opened",
        data: { waitId: "w1", conversationId: "c1", agent: "chief", callId: "c", assignee: "owner" },
      },
    ],
    [
      "wallet",
      { type: "walletFenced", scope: "root", fenceId: "fence-1" },
      {
        kind: "wallet",
        name: ["id1", "fenced"],
        type: "holdfast.wallet.fenced",
        data: { scope: "root", fenceId: "fence-1", walletId: "id1" },
      },
    ],
  ])("of a %s: %j", (type, emitted, expected) => {
    expect(publicEventOf(type, emitted, { id: "id1" })).toEqual(expected);
    expect(AnnouncedEvent.parse(expected)).toEqual(expected);
  });

  test("whatever the machines announce has a type with a schema", () => {
    // The compiler asks for a line here when one is added there.
    const all: Record<(ConversationEmitted | TaskEmitted | OwnerWaitEmitted | WalletEmitted)["type"], string> = {
      conversationCreated: "conversation",
      conversationRunning: "conversation",
      conversationWaiting: "conversation",
      conversationIdle: "conversation",
      conversationPaused: "conversation",
      conversationStuck: "conversation",
      conversationError: "conversation",
      conversationClosed: "conversation",
      taskCreated: "task",
      taskQueued: "task",
      taskStarted: "task",
      taskWaiting: "task",
      taskHeld: "task",
      taskResumed: "task",
      taskAsked: "task",
      taskContinued: "task",
      taskCompleted: "task",
      taskFailed: "task",
      taskCancelled: "task",
      taskTimedOut: "task",
      taskClosed: "task",
      waitConsumed: "conversation",
      waitOpened: "ownerWait",
      waitAnswered: "ownerWait",
      waitDeclined: "ownerWait",
      waitExpired: "ownerWait",
      waitCancelled: "ownerWait",
      waitRevoked: "ownerWait",
      waitReminded: "ownerWait",
      waitReassigned: "ownerWait",
      waitEscalated: "ownerWait",
      walletFenced: "wallet",
      walletFenceLifted: "wallet",
    };
    const types = Object.entries(all).map(
      ([type, actor]) => publicEventOf(actor, { type, agent: "a", callId: "c", waitId: "w" }, { id: "x" })?.type,
    );
    expect(new Set(types)).toEqual(new Set(Object.keys(LIFECYCLE_EVENTS)));
  });

  test("carry nothing that is not listed", () => {
    const event = publicEventOf("task", { type: "taskStarted", agent: "a", prompt: "secret" }, { id: "t" });
    expect(JSON.stringify(event)).not.toContain("secret");
  });

  test.each([
    ["task", { type: "conversationIdle", agent: "a" }],
    ["task", { type: "taskStarted" }],
    ["ownerWait", { type: "waitOpened" }],
    ["ownerWait", { type: "walletFenced", scope: "root", fenceId: "f" }],
    ["conversation", { type: "somethingElse", agent: "a" }],
  ])("of a %s, not %j", (type, emitted) => {
    expect(publicEventOf(type, emitted, { id: "t" })).toBeUndefined();
  });

  test("nothing that the machines announce is without one, and none holds what people and models said", () => {
    const rig = startConversation({ prompt: "secret" });
    rig.reply(reply("secret", [askCall("secret-c")]));
    rig.send({ type: "interrupt" });
    rig.send({ type: "close" });
    const events = rig.emitted.map((emitted) => publicEventOf("conversation", emitted, { id: "c1" }));
    expect(events.map((event) => event?.name.at(-1))).toEqual(["created", "running", "waiting", "paused"]);
    for (const event of events) expect(isLifecycleEventType(AnnouncedEvent.parse(event).type)).toBe(true);
    expect(JSON.stringify(events)).not.toContain("secret");
  });
});

const why = (rig: ReturnType<typeof startConversation>, event: { type: string; messageId?: string }) =>
  noEffectOf("conversation", rig.snapshot().context, rig.snapshot().value, event);

describe("why an event had no effect", () => {
  test("of a conversation", () => {
    const rig = startConversation({ prompt: "go" });
    for (let n = 0; n < 64; n += 1) rig.say(`m${n}`);
    expect(why(rig, { type: "userMessage", messageId: "m64" })).toMatchObject({ why: "busy", code: "HF-3005" });
    expect(why(rig, { type: "userMessage", messageId: "m1" })).toEqual({ kind: "duplicate" });
    expect(why(rig, { type: "resume" })).toEqual({
      kind: "noEffect",
      reason: "resume has no effect on a conversation in state turn.",
    });
  });
});

describe("the table of machines", () => {
  test("names every child source of every machine exactly once", () => {
    for (const { machine, childActors, jobs, hosts, closePolicies } of MACHINES) {
      const sources = Object.keys(machine.implementations.actors).toSorted();
      expect([...Object.keys(childActors), ...Object.keys(jobs), ...hosts].toSorted()).toEqual(sources);
      expect(Object.keys(closePolicies)).toEqual(Object.keys(childActors));
    }
  });

  test("child actors are machines of the table", () => {
    const types = MACHINES.map((entry) => entry.type);
    for (const { childActors } of MACHINES) expect(types).toEqual(expect.arrayContaining(Object.values(childActors)));
  });

  test("what comes from outside is checked: internal events are not among it", () => {
    const [conversation, task] = MACHINES;
    for (const type of ["taskStatus", "xstate.done.actor.model-1-1", "xstate.init"]) {
      expect(conversation?.outsideEvent.safeParse({ type, childId: "x", status: "running" }).success).toBe(false);
    }
    expect(task?.outsideEvent.safeParse({ type: "conversationStatus", status: "held" }).success).toBe(false);
    expect(conversation?.outsideEvent.safeParse({ type: "userMessage", messageId: "m1", text: "hi" }).success).toBe(
      true,
    );
    expect(conversation?.input.safeParse({ agent: testAgent() }).success).toBe(true);
  });
});
