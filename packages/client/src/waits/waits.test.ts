import { describe, expect, test } from "vitest";
import type { ActorRecord, RecordHeader } from "@holdfast/protocol";
import { WaitChanges } from "./wait-changes.ts";
import { fitsWait, type WaitFilter } from "./wait-filter.ts";
import { waitRowOf, type WaitRow } from "./wait-row.ts";

const row = (changes: Partial<WaitRow> = {}): WaitRow => ({
  id: "w1",
  key: "d-1.ownerWait.w1",
  rev: 1,
  machineVersion: "2",
  status: "open",
  question: "Ship it?",
  assignee: "person-anna",
  replied: [],
  conversation: "c1",
  agent: "chief",
  callId: "c",
  createdAtMs: 10_000,
  onExpiry: "fail",
  ...changes,
});

describe("which questions are wanted", () => {
  const NOW_MS = 100_000;
  const full = row({ role: "reviewer", user: "anna", tenant: "acme", kind: "confirmation", expiresAtMs: 160_000 });
  test.each<[string, WaitFilter, boolean]>([
    ["all that are open", {}, true],
    ["of another status", { status: "answered" }, false],
    ["of any status", { status: "all" }, true],
    ["asked of somebody", { assignee: "person-anna" }, true],
    ["asked of somebody else", { assignee: "person-ben" }, false],
    ["asked of a role", { role: "reviewer" }, true],
    ["asked of another role", { role: "writer" }, false],
    ["of a tenant", { tenant: "acme" }, true],
    ["of another tenant", { tenant: "other" }, false],
    ["of a user", { user: "ben" }, false],
    ["of a conversation", { conversation: "c1" }, true],
    ["of another conversation", { conversation: "c2" }, false],
    ["of a kind", { kind: "confirmation" }, true],
    ["of another kind", { kind: "tool_call" }, false],
    ["old enough", { olderThanMs: 90_000 }, true],
    ["not old enough", { olderThanMs: 90_001 }, false],
    ["that expires soon", { expiresWithinMs: 60_000 }, true],
    ["that does not expire so soon", { expiresWithinMs: 59_999 }, false],
    ["one of two that do not fit", { tenant: "acme", role: "writer" }, false],
  ])("%s", (_, filter, expected) => {
    expect(fitsWait(full, filter, NOW_MS)).toBe(expected);
  });

  test("one that never expires does not expire soon, and a settled one is not open", () => {
    expect(fitsWait(row(), { expiresWithinMs: 1e12 }, NOW_MS)).toBe(false);
    expect(fitsWait(row({ status: "consumed" }), {}, NOW_MS)).toBe(false);
  });

  test("several approvers are each asked", () => {
    const several = row({ assignee: "owner", approvers: ["person-anna", "person-ben"] });
    expect(fitsWait(several, { assignee: "person-ben" }, NOW_MS)).toBe(true);
    expect(fitsWait(several, { assignee: "person-cara" }, NOW_MS)).toBe(false);
  });
});

describe("a row", () => {
  const header: RecordHeader = {
    token: "t",
    epoch: 1,
    key: "d-1.ownerWait.w1",
    genesis: "g:1",
    rev: 7,
    generation: "g",
    inboxSeq: 1,
    controlSeq: 0,
    status: "active",
    needsWork: true,
    writer: "n:1",
    list: { status: "open", user: "anna", tenant: "acme" },
  };
  const base = { waitId: "w1", status: "open", question: "Ship it?", assignee: "owner", onExpiry: "fail" };
  const asked = { ...base, conversationId: "c1", agent: "chief", callId: "c", expiresInMs: 60_000 };
  const record = (context: unknown, timers: ActorRecord["timers"] = {}): ActorRecord => ({
    format: 1,
    key: header.key,
    type: "ownerWait",
    id: "w1",
    genesis: header.genesis,
    principal: { kind: "person", id: "anna", roles: [] },
    createdAtMs: 1000,
    machine: { id: "ownerWait", version: "2", hash: "h" },
    rev: 7,
    status: "active",
    snapshot: { status: "active", value: "open", historyValue: {}, context, children: {} },
    timers,
    outbox: [],
    linksOut: {},
    marks: {},
    messageIds: new Uint8Array(),
    considered: { generation: "g", inbox: 1, control: 0 },
    directory: {},
  });
  const timer = (dueAtMs: number) => ({ gen: "1.0", dueAtMs, to: header.key, event: { type: "x" } });

  test.each(["expiry", "xstate.after.expiry.ownerWait.open.bounded"])("says when it expires by %s", (name) => {
    expect(waitRowOf(header, record(asked, { reminder: timer(1), [name]: timer(61_000) }))).toEqual({
      id: "w1",
      key: header.key,
      rev: 7,
      machineVersion: "2",
      status: "open",
      question: "Ship it?",
      assignee: "owner",
      replied: [],
      conversation: "c1",
      agent: "chief",
      callId: "c",
      user: "anna",
      tenant: "acme",
      createdAtMs: 1000,
      expiresAtMs: 61_000,
      onExpiry: "fail",
    });
  });

  test("says who has replied, and what the answer is", () => {
    const votes = [{ answerId: "a1", principal: "person-anna", value: "yes", action: "respond" }];
    const answered = { status: "answered", outcome: "answered", votes, answerId: "a1", answer: "yes", by: "owner" };
    expect(waitRowOf(header, record({ ...asked, ...answered, principal: "person-anna" }))).toMatchObject({
      status: "answered",
      replied: ["person-anna"],
      answer: { answerId: "a1", value: "yes", by: "owner", principal: "person-anna" },
    });
  });

  test("is none of something else, or of what is left of it", () => {
    expect(waitRowOf(header, record(undefined))).toBeUndefined();
    expect(waitRowOf(header, record({ question: 7 }))).toBeUndefined();
  });
});

describe("I2: what a reader is told", () => {
  const other = row({ id: "w2", key: "d-2.ownerWait.w2" });

  test("each question that fits, then that it does not any more", () => {
    const changes = new WaitChanges();
    changes.note(row(), true);
    changes.note(other, true);
    expect(changes.take()).toMatchObject({ kind: "current", wait: { id: "w1" } });
    expect(changes.take()).toMatchObject({ kind: "current", wait: { id: "w2" } });
    expect(changes.take()).toBeUndefined();
    changes.note(row({ status: "answered" }), false);
    expect(changes.take()).toMatchObject({ kind: "gone", wait: { status: "answered" } });
    changes.note(row({ status: "consumed" }), false);
    expect(changes.take()).toBeUndefined();
  });

  test("of a question that changes faster than it reads, the last change", () => {
    const changes = new WaitChanges();
    for (let rev = 1; rev <= 1000; rev += 1) changes.note(row({ rev }), true);
    changes.note(other, true);
    expect(changes.take()).toMatchObject({ wait: { id: "w1", rev: 1000 } });
    expect(changes.take()).toMatchObject({ wait: { id: "w2" } });
  });

  test("nothing of one that came and went before it was told", () => {
    const changes = new WaitChanges();
    changes.note(row(), true);
    changes.note(row({ status: "answered" }), false);
    expect(changes.take()).toBeUndefined();
  });

  test("it is woken by what comes", async () => {
    const changes = new WaitChanges();
    const more = changes.more();
    changes.note(row(), true);
    await more;
    expect(changes.take()).toBeDefined();
  });
});
