import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  AnnouncedEvent,
  encodeLifecycleEvent,
  isLaterEvent,
  LIFECYCLE_EVENTS,
  parseEventId,
  tryDecodeLifecycleEvent,
  type LifecycleEvent,
} from "./index.ts";

const event: LifecycleEvent = {
  specversion: "1.0",
  id: "d-3.task.t1^abc:7@12#2",
  source: "holdfast/task/t1",
  type: "holdfast.task.failed",
  subject: "d-3.task.t1",
  time: "2027-01-15T08:00:00.000Z",
  datacontenttype: "application/json",
  data: { taskId: "t1", agent: "reader", callId: "c", cause: "limit" },
};
const decoded = (headers: Readonly<Record<string, string>>, data: string) =>
  tryDecodeLifecycleEvent((name) => headers[name], data);

describe("a public event as a message", () => {
  test("has every attribute in a header of its own, and nothing but its data as JSON", () => {
    const { headers, data } = encodeLifecycleEvent(event);
    expect(headers).toEqual({
      "ce-specversion": "1.0",
      "ce-id": "d-3.task.t1^abc:7@12#2",
      "ce-source": "holdfast/task/t1",
      "ce-type": "holdfast.task.failed",
      "ce-subject": "d-3.task.t1",
      "ce-time": "2027-01-15T08:00:00.000Z",
      "ce-datacontenttype": "application/json",
    });
    expect(JSON.parse(data)).toEqual(event.data);
    expect(decoded(headers, data)).toEqual({ kind: "event", event });
  });

  test("percent-encodes what a header cannot carry, as the binding says", () => {
    const { headers } = encodeLifecycleEvent({ ...event, subject: 'a "b" 5% €\u{1f600}' });
    expect(headers["ce-subject"]).toBe("a%20%22b%22%205%25%20%E2%82%AC%F0%9F%98%80");
  });

  test("any attributes survive the way", () => {
    const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }).filter((one) => !/\p{Cc}/u.test(one));
    fc.assert(
      fc.property(text, text, (type, subject) => {
        const other: LifecycleEvent = { ...event, type: `own.${type}`, subject };
        const { headers, data } = encodeLifecycleEvent(other);
        for (const value of Object.values(headers)) expect(value).toMatch(/^[\x21-\x7e]+$/);
        expect(decoded(headers, data)).toEqual({ kind: "event", event: other });
      }),
    );
  });

  test.each([
    ["without an attribute", { "ce-id": undefined }, undefined, "id"],
    ["of another version", { "ce-specversion": "0.3" }, undefined, "specversion"],
    ["with a damaged escape", { "ce-type": "%E2%82" }, undefined, "URI"],
    ["without JSON", {}, "{", "JSON"],
    ["with a list", {}, "[]", "data"],
    ["whose data are not those of its type", {}, '{"taskId":"t1","agent":"reader"}', "data.callId"],
    ["with a cause that is none", {}, '{"taskId":"t1","agent":"a","callId":"c","cause":"bad"}', "data.cause"],
  ])("a message %s is not one", (_what, changed, data, reason) => {
    const encoded = encodeLifecycleEvent(event);
    const headers = new Map(Object.entries<string | undefined>({ ...encoded.headers, ...changed }));
    expect(tryDecodeLifecycleEvent((name) => headers.get(name), data ?? encoded.data)).toEqual({
      kind: "unreadable",
      reason: expect.stringContaining(reason),
    });
  });

  test("keeps fields that a later build added", () => {
    const later = { ...event, data: { ...event.data, attempt: 2 } };
    const { headers, data } = encodeLifecycleEvent(later);
    expect(decoded(headers, data)).toEqual({ kind: "event", event: later });
  });
});

describe("what an actor may announce", () => {
  const announced = { kind: "task", name: ["reader", "t1", "failed"], type: event.type, data: event.data };

  test("an event of a known type with its data, or of any other type with any", () => {
    expect(AnnouncedEvent.parse(announced)).toEqual(announced);
    const own = { ...announced, type: "shop.parcel.lost", data: { weight: 3, none: undefined } };
    expect(AnnouncedEvent.parse(own).data).toEqual({ weight: 3 });
  });

  test.each([
    ["a kind that has no subjects", { kind: "inbox" }],
    ["no name", { name: [] }],
    ["a token with a dot", { name: ["reader", "a.b"] }],
    ["a wildcard", { name: ["reader", "*"] }],
    ["more than a subject holds", { name: ["a".repeat(80), "b".repeat(80), "c".repeat(80)] }],
    ["a type with a line break", { type: "a\r\nNats-Msg-Id: x" }],
    ["data of another type", { data: { taskId: "t1" } }],
  ])("not %s", (_what, changed) => {
    expect(AnnouncedEvent.safeParse({ ...announced, ...changed }).success).toBe(false);
  });

  test("every type is on the subject that its name says", () => {
    for (const type of Object.keys(LIFECYCLE_EVENTS))
      expect(type).toMatch(/^holdfast\.(task|conversation|wait|wallet)\.[a-z][A-Za-z]*$/);
  });
});

describe("event ids", () => {
  test("say where an event stands among those of its actor", () => {
    expect(parseEventId(event.id)).toEqual({ actor: "d-3.task.t1^abc:7", rev: 12, index: 2 });
    for (const other of ["", "x", "d-3.task.t1^abc:7@12", "d-3.task^abc:7@12#2", "d-3.task.t1^abc@12#2"])
      expect(parseEventId(other)).toBeUndefined();
  });

  test("are ordered by revision, then by index, as numbers", () => {
    expect(isLaterEvent({ rev: 10, index: 0 }, { rev: 9, index: 5 })).toBe(true);
    expect(isLaterEvent({ rev: 9, index: 10 }, { rev: 9, index: 9 })).toBe(true);
    expect(isLaterEvent({ rev: 9, index: 9 }, { rev: 9, index: 9 })).toBe(false);
    expect(isLaterEvent({ rev: 8, index: 9 }, { rev: 9, index: 0 })).toBe(false);
  });
});
