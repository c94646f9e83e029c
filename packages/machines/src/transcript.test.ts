import type { PlainEvent, TranscriptMessage } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { ModelJobInput } from "./job-input.ts";
import { foldTranscript } from "./transcript.ts";
import { startConversation, type ConversationRig } from "./testing/conversation-rig.ts";
import { pathOfImpure, problemOfHistory } from "./testing/provider-history.ts";
import { askCall, permutations, readCall, reply, seededNumbers, taskCall, testAgent } from "./testing/test-agent.ts";

const label = (message: TranscriptMessage) => {
  if (message.role === "user") return message.messageId;
  if (message.role === "assistant") return `${message.text}(${message.toolCalls.map((call) => call.callId).join()})`;
  return message.results.map((result) => `${result.callId}=${result.ok ? result.content : "!"}`).join();
};

const init = (changes: object = {}): PlainEvent => ({ type: "xstate.init", input: { agent: testAgent(), ...changes } });
const said = (messageId: string): PlainEvent => ({ type: "userMessage", messageId, text: messageId });
const replied = (child: string, output: unknown): PlainEvent => ({ type: `xstate.done.actor.${child}`, output });
const settled = replied;

describe("foldTranscript", () => {
  test("is empty before anything happened", () => {
    expect(foldTranscript([])).toEqual([]);
    expect(foldTranscript([init()])).toEqual([]);
  });

  test("T3: a message accepted during a model call stands after its reply", () => {
    const events = [init({ prompt: "go" }), said("m1"), replied("model-1-1", reply("first")), said("m2")];
    expect(foldTranscript(events).map(label)).toEqual(["prompt", "first()", "m1", "m2"]);
  });

  test("T3: a message accepted while calls are open stands after their results", () => {
    const events = [
      init({ prompt: "go" }),
      replied("model-1-1", reply("", [readCall("a"), readCall("b")])),
      settled("call-1-b", "B"),
      said("m1"),
      settled("call-1-a", "A"),
      replied("model-2-2", reply("done")),
    ];
    expect(foldTranscript(events).map(label)).toEqual(["prompt", "(a,b)", "a=A,b=B", "m1", "done()"]);
  });

  test("T2: results and messages of a step in every order give one transcript", () => {
    const inStep = [settled("call-1-a", "A"), settled("call-1-b", "B"), settled("call-1-c", "C"), said("m1")];
    const views = permutations(inStep).map((order) =>
      foldTranscript([
        init({ prompt: "go" }),
        replied("model-1-1", reply("", [readCall("a"), readCall("b"), readCall("c")])),
        ...order,
      ]),
    );
    expect(new Set(views.map((view) => JSON.stringify(view))).size).toBe(1);
    expect(views[0]?.map(label)).toEqual(["prompt", "(a,b,c)", "a=A,b=B,c=C", "m1"]);
  });

  test("while calls are open, it shows the results there are, in call order", () => {
    const events = [
      init({ prompt: "go" }),
      replied("model-1-1", reply("", [readCall("a"), readCall("b"), readCall("c")])),
      settled("call-1-c", "C"),
      settled("call-1-a", "A"),
    ];
    expect(foldTranscript(events).map(label)).toEqual(["prompt", "(a,b,c)", "a=A,c=C"]);
  });

  test("T1: a step is closed by an interrupt whichever of its calls were done", () => {
    const calls = ["a", "b", "c"];
    for (const done of [[], ["a"], ["b"], ["c"], ["a", "b"], ["a", "c"], ["b", "c"]]) {
      const events = [
        init({ prompt: "go" }),
        replied(
          "model-1-1",
          reply(
            "",
            calls.map((id) => readCall(id)),
          ),
        ),
        ...done.map((id) => settled(`call-1-${id}`, id)),
        { type: "interrupt" },
        said("m1"),
        replied("model-2-2", reply("done")),
      ];
      const results = calls.map((id) => `${id}=${done.includes(id) ? id : "!"}`).join();
      expect(foldTranscript(events).map(label)).toEqual(["prompt", "(a,b,c)", results, "m1", "done()"]);
    }
  });

  test("T1: a journal with a hole still gives a valid history", () => {
    const events = [
      init({ prompt: "go" }),
      replied("model-1-1", reply("", [readCall("a"), readCall("b")])),
      settled("call-1-b", "B"),
      replied("model-2-1", reply("", [readCall("c")])),
      settled("call-2-c", "C"),
    ];
    const messages = foldTranscript(events);
    expect(problemOfHistory(messages)).toBeUndefined();
    expect(messages.map(label)).toEqual(["prompt", "(a,b)", "a=!,b=B", "(c)", "c=C"]);
  });

  test("events that are no part of it leave no trace", () => {
    const events = [init({ prompt: "go" }), replied("model-1-1", reply("done"))];
    const noise: PlainEvent[] = [
      { type: "pause" },
      { type: "resume" },
      { type: "taskStatus", childId: "call-1-a", status: "waiting" },
      settled("call-9-x", "late"),
      { type: "xstate.error.actor.model-2-1", error: new Error("boom") },
      { type: "interrupt" },
      { type: "cancelTask", callId: "a" },
    ];
    expect(foldTranscript([...events, ...noise])).toEqual(foldTranscript(events));
  });
});

// Random lives of a conversation, checked against what the rig saw. The seed is the title of the test.

const pick = <T>(next: (bound: number) => number, items: readonly T[]): T | undefined => items[next(items.length)];

function outcomeOf(next: (bound: number) => number, childId: string): unknown {
  if (childId.startsWith("model-")) return pick(next, [reply("said"), reply(""), stepReply(next), stepReply(next), 7]);
  return pick<unknown>(next, [
    { ok: true, content: `result of ${childId}` },
    { taskId: childId, status: "completed", result: childId },
    { taskId: childId, status: "failed", cause: "limit", message: "limit" },
    { waitId: childId, status: "answered", answer: "yes", by: "owner" },
    { waitId: childId, status: "expired" },
  ]);
}

function stepReply(next: (bound: number) => number) {
  const makers = [readCall, taskCall, askCall, (callId: string) => ({ callId, name: "fly", input: {} })];
  const calls = Array.from({ length: 1 + next(4) }, () => pick(next, makers)?.(`c${next(3)}`) ?? readCall("c"));
  return reply("thinking", calls);
}

function act(rig: ConversationRig, next: (bound: number) => number, step: number, condenses = false): void {
  const child = pick(next, rig.children());
  const roll = next(condenses ? 26 : 25);
  if (roll < 12 && child !== undefined) rig.settle(child, outcomeOf(next, child));
  else if (roll === 12 && child !== undefined) rig.fail(child, new Error(`broke ${child}`));
  else if (roll === 13) rig.send({ type: "pause" });
  else if (roll === 14) rig.send({ type: "resume" });
  else if (roll === 15) rig.send({ type: "interrupt" });
  else if (roll === 16) rig.send({ type: "cancelTask", callId: `c${next(3)}` });
  else if (roll === 17) rig.clock.increment(700_000);
  else if (roll === 18 && child !== undefined) {
    rig.send({ type: "taskStatus", childId: child, status: next(2) === 0 ? "waiting" : "running" });
  } else if (roll === 19) rig.send({ type: "userMessage", messageId: `m${step}`, text: "later", run: false });
  else if (roll === 20) rig.send({ type: "run" });
  else if (roll === 21) rig.send({ type: "switchModel", model: `model-${next(3)}` });
  else if (roll === 22) rig.send({ type: "describe", title: `title ${next(3)}` });
  // Of a call that nobody made, or made long ago.
  else if (roll === 23) rig.send({ type: `xstate.done.actor.call-${next(9)}-c${next(3)}x`, output: "orphan" });
  else if (roll === 25) rig.send({ type: "condense" });
  else rig.say(`m${step}`);
}

const restless = testAgent({
  limits: {
    maxIterations: 6,
    maxTurnMs: 3_600_000,
    maxParallelTools: 2,
    stuck: { repeats: 2, errors: 2, monologue: 2 },
  },
});

describe.each(Array.from({ length: 30 }, (_, index) => [index + 1]))("a random life, seed %i", (seed) => {
  const rig = startConversation({ agent: restless });
  const next = seededNumbers(seed);
  const wedged: string[] = [];
  const impure: string[] = [];
  for (let step = 0; step < 150; step += 1) {
    act(rig, next, step);
    const { context, status } = rig.snapshot();
    if (status !== "active") throw new Error(`The conversation ended as ${status}.`);
    const rests = rig.snapshot().hasTag("idle");
    if (!rests && rig.children().length === 0) wedged.push(`step ${step}: ${JSON.stringify(rig.snapshot().value)}`);
    const path = pathOfImpure(context);
    if (path !== undefined) impure.push(path);
  }

  test("I9: it never rests without a state that says so, or something that will wake it", () => {
    expect(wedged).toEqual([]);
  });

  test("its context is plain data, and small", () => {
    expect(impure).toEqual([]);
    expect(JSON.stringify(rig.snapshot().context).length).toBeLessThan(20_000);
  });

  test("T1: at every model call the history is one that providers accept", () => {
    expect(rig.modelStarts.length).toBeGreaterThan(5);
    expect(rig.modelStarts.map((start) => problemOfHistory(start.transcript)).filter((problem) => problem)).toEqual([]);
  });

  test("what a model was once shown never changes afterwards", () => {
    const final = rig.transcript();
    for (const { transcript } of rig.modelStarts) expect(final.slice(0, transcript.length)).toEqual(transcript);
  });

  test("T4: every accepted message stands in it once, in order", () => {
    const accepted = rig.journal.flatMap((event) => (event.type === "userMessage" ? [event["messageId"]] : []));
    const shown = rig.transcript().flatMap((message) => (message.role === "user" ? [message.messageId] : []));
    expect(shown.filter((id) => !id.startsWith("nudge-"))).toEqual(accepted);
  });

  test("C1: the number of results is the number of calls of all steps that are over", () => {
    const messages = rig.transcript();
    const open = rig.snapshot().context.calls.filter((call) => call.isOpen).length;
    const count = (role: "assistant" | "tool") =>
      messages.reduce((sum, message) => {
        if (message.role === "user" || message.role !== role) return sum;
        return sum + (message.role === "assistant" ? message.toolCalls.length : message.results.length);
      }, 0);
    expect(count("tool") + open).toBe(count("assistant"));
  });
});

test("T3: a model call that is made again is shown what it was shown the first time, not what was said since", () => {
  const rig = startConversation({ prompt: "go" });
  const first = rig.modelStarts[0]?.transcript;
  rig.say("m1");
  const { messagesTaken } = ModelJobInput.parse(rig.jobInput("model-1-1"));
  expect(foldTranscript(rig.journal, [], messagesTaken)).toEqual(first);
  expect(foldTranscript(rig.journal)).toHaveLength(2);
  rig.reply(reply("done"));
  const next = ModelJobInput.parse(rig.jobInput("model-2-2"));
  expect(foldTranscript(rig.journal, [], next.messagesTaken)).toEqual(rig.modelStarts[1]?.transcript);
});

describe.each(Array.from({ length: 15 }, (_, index) => [index + 101]))(
  "a random life that is condensed, seed %i",
  (seed) => {
    const rig = startConversation({ agent: restless });
    const next = seededNumbers(seed);
    for (let step = 0; step < 150; step += 1) act(rig, next, step, true);

    test("T1: at every model call the history is one that providers accept", () => {
      expect(rig.modelStarts.map((start) => problemOfHistory(start.transcript)).filter((problem) => problem)).toEqual(
        [],
      );
    });

    test("C3: every accepted message that does not wait was shown to a model, in the order of acceptance", () => {
      const accepted = rig.journal.flatMap((event) =>
        event.type === "userMessage" ? [String(event["messageId"])] : [],
      );
      const seen = new Set(
        rig.modelStarts.flatMap(({ transcript }) =>
          transcript.flatMap((message) => (message.role === "user" ? [message.messageId] : [])),
        ),
      );
      const { messages, messagesTaken } = rig.snapshot().context;
      expect([...seen].filter((id) => id.startsWith("m"))).toEqual(
        accepted.slice(0, accepted.length - (messages - messagesTaken)),
      );
    });

    test("I9: it never rests without a state that says so, or something that will wake it", () => {
      expect(rig.snapshot().hasTag("idle") || rig.children().length > 0).toBe(true);
    });
  },
);
