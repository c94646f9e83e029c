import type { TranscriptMessage } from "@holdfast/protocol";
import { expect, test } from "vitest";
import { toProviderMessages } from "./provider-messages.ts";

const user = (text: string): TranscriptMessage => ({ role: "user", messageId: text, text });
const calls = (text: string, ...callIds: string[]): TranscriptMessage => ({
  role: "assistant",
  text,
  toolCalls: callIds.map((callId) => ({ callId, name: "look", input: { of: callId } })),
});
const results = (...callIds: string[]): TranscriptMessage => ({
  role: "tool",
  results: callIds.map((callId) => ({ callId, name: "look", ok: callId !== "bad", content: `result of ${callId}` })),
});

/** Roles with the ids they carry, in short. */
const outline = (transcript: readonly TranscriptMessage[]): readonly string[] =>
  toProviderMessages(transcript).map(({ role, content }) => {
    if (typeof content === "string") return `${role} ${content}`;
    const parts = content.map((part) => {
      if (part.type === "text") return part.text;
      if (part.type === "tool-call") return `call:${part.toolCallId}`;
      return part.type === "tool-result" ? `${part.output.type}:${part.toolCallId}` : part.type;
    });
    return `${role} ${parts.join(" ")}`;
  });

test("a plain conversation stays as it is", () => {
  expect(outline([user("hi"), calls("hello"), user("bye")])).toEqual(["user hi", "assistant hello", "user bye"]);
});

test("results come directly after their calls, in call order, whatever the order of their arrival", () => {
  expect(outline([user("go"), calls("", "a", "bad"), results("bad"), results("a"), calls("done")])).toEqual([
    "user go",
    "assistant call:a call:bad",
    "tool text:a error-text:bad",
    "assistant done",
  ]);
});

test("a message that arrived while calls were open comes after their results", () => {
  expect(outline([calls("x", "a", "b"), results("a"), user("hurry"), results("b"), calls("done")])).toEqual([
    "assistant x call:a call:b",
    "tool text:a text:b",
    "user hurry",
    "assistant done",
  ]);
});

test("of two results of one call the first counts; a result nobody asked for is left out", () => {
  const second: TranscriptMessage = {
    role: "tool",
    results: [
      { callId: "a", name: "look", ok: false, content: "late" },
      { callId: "ghost", name: "look", ok: true, content: "boo" },
    ],
  };
  expect(outline([calls("", "a", "b"), results("a"), second, results("b"), results("b")])).toEqual([
    "assistant call:a call:b",
    "tool text:a text:b",
  ]);
});

test("a call without a result gets one that says so, also at the end", () => {
  expect(outline([calls("", "a"), calls("", "b")])).toEqual([
    "assistant call:a",
    "tool error-text:a",
    "assistant call:b",
    "tool error-text:b",
  ]);
});

test("an answer of nothing is left out: providers refuse it", () => {
  expect(outline([user("hi"), calls(""), user("still there?")])).toEqual(["user hi", "user still there?"]);
});

test("names and arguments that a provider would refuse for ever are made harmless", () => {
  const messages = toProviderMessages([
    { role: "assistant", text: "", toolCalls: [{ callId: "a", name: "rm -rf /", input: "{oops" }] },
    results("a"),
  ]);
  expect(messages[0]?.content).toEqual([{ type: "tool-call", toolCallId: "a", toolName: "rm_-rf__", input: {} }]);
});

test("the same call id in two steps belongs to the step it stands in", () => {
  expect(outline([calls("", "a"), results("a"), calls("", "a"), results("a"), calls("end")])).toEqual([
    "assistant call:a",
    "tool text:a",
    "assistant call:a",
    "tool text:a",
    "assistant end",
  ]);
});
