import { describe, expect, test } from "vitest";
import { PROTOCOL_NAMES, workStateOfConversation, workStateOfTask } from "./protocol-states.ts";
import { ConversationStatus, TaskStatus, WaitingOn } from "./status.ts";

describe("states in the words of other protocols", () => {
  test("every status of a conversation and of a task has a state, and every state has a name in A2A", () => {
    const states = [
      ...ConversationStatus.options.map((status) => workStateOfConversation(status)),
      ...TaskStatus.options.map((status) => workStateOfTask(status)),
      ...WaitingOn.options.map((waitingOn) => workStateOfConversation("waiting", { waitingOn })),
    ];
    const named = Object.keys(PROTOCOL_NAMES);
    expect(named.filter((name) => !states.some((state) => state === name))).toEqual([]);
    for (const state of states) expect(PROTOCOL_NAMES[state].a2a).toMatch(/^TASK_STATE_[A-Z_]+$/);
  });

  test.each([
    ["waiting", { waitingOn: "auth" }, "waiting.auth"],
    ["waiting", { waitingOn: "tasks" }, "waiting.tasks"],
    ["waiting", { waitingOn: "budget" }, "waiting.owner"],
    ["paused", {}, "waiting.owner"],
    ["error", { cause: "cancel" }, "cancelled"],
    ["error", { cause: "policy" }, "rejected"],
    ["error", { cause: "modelError" }, "failed"],
    ["stuck", { cause: "stuck" }, "failed"],
  ] as const)("a conversation that is %s %o is %s", (status, why, state) => {
    expect(workStateOfConversation(status, why)).toBe(state);
  });

  test("failed work is no failed call of MCP, and cancelled has two l there and one in A2A", () => {
    expect(PROTOCOL_NAMES.failed.mcp).toBe("completed isError");
    expect([PROTOCOL_NAMES.cancelled.mcp, PROTOCOL_NAMES.cancelled.a2a]).toEqual(["cancelled", "TASK_STATE_CANCELED"]);
  });
});
