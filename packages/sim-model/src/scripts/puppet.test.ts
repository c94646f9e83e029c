import { expect, test } from "vitest";
import type { ChatMessage } from "../chat-request.ts";
import { puppet } from "./puppet.ts";

const say = (text: string): ChatMessage => ({ role: "user", text });
const play = (messages: readonly ChatMessage[]) => puppet({ messages, tools: ["task"], attempt: 1 });
const called = (id: string): ChatMessage => ({
  role: "assistant",
  text: "",
  toolCalls: [{ id, name: "task", arguments: "{}" }],
});
const result = (callId: string, value: unknown): ChatMessage => ({ role: "tool", callId, text: JSON.stringify(value) });

test("steps are made one after the other, then their results are the answer", () => {
  const steps = [
    [{ name: "task", arguments: { prompt: "a" } }],
    [{ name: "task", arguments: { resume: "$task:0", prompt: "b" } }],
  ];
  const chat = [say(JSON.stringify(steps))];
  expect(play(chat)).toEqual({ toolCalls: steps[0] });
  chat.push(called("1"), result("1", { taskId: "call-1-x" }));
  expect(play(chat)).toEqual({ toolCalls: [{ name: "task", arguments: { resume: "call-1-x", prompt: "b" } }] });
  chat.push(called("2"), result("2", "B"));
  expect(play(chat)).toEqual({ text: JSON.stringify([{ taskId: "call-1-x" }, "B"]) });
});

test("everything else is echoed", () => {
  expect(play([say("hello")])).toEqual({ text: "hello" });
});
