import { describe, expect, test } from "vitest";
import { forkPointOf } from "./conversation-fork.ts";
import { listFieldsOf } from "./list-fields.ts";
import { startConversation, type ConversationRig } from "./testing/conversation-rig.ts";
import { problemOfHistory } from "./testing/provider-history.ts";
import { askCall, readCall, reply, taskCall } from "./testing/test-agent.ts";
import { inheritedTranscript } from "./transcript.ts";

/** A life with everything in it that may be open at a fork. */
function origin(): ConversationRig {
  const rig = startConversation({ prompt: "go" });
  rig.reply(reply("first", [readCall("a"), taskCall("b"), askCall("c")]));
  rig.say("m2");
  rig.settle("call-1-b", { taskId: "t", status: "completed", result: "B" });
  rig.settle("call-1-a", "A");
  rig.send({ type: "cancelTask", callId: "c" });
  rig.say("m3");
  rig.reply(reply("", [readCall("d")]));
  rig.send({ type: "interrupt" });
  rig.say("m4");
  rig.reply(reply("done"));
  return rig;
}
const point = (rev: number, isUnanswered = false) => ({
  conversation: "d-1.conversation.origin",
  genesis: "g1:7",
  rev,
  isUnanswered,
});
const positions = origin().journal.map((_, index) => index + 1);

describe("a fork", () => {
  test.each(positions)("at revision %i its first model call has a history that providers accept", (rev) => {
    const rig = origin();
    const shared = inheritedTranscript(rig.journal.slice(0, rev));
    const fork = startConversation({ prompt: "and now?", fork: point(rev) }, shared);
    const seen = fork.modelStarts[0]?.transcript ?? [];
    expect(problemOfHistory(seen)).toBeUndefined();
    expect(seen.at(-1)).toEqual({ role: "user", messageId: "prompt", text: "and now?" });
    expect(seen.slice(0, -1)).toEqual(shared);
    fork.reply(reply("", [readCall("z")]));
    fork.settle("call-1-z", "Z");
    expect(problemOfHistory(fork.modelStarts[1]?.transcript ?? [])).toBeUndefined();
  });

  test("F53: calls that were open where it begins are lost to it, with one result each; their outcomes go to the origin only", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [readCall("a"), taskCall("b")]));
    rig.settle("call-1-a", "A");
    const shared = inheritedTranscript(rig.journal);
    expect(shared.at(-1)).toMatchObject({
      role: "tool",
      results: [
        { callId: "a", ok: true, content: "A" },
        { callId: "b", ok: false, content: expect.stringContaining("lost to fork") },
      ],
    });
    const fork = startConversation({ fork: point(3, true) }, shared);
    expect(fork.children()).toEqual([]);
    expect(fork.settle("call-1-b", { taskId: "t", status: "completed", result: "late" })).toBe(false);
    rig.settle("call-1-b", { taskId: "t", status: "completed", result: "B" });
    expect(JSON.stringify(rig.transcript().at(-1))).toContain('"content":"B"');
  });

  test("without a message of its own it waits; run goes on from the unanswered end, and messages count once", () => {
    const shared = inheritedTranscript(origin().journal.slice(0, 1));
    const fork = startConversation({ fork: point(1, true) }, shared);
    expect([fork.state(), fork.children()]).toEqual([{ status: "idle" }, []]);
    expect(fork.send({ type: "run" })).toBe(true);
    fork.say("m9");
    fork.reply(reply("", [readCall("z")]));
    fork.settle("call-1-z", "Z");
    const roles = fork.modelStarts[1]?.transcript.map((message) =>
      message.role === "user" ? message.messageId : message.role,
    );
    expect(roles).toEqual(["prompt", "assistant", "tool", "m9"]);
  });

  test("where everything was answered there is nothing to run", () => {
    expect(startConversation({ fork: point(9) }).send({ type: "run" })).toBe(false);
  });

  test("says where it comes from, in its journal and in lists", () => {
    const fork = startConversation({ fork: point(4) });
    expect(forkPointOf(fork.journal)).toEqual(point(4));
    expect(forkPointOf(startConversation().journal)).toBeUndefined();
    const { value, context } = fork.snapshot();
    expect(listFieldsOf("conversation", context, value)).toMatchObject({ forkOf: "d-1.conversation.origin@4" });
  });
});
