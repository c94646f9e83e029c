import { describe, expect, test } from "vitest";
import { startConversation, type ConversationRig } from "./testing/conversation-rig.ts";
import { problemOfHistory } from "./testing/provider-history.ts";
import { readCall, reply, testAgent } from "./testing/test-agent.ts";

const deployCall = (callId: string) => ({ callId, name: "deploy", input: { path: "prod" } });
const LOST = { name: "RuntimeFault", code: "HF-3010", message: "attempt 1 may have happened" };
const QUESTION = "doubt-1-call-1-d";
const answered = (answer: object) => ({ waitId: "w1", status: "answered", answer, by: "owner" });

/** A conversation whose only call was lost between its mark and its result. */
function inDoubt(more: Parameters<typeof reply>[1] = []): ConversationRig {
  const rig = startConversation({ prompt: "go" });
  rig.reply(reply("", [deployCall("d"), ...more]));
  rig.fail("call-1-d", LOST);
  return rig;
}

/** Content of the results that the running model call is shown last. */
const shown = (rig: ConversationRig): readonly unknown[] => {
  const { transcript = [] } = rig.modelStarts.at(-1) ?? {};
  expect(problemOfHistory(transcript)).toBeUndefined();
  const last = transcript.findLast(({ role }) => role === "tool");
  return last?.role === "tool" ? last.results.map(({ ok, content }) => [ok, content]) : [];
};
const unknown = [[false, expect.stringContaining("HF-3010")]];

describe("an unsafe call that may have happened", () => {
  test("D1: a person is asked, with what it was; nothing runs meanwhile, and the turn has all the time", () => {
    const rig = inDoubt();
    expect(rig.children()).toEqual([QUESTION]);
    expect(rig.jobInput(QUESTION)).toMatchObject({
      question: expect.stringContaining('deploy happen? Its node died while it ran: {"path":"prod"}'),
      reason: LOST.message,
      callId: "d",
      agent: "chief",
    });
    rig.clock.increment(30 * 24 * 3_600_000);
    expect(rig.state()).toEqual({ status: "waiting", waitingOn: "owner" });
    expect(rig.modelStarts).toHaveLength(1);
  });

  test("it happened: the answer is its result", () => {
    const rig = inDoubt();
    rig.settle(QUESTION, answered({ action: "happened", result: "release 7" }));
    expect(shown(rig)).toEqual([[true, "release 7"]]);
    expect(rig.emitted).toContainEqual({ type: "waitConsumed", waitId: "w1", callId: "d" });
    const short = inDoubt();
    short.settle(QUESTION, answered({ action: "happened" }));
    expect(shown(short)).toEqual([[true, '{"happened":true}']]);
  });

  test("run it: it is made again, as it was, and its outcome is the result", () => {
    const rig = inDoubt();
    rig.settle(QUESTION, answered({ action: "run" }));
    expect(rig.children()).toEqual(["call-1-d"]);
    expect(rig.state()).toEqual({ status: "running" });
    expect(rig.jobInput("call-1-d")).toEqual({
      agent: "chief",
      callId: "d",
      name: "deploy",
      input: { path: "prod" },
      crashPolicy: "unsafe",
    });
    rig.settle("call-1-d", "done");
    expect(shown(rig)).toEqual([[true, "done"]]);
  });

  test("D1: lost once more, it is asked once more; an answer to the first question changes nothing", () => {
    const rig = inDoubt();
    rig.settle(QUESTION, answered({ action: "run" }));
    rig.fail("call-1-d", LOST);
    expect(rig.children()).toEqual(["doubt-2-call-1-d"]);
    expect(rig.settle(QUESTION, answered({ action: "happened" }))).toBe(false);
    rig.settle("doubt-2-call-1-d", answered({ action: "happened", result: "at last" }));
    expect(shown(rig)).toEqual([[true, "at last"]]);
  });

  test.each([
    ["the answer is to report it", answered({ action: "report" })],
    ["the one who was asked declines", { waitId: "w1", status: "declined", reason: "no idea" }],
    ["the question was withdrawn", { waitId: "w1", status: "cancelled" }],
  ])("D2: when %s, the agent is told that nobody knows", (_, outcome) => {
    const rig = inDoubt();
    rig.settle(QUESTION, outcome);
    expect(shown(rig)).toEqual(unknown);
  });

  test.each([{ type: "interrupt" }, { type: "cancelTask", callId: "d" }] as const)(
    "D2: $type withdraws the question, and the agent is told that nobody knows",
    (event) => {
      const rig = inDoubt();
      rig.send(event);
      expect(rig.sent).toContain(`${QUESTION} cancel`);
      expect(rig.snapshot().context.ending).toEqual([QUESTION]);
      if (event.type === "interrupt") rig.send({ type: "resume" });
      expect(shown(rig)).toEqual(unknown);
      rig.settle(QUESTION, { waitId: "w1", status: "cancelled" });
      expect(rig.snapshot().context.ending).toEqual([]);
    },
  );

  test("calls beside it go on, in their order, and it holds up none of them", () => {
    const rig = startConversation({
      agent: testAgent({ limits: { ...testAgent().limits, maxParallelTools: 1 } }),
      prompt: "go",
    });
    rig.reply(reply("", [deployCall("d"), readCall("a")]));
    rig.fail("call-1-d", LOST);
    expect(rig.children()).toEqual([QUESTION, "call-1-a"]);
    expect(rig.state()).toEqual({ status: "running" });
    rig.settle(QUESTION, answered({ action: "happened", result: "first" }));
    rig.settle("call-1-a", "A");
    expect(shown(rig)).toEqual([
      [true, "first"],
      [true, "A"],
    ]);
  });

  test("any other error of it, and this one of a tool that may be repeated, is a result at once", () => {
    const broken = startConversation({ prompt: "go" });
    broken.reply(reply("", [deployCall("d")]));
    broken.fail("call-1-d", new Error("no permission"));
    expect(shown(broken)).toEqual([[false, expect.stringContaining("no permission")]]);
    const repeated = startConversation({ prompt: "go" });
    repeated.reply(reply("", [readCall("a")]));
    repeated.fail("call-1-a", LOST);
    expect(shown(repeated)).toEqual(unknown);
  });
});
