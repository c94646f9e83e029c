import { describe, expect, test } from "vitest";
import { afterEndOf } from "./after-end.ts";
import { ConversationContext } from "./conversation-context.ts";
import { MAX_FORKS } from "./conversation-fork.ts";
import { listFieldsOf } from "./list-fields.ts";
import { noEffectOf } from "./no-effect.ts";
import { erasedFieldsOf, retentionOf } from "./retention.ts";
import { startConversation, type ConversationRig } from "./testing/conversation-rig.ts";
import { problemOfHistory } from "./testing/provider-history.ts";
import { askCall, readCall, reply, taskCall, testAgent } from "./testing/test-agent.ts";

const answered = (rig = startConversation({ prompt: "go" })): ConversationRig => {
  rig.reply(reply("a first answer that is long enough to be worth a summary, and then some more of it"));
  return rig;
};
const shown = (rig: ConversationRig) => {
  const { value, context } = rig.snapshot();
  return listFieldsOf("conversation", context, value);
};
const refusal = (rig: ConversationRig, event: { readonly type: string }) => {
  const { value, context } = rig.snapshot();
  return noEffectOf("conversation", context, value, event);
};
const lastSeen = (rig: ConversationRig) =>
  rig.modelStarts.at(-1)?.transcript.map((message) => (message.role === "user" ? message.messageId : message.role));
const condenser = (rig: ConversationRig): string =>
  rig.children().find((id) => id.startsWith("condense-")) ?? "nothing condenses";

describe("a message that is not to be run", () => {
  test.each(["idle", "error"] as const)("in %s it waits, until run", (state) => {
    const rig = startConversation({ prompt: "go" });
    if (state === "idle") rig.reply(reply("done"));
    else rig.failModel(new Error("no model"));
    expect(rig.send({ type: "userMessage", messageId: "m2", text: "later", run: false })).toBe(true);
    expect(rig.state()).toEqual({ status: state });
    expect(rig.send({ type: "run" })).toBe(true);
    expect(lastSeen(rig)?.at(-1)).toBe("m2");
  });

  test("the next message that is to be run takes it along, in order", () => {
    const rig = answered();
    rig.send({ type: "userMessage", messageId: "m2", text: "later", run: false });
    rig.say("m3");
    expect(lastSeen(rig)).toEqual(["prompt", "assistant", "m2", "m3"]);
  });

  test("run has no effect while it runs, and at rest when nothing waits", () => {
    const rig = startConversation({ prompt: "go" });
    expect(rig.send({ type: "run" })).toBe(false);
    answered(rig);
    expect(rig.send({ type: "run" })).toBe(false);
    expect(rig.state()).toEqual({ status: "idle" });
  });
});

describe("title and tags", () => {
  test("what is given is replaced, in every state, and shown in lists", () => {
    const rig = startConversation({ prompt: "go", title: "old", tags: { a: "1" } });
    expect(rig.send({ type: "describe", title: "new" })).toBe(true);
    expect(shown(rig)).toMatchObject({ title: "new", "tag.a": "1" });
    answered(rig);
    rig.send({ type: "describe", tags: { b: "2" } });
    expect(shown(rig)).toMatchObject({ title: "new", "tag.b": "2" });
    expect(Object.keys(shown(rig))).not.toContain("tag.a");
    expect(rig.send({ type: "describe", title: "new", tags: { b: "2" } })).toBe(false);
  });
});

describe("switchModel", () => {
  test("the next model call is made with it; the running one is not touched; saying it twice changes nothing", () => {
    const rig = startConversation({ prompt: "go" });
    expect(rig.send({ type: "switchModel", model: "other" })).toBe(true);
    expect(rig.send({ type: "switchModel", model: "other" })).toBe(false);
    expect(rig.children()).toEqual(["model-1-1"]);
    rig.reply(reply("", [readCall("a")]));
    rig.settle("call-1-a", "A");
    expect(rig.snapshot().context.agent.model).toBe("other");
    expect(rig.jobInput("model-2-1")).toMatchObject({ agent: { model: "other", name: "chief" } });
  });
});

describe("condense", () => {
  test("at rest: a summary stands for the past, and the next turn sees it before the new message", () => {
    const rig = answered();
    expect(rig.send({ type: "condense" })).toBe(true);
    expect(rig.state()).toEqual({ status: "running" });
    expect(rig.jobInput(condenser(rig))).toMatchObject({ purpose: "condense" });
    rig.settle(condenser(rig), reply("short"));
    expect(rig.state()).toEqual({ status: "idle" });
    expect(rig.transcript()).toMatchObject([{ messageId: "summary-2", text: expect.stringContaining("short") }]);
    expect(rig.snapshot().context.usage).toEqual({ modelCalls: 2, inputTokens: 20, outputTokens: 10 });
    rig.say("m2");
    expect(lastSeen(rig)).toEqual(["summary-2", "m2"]);
    expect(problemOfHistory(rig.modelStarts.at(-1)?.transcript ?? [])).toBeUndefined();
  });

  test("a summary that is no shorter than the past, an empty one, or none, changes nothing", () => {
    for (const outcome of [reply("x".repeat(5000)), reply("  "), { text: 7 }, undefined]) {
      const rig = answered();
      const before = rig.transcript();
      rig.send({ type: "condense" });
      if (outcome === undefined) rig.fail(condenser(rig), new Error("no model"));
      else rig.settle(condenser(rig), outcome);
      expect(rig.transcript()).toEqual(before);
      expect(rig.state()).toEqual({ status: "idle" });
    }
  });

  test("during a turn: between two steps, after the results of the running one; the turn goes on", () => {
    const rig = startConversation({ prompt: `go ${"far ".repeat(50)}` });
    rig.reply(reply("", [readCall("a")]));
    expect(rig.send({ type: "condense" })).toBe(true);
    expect(rig.send({ type: "condense" })).toBe(false);
    rig.settle("call-1-a", "A");
    expect(rig.children()).toEqual(["condense-2-1"]);
    rig.say("m2");
    rig.settle("condense-2-1", reply("sum"));
    expect(lastSeen(rig)).toEqual(["summary-2", "m2"]);
    rig.reply(reply("done"));
    expect(rig.state()).toEqual({ status: "idle" });
  });

  test("asked for during the last model call of a turn it happens after the answer", () => {
    const rig = startConversation({ prompt: "go" });
    rig.send({ type: "condense" });
    rig.reply(reply("done"));
    expect(rig.children()).toEqual(["condense-2-1"]);
  });

  describe("by itself, once a model call has read and written as many tokens as the agent says", () => {
    const agent = testAgent({ limits: { maxIterations: 10, maxTurnMs: 60_000, condenseAboveTokens: 15 } });
    const small = { inputTokens: 4, outputTokens: 1 };

    test("between two steps: the next model call sees the summary, and the history stays valid", () => {
      const rig = startConversation({ agent, prompt: `go ${"far ".repeat(50)}` });
      rig.reply(reply("", [readCall("a"), readCall("b")]));
      rig.settle("call-1-b", "B");
      expect(condenser(rig)).toBe("nothing condenses"); // a call is open
      rig.settle("call-1-a", "A");
      expect(rig.children()).toEqual(["condense-2-1"]);
      rig.settle("condense-2-1", { ...reply("sum"), usage: { inputTokens: 100, outputTokens: 1 } });
      expect(lastSeen(rig)).toEqual(["summary-2"]);
      expect(problemOfHistory(rig.modelStarts.at(-1)?.transcript ?? [])).toBeUndefined();
      rig.reply({ ...reply("done"), usage: small });
      expect(rig.state()).toEqual({ status: "idle" });
    });

    test("before a message that came during the step: what it is shown is the summary and that message", () => {
      const rig = startConversation({ agent, prompt: `go ${"far ".repeat(50)}` });
      rig.reply(reply("", [readCall("a")]));
      rig.say("m2");
      rig.settle("call-1-a", "A");
      expect(rig.children()).toEqual(["condense-2-1"]);
      rig.settle("condense-2-1", reply("sum"));
      expect(lastSeen(rig)).toEqual(["summary-2", "m2"]);
    });

    test("after an answer, so that the next message is not kept waiting; one that arrives meanwhile is answered", () => {
      const rig = answered(startConversation({ agent, prompt: "go" }));
      rig.say("m2");
      rig.settle(condenser(rig), reply("sum"));
      expect(lastSeen(rig)).toEqual(["summary-2", "m2"]);
    });

    test("a condenser that fails loses nothing, and is tried again after the next model call, not before", () => {
      const rig = answered(startConversation({ agent, prompt: "go" }));
      const before = rig.transcript();
      rig.fail(condenser(rig), new Error("no model"));
      expect(rig.state()).toEqual({ status: "idle" });
      expect(rig.transcript()).toEqual(before);
      rig.say("m2");
      expect(condenser(rig)).toBe("nothing condenses");
      rig.reply(reply("", [readCall("a")]));
      rig.settle("call-3-a", "A");
      expect(condenser(rig)).toBe("condense-4-2");
    });

    test("its cost counts in the turn's budget, and no summary is paid for a turn that is over its limits", () => {
      const limits = { maxIterations: 10, maxTurnMs: 60_000, condenseAboveTokens: 15, maxTokens: 30 };
      const rig = startConversation({ agent: testAgent({ limits }), prompt: `go ${"far ".repeat(50)}` });
      rig.reply(reply("", [readCall("a")]));
      rig.settle("call-1-a", "A");
      rig.settle("condense-2-1", reply("sum"));
      expect(rig.state()).toEqual({ status: "error" }); // 15 and 15 of 30
      expect(rig.snapshot().context.lastFailure).toMatchObject({ cause: "limit" });
      const single = startConversation({
        agent: testAgent({ limits: { ...limits, maxIterations: 1, maxTokens: 1000 } }),
        prompt: "go",
      });
      single.reply(reply("", [readCall("a")]));
      single.settle("call-1-a", "A");
      expect(single.state()).toEqual({ status: "error" });
      expect(single.children()).toEqual([]);
    });

    test("not below, and not for the answer that ends a conversation", () => {
      const rig = startConversation({ agent, prompt: "go" });
      rig.reply({ ...reply("done"), usage: small });
      expect(condenser(rig)).toBe("nothing condenses");
      const once = startConversation({ agent, prompt: "go", once: true });
      once.reply(reply("done"));
      expect(once.snapshot().status).toBe("done");
    });
  });

  test.each(["paused", "error", "stuck"] as const)("in %s it ends where it began", (state) => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [readCall("a")]));
    if (state === "paused") rig.send({ type: "pause" });
    rig.settle("call-1-a", "A");
    if (state === "error") rig.failModel(new Error("no model"));
    if (state === "stuck") toStuck(rig);
    expect(rig.state().status).toBe(state);
    rig.send({ type: "condense" });
    rig.settle(condenser(rig), reply("sum"));
    expect(rig.state().status).toBe(state);
  });

  test("what arrives meanwhile is not lost: a message opens a turn, also after an interrupt; after a pause it waits", () => {
    for (const way of ["idle", "interrupt", "pause"] as const) {
      const rig = answered();
      if (way !== "idle") rig.say("m2");
      if (way === "interrupt") rig.send({ type: "interrupt" });
      if (way === "pause") {
        rig.send({ type: "pause" });
        rig.reply(reply("", [readCall("a")]));
        rig.settle("call-2-a", "A");
      }
      rig.send({ type: "condense" });
      rig.say("m3");
      rig.settle(condenser(rig), reply("sum"));
      expect(rig.state().status, way).toBe(way === "pause" ? "paused" : "running");
      if (way === "pause") rig.send({ type: "resume" });
      expect(lastSeen(rig)?.at(-1), way).toBe("m3");
    }
  });

  test("interrupt stops it, and stops a turn that it interrupted; close ends the conversation", () => {
    const idle = answered();
    idle.send({ type: "condense" });
    idle.send({ type: "interrupt" });
    expect([idle.state().status, idle.children()]).toEqual(["idle", []]);
    const turn = startConversation({ prompt: "go" });
    turn.reply(reply("", [readCall("a")]));
    turn.send({ type: "condense" });
    turn.settle("call-1-a", "A");
    turn.send({ type: "interrupt" });
    expect([turn.state().status, turn.children()]).toEqual(["paused", []]);
    const closed = answered();
    closed.send({ type: "condense" });
    closed.send({ type: "close" });
    expect([closed.snapshot().status, closed.children()]).toEqual(["done", []]);
  });

  test("a model that never answers does not hold it for ever", () => {
    const rig = answered();
    rig.send({ type: "condense" });
    rig.clock.increment(3_600_000);
    expect([rig.state().status, rig.children()]).toEqual(["idle", []]);
  });

  test("a late outcome of a call that was there before is nothing", () => {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [taskCall("b")]));
    rig.send({ type: "interrupt" });
    rig.send({ type: "condense" });
    rig.settle(condenser(rig), reply("sum"));
    const before = rig.transcript();
    rig.settle("call-1-b", { taskId: "t", status: "completed", result: "late" });
    expect(rig.transcript()).toEqual(before);
    rig.say("m2");
    expect(problemOfHistory(rig.modelStarts.at(-1)?.transcript ?? [])).toBeUndefined();
  });

  test("there is nothing to condense before the first model call", () => {
    expect(startConversation().send({ type: "condense" })).toBe(false);
  });
});

function toStuck(rig: ConversationRig): void {
  for (let n = 2; rig.state().status === "running" && n < 12; n += 1) {
    rig.reply(reply("", [readCall("a")]));
    rig.settle(`call-${n}-a`, "A");
  }
}

describe("a conversation for one answer", () => {
  test("ends with its answer", () => {
    const rig = answered(startConversation({ prompt: "go", once: true }));
    expect(rig.snapshot().output).toMatchObject({ outcome: "answered", text: expect.stringContaining("first answer") });
    expect(shown(rig)).toMatchObject({ status: "closed", aside: true });
  });

  test("ends with the cause when there is none; an empty one is none", () => {
    const failed = startConversation({ prompt: "go", once: true });
    failed.failModel(new Error("no model"));
    expect(failed.snapshot().output).toMatchObject({ outcome: "failed", failure: { cause: "modelError" } });
    const empty = startConversation({ prompt: "go", once: true });
    empty.reply(reply(" "));
    expect(empty.snapshot().output).toMatchObject({ outcome: "failed" });
  });
});

describe("delete", () => {
  const states = { idle: 0, thinking: 1, acting: 2, asking: 3, condensing: 4 } as const;
  const way = (state: keyof typeof states): ConversationRig => {
    const rig = startConversation({
      title: "secret",
      tags: { a: "secret" },
      ...(state !== "idle" && { prompt: "go" }),
    });
    if (state === "acting") rig.reply(reply("secret", [readCall("a"), taskCall("b"), askCall("c")]));
    if (state === "asking") rig.reply(reply("secret", [askCall("c")]));
    if (state === "condensing") answered(rig).send({ type: "condense" });
    return rig;
  };

  test.each(["idle", "thinking", "acting", "asking", "condensing"] as const)(
    "in %s it ends the conversation, tells its children, and keeps nothing of what it held",
    (state) => {
      const rig = way(state);
      rig.send({ type: "delete" });
      expect(rig.state()).toEqual({ status: "closed" });
      if (state === "acting") expect(rig.sent).toEqual(["call-1-b cancel", "call-1-c cancel"]);
      for (const id of rig.children()) rig.settle(id, { taskId: "t", waitId: "w", status: "cancelled" });
      expect(rig.snapshot().status).toBe("done");
      expect(shown(rig)).toEqual({ status: "closed", agent: "chief", deleted: true });
      expect(JSON.stringify([rig.snapshot().output, rig.snapshot().context])).not.toContain("secret");
    },
  );

  test("children may end by themselves: none is told, all are waited for, however long", () => {
    const rig = way("acting");
    rig.send({ type: "delete", children: "await" });
    expect(rig.sent).toEqual([]);
    expect(rig.send({ type: "describe", title: "secret again" })).toBe(false);
    expect(rig.children()).toEqual(["call-1-b", "call-1-c"]);
    rig.clock.increment(10 * 24 * 3_600_000);
    expect(rig.snapshot().status).toBe("active");
    rig.settle("call-1-b", { taskId: "t", status: "completed", result: "late" });
    rig.settle("call-1-c", { waitId: "w", status: "answered", answer: "yes", by: "owner" });
    expect(rig.snapshot().status).toBe("done");
  });

  test("whoever does not want to wait any more deletes again, or closes", () => {
    for (const again of ["delete", "close"] as const) {
      const rig = way("acting");
      rig.send({ type: "delete", children: "await" });
      expect(rig.send({ type: "delete", children: "await" })).toBe(false);
      rig.send({ type: again });
      rig.clock.increment(30_000);
      expect(rig.snapshot().status, again).toBe("done");
    }
  });

  test("one that is closing already can still be deleted", () => {
    const rig = way("acting");
    rig.send({ type: "close" });
    expect(rig.send({ type: "delete" })).toBe(true);
    expect(rig.send({ type: "delete" })).toBe(false);
    rig.clock.increment(30_000);
    expect(shown(rig)).toMatchObject({ deleted: true });
  });
});

describe("a conversation that has ended", () => {
  const ended = answered(startConversation({ title: "secret", prompt: "go" }));
  ended.send({ type: "close" });
  const { context } = ended.snapshot();
  const fork = (n: number) => ({ type: "forked", fork: `d-1.conversation.f${n}` }) as const;

  test("notes its forks, each once, and is kept for them", () => {
    const noted = ConversationContext.parse(afterEndOf("conversation", context, fork(1)));
    expect(noted).toEqual({ ...context, forks: ["d-1.conversation.f1"] });
    expect(afterEndOf("conversation", noted, fork(1))).toBeUndefined();
    expect(retentionOf("conversation", noted).sharedWith).toEqual(["d-1.conversation.f1"]);
    let full: unknown = context;
    for (let n = 0; n < MAX_FORKS; n += 1) full = afterEndOf("conversation", full, fork(n));
    expect(afterEndOf("conversation", full, fork(MAX_FORKS))).toBeUndefined();
  });

  test("can still be deleted, once, and is not forked afterwards", () => {
    const noted = afterEndOf("conversation", context, { type: "delete" });
    expect(JSON.stringify(noted)).not.toContain("secret");
    expect(retentionOf("conversation", noted).erase).toBe(true);
    for (const later of [{ type: "delete" }, fork(1)]) expect(afterEndOf("conversation", noted, later)).toBeUndefined();
  });

  test.each([
    ["any other event", "conversation", context, { type: "describe", title: "x" }],
    ["an actor of another type", "task", context, fork(1)],
    ["a tombstone", "conversation", undefined, fork(1)],
  ])("nothing is noted of %s", (_, type, held, event) => {
    expect(afterEndOf(type, held, event)).toBeUndefined();
  });
});

test("what is deleted with the conversation it worked for shows in lists what a deleted conversation shows", () => {
  const fields = { status: "closed", agent: "reader", task: "t1", title: "planted", "tag.a": "planted" };
  expect(erasedFieldsOf(fields)).toEqual({ status: "closed", agent: "reader", task: "t1", deleted: true });
});

test("a message to a conversation that is about to end is refused, not swallowed", () => {
  for (const end of [{ type: "close" }, { type: "delete", children: "await" }] as const) {
    const rig = startConversation({ prompt: "go" });
    rig.reply(reply("", [taskCall("b")]));
    rig.send(end);
    const message = { type: "userMessage", messageId: "m2", text: "still there?" } as const;
    expect(rig.send(message)).toBe(false);
    expect(refusal(rig, message)).toMatchObject({ kind: "refused", code: "HF-3009" });
  }
});

test("forks are remembered once each, and not without a limit", () => {
  const rig = answered();
  const fork = (n: number) => ({ type: "forked", fork: `d-1.conversation.f${n}` }) as const;
  expect(rig.send(fork(0))).toBe(true);
  expect(rig.send(fork(0))).toBe(false);
  expect(refusal(rig, fork(0))).toMatchObject({ kind: "duplicate" });
  for (let n = 1; n < MAX_FORKS; n += 1) rig.send(fork(n));
  expect(rig.send(fork(MAX_FORKS))).toBe(false);
  expect(refusal(rig, fork(MAX_FORKS))).toMatchObject({ kind: "refused", code: "HF-5202" });
});
