import { describe, expect, test } from "vitest";
import { tryChatRequest } from "./chat-request.ts";

const call = (id: string) => ({ id, type: "function", function: { name: "t", arguments: "{}" } });
const assistant = (...ids: string[]) => ({ role: "assistant", content: null, tool_calls: ids.map(call) });
const result = (id: string) => ({ role: "tool", tool_call_id: id, content: `r ${id}` });
const user = { role: "user", content: "u" };

function problemOf(messages: readonly object[]): string | undefined {
  const parsed = tryChatRequest({ model: "m", messages });
  return parsed.kind === "invalid" ? `${parsed.param}: ${parsed.message}` : undefined;
}

test("content parts become text, defaults are filled in", () => {
  const parsed = tryChatRequest({
    model: "m",
    messages: [
      { role: "developer", content: "s" },
      { role: "user", content: [{ type: "text", text: "a" }, { type: "image_url" }, { type: "text", text: "b" }] },
      assistant("1"),
      result("1"),
    ],
  });
  expect(parsed).toEqual({
    kind: "parsed",
    request: {
      model: "m",
      stream: false,
      includeUsage: false,
      tools: [],
      messages: [
        { role: "system", text: "s" },
        { role: "user", text: "ab" },
        { role: "assistant", text: "", toolCalls: [{ id: "1", name: "t", arguments: "{}" }] },
        { role: "tool", callId: "1", text: "r 1" },
      ],
    },
  });
});

test("no tools are on offer when the caller forbids them", () => {
  const tools = [{ type: "function", function: { name: "t", parameters: {} } }];
  const offered = (choice: object) => {
    const parsed = tryChatRequest({ model: "m", messages: [user], tools, ...choice });
    return parsed.kind === "parsed" ? parsed.request.tools : parsed;
  };
  expect(offered({})).toEqual(["t"]);
  expect(offered({ tool_choice: "none" })).toEqual([]);
});

test.each([
  [undefined, "body"],
  [{ model: "m", messages: [] }, "messages"],
  [{ messages: [user] }, "model"],
  [{ model: "m", messages: [{ role: "robot", content: "" }] }, "messages.0.role"],
  [{ model: "m", messages: [user], tools: [{ type: "function", function: { name: "a b" } }] }, "tools.0.function.name"],
])("a malformed body names the field at fault (%#)", (body, field) => {
  const parsed = tryChatRequest(body);
  expect(parsed.kind === "invalid" && parsed.message.split(":")[0]).toBe(field);
});

describe("every tool call is answered once, directly after it", () => {
  test("parallel calls may be answered in any order", () => {
    expect(problemOf([user, assistant("1", "2"), result("2"), result("1"), user])).toBeUndefined();
  });
  test.each([
    [
      "a missing result",
      [user, assistant("1", "2"), result("1")],
      "messages: The last tool calls have no result yet: 2.",
    ],
    [
      "a message in between",
      [user, assistant("1"), user, result("1")],
      "messages.2: These tool calls were not answered before it: 1.",
    ],
    [
      "a doubled result",
      [user, assistant("1"), result("1"), result("1")],
      "messages.3: The tool message answers 1, which is not an open tool call.",
    ],
    [
      "an unknown result",
      [user, result("9")],
      "messages.1: The tool message answers 9, which is not an open tool call.",
    ],
    ["a shared id", [user, assistant("1", "1"), result("1")], "messages.1: Two tool calls share one id."],
  ])("%s is refused", (_name, messages, problem) => {
    expect(problemOf(messages)).toBe(problem);
  });
});
