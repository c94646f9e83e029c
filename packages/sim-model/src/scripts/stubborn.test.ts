import { expect, test } from "vitest";
import { playScript, user } from "./play-script.ts";
import { stubborn } from "./stubborn.ts";

test("makes one call for ever, whatever it is told, until it is enough", () => {
  expect(() => playScript(stubborn, [user("go"), user("do something else")], () => "[]")).toThrow("still calls tools");
  expect(stubborn({ messages: [user("go")], tools: [], attempt: 1 })).toEqual({
    text: "still at it",
    toolCalls: [{ name: "list_files", arguments: { path: "." } }],
  });
  expect(playScript(stubborn, [user("go"), user("enough")], () => "[]")).toMatchObject({ steps: [], answer: "enough" });
});
