import { expect, test } from "vitest";
import { readPublishReply } from "./publish-reply.ts";

const answer = (text: string) => readPublishReply({ kind: "answer", bytes: new TextEncoder().encode(text) });

test("an acknowledgement is stored", () => {
  expect(answer(`{"stream":"S","seq":4}`)).toEqual({ kind: "stored", seq: 4, duplicate: false });
  expect(answer(`{"stream":"S","seq":4,"duplicate":true,"domain":"d"}`)).toEqual({
    kind: "stored",
    seq: 4,
    duplicate: true,
  });
});

test("an error is rejected with the server's code", () => {
  const error = `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"S","seq":0}`;
  expect(answer(error)).toEqual({ kind: "rejected", code: 10071, reason: "wrong last sequence: 3" });
});

test.each(["", "nonsense", "{}", `{"seq":4}`, `{"stream":"S"}`, "[]", "null"])(
  "an answer nobody can read (%s) is ambiguous, never a success and never a refusal",
  (text) => {
    expect(answer(text)).toMatchObject({ kind: "ambiguous" });
  },
);

test("only what was certainly not handed to a stream counts as not stored", () => {
  expect(readPublishReply({ kind: "noResponders" })).toMatchObject({ kind: "notStored" });
  expect(readPublishReply({ kind: "notSent", reason: "closed" })).toMatchObject({ kind: "notStored" });
  expect(readPublishReply({ kind: "lost", reason: "disconnected" })).toMatchObject({ kind: "ambiguous" });
});
