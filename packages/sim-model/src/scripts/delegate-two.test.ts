import { expect, test } from "vitest";
import { blocker } from "./blocker.ts";
import { delegateTwo } from "./delegate-two.ts";
import { playScript, user } from "./play-script.ts";

test("delegates to both children at once and lists their results in call order", () => {
  const { steps, answer } = playScript(delegateTwo, [user("go")], (call) =>
    JSON.stringify(`result of ${String(call.arguments["prompt"])}`),
  );
  expect(steps).toEqual([
    [
      { name: "task", arguments: { subagent: "blocker", prompt: "child A" } },
      { name: "task", arguments: { subagent: "blocker", prompt: "child B" } },
    ],
  ]);
  expect(answer).toBe("Both children answered.\nchild A: result of child A\nchild B: result of child B");
});

test("a message while the children run changes nothing, one after the answer is echoed", () => {
  const results: string[] = ["one", '{"error":"lost"}'];
  const first = playScript(delegateTwo, [user("go")], () => results.shift() ?? "");
  const beforeAnswer = first.messages.slice(0, -1);
  const ask = (messages: typeof first.messages, text: string) =>
    delegateTwo({ messages: [...messages, user(text)], tools: [], attempt: 1 });
  expect(ask(beforeAnswer, "still there?").text).toBe(
    'Both children answered.\nchild A: one\nchild B: {"error":"lost"}',
  );
  expect(ask(first.messages, "and now?")).toEqual({ text: "and now?" });
});

test("a blocker is held and names what it was asked", () => {
  expect(blocker({ messages: [user("child A")], tools: [], attempt: 1 })).toEqual({
    block: true,
    text: "result of child A",
  });
});
