import { principalToken, type PlainEvent, type Principal } from "@holdfast/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { OwnerWaitContext } from "./owner-wait-context.ts";
import { ownerWaitMachine } from "./owner-wait.machine.ts";
import { startChild } from "./testing/child-rig.ts";
import { AGENT, ANNA, answer, askAs, BEN, CARA, decline, offers, revoke } from "./testing/wait-rig.ts";

const EXPIRES_MS = 10_000;
const CHECKS = { seed: 20_261, numRuns: 300, verbose: 1 } as const; // fast-check prints the smallest example of a failure

const principal: fc.Arbitrary<Principal> = fc.record({
  kind: fc.constantFrom("person", "service", "agent"),
  id: fc.constantFrom("anna", "ben"),
  roles: fc.constant([]),
});
const answerId = fc.constantFrom("a1", "a2", "a3");
const sent = fc.oneof(
  fc.record({ type: fc.constant("answer"), answerId, value: fc.constantFrom("yes", "no", "maybe", "", 7), principal }),
  fc.record({ type: fc.constant("decline"), answerId, principal }),
  fc.record({ type: fc.constant("cancel"), principal }),
);
const happening = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("sent"), event: sent }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("passed"), ms: fc.integer({ min: 1, max: EXPIRES_MS }) }) },
);
const asked = fc.record({
  conversationId: fc.constant("c1"),
  agent: fc.constant("chief"),
  callId: fc.constant("c"),
  question: fc.constant("Ship it?"),
  options: fc.constant(["yes", "no"]),
  default: fc.constant("no"),
  expiresInMs: fc.constantFrom(1000, EXPIRES_MS),
  onExpiry: fc.constantFrom("fail", "default"),
  assignee: fc.constantFrom("owner", "person-anna"),
});

test("inv-2: once a question is settled it stays as it was settled, whatever comes", () => {
  const property = fc.property(asked, fc.array(happening, { maxLength: 12 }), (input, happenings) => {
    const rig = startChild(ownerWaitMachine, input);
    const context = () => OwnerWaitContext.parse(rig.child.getSnapshot().context);
    let settled: OwnerWaitContext | undefined;
    for (const each of happenings) {
      if ("event" in each) rig.send(each.event);
      else rig.clock.increment(each.ms);
      const now = context();
      if (settled !== undefined) expect(now).toEqual(settled);
      else if (now.status !== "open") settled = now;
    }
    expect(rig.received.length).toBe(settled === undefined ? 0 : 1); // who asked is told once
    expect(rig.output() === undefined).toBe(settled === undefined);
  });
  fc.assert(property, CHECKS);
});

test("inv-1: of all replies one counts at most, and it is no agent's and of nobody who was not asked", () => {
  const property = fc.property(asked, fc.array(sent, { maxLength: 12 }), (input, events) => {
    const rig = startChild(ownerWaitMachine, input);
    const counted = events.filter((event) => rig.send(event));
    expect(counted.length).toBeLessThanOrEqual(1);
    for (const { type, principal: who } of counted) {
      expect(who.kind).not.toBe("agent");
      if (type !== "cancel" && input.assignee !== "owner") expect(`${who.kind}-${who.id}`).toBe(input.assignee);
    }
  });
  fc.assert(property, CHECKS);
});

// What holds of a question of a conversation whatever people, its asker and the clock do, in any order and any number of times.

const sender: fc.Arbitrary<Principal> = fc.constantFrom(ANNA, BEN, CARA, AGENT);
const anything: fc.Arbitrary<PlainEvent | number> = fc.oneof(
  fc.tuple(sender, fc.constantFrom("yes", "no", "maybe"), answerId).map(([who, value, id]) => answer(who, value, id)),
  fc.tuple(sender, answerId).map(([who, id]) => decline(who, id)),
  fc.tuple(sender, answerId).map(([who, id]) => revoke(who, id)),
  fc.constantFrom<PlainEvent>({ type: "awaited" }, { type: "consumed" }, { type: "cancel" }),
  sender.map((principal) => ({ type: "cancel", principal })),
  fc.constantFrom(1000, 5000, 40_000),
);
const question = fc.record({
  quorum: fc.constantFrom(1, 2),
  approvers: fc.constantFrom(undefined, ["person-anna", "person-ben"]),
  revocableForMs: fc.constantFrom(undefined, 5000),
  expiry: fc.constantFrom<object>(
    {},
    { expiresInMs: 60_000 },
    { expiresInMs: 60_000, default: "no", onExpiry: "default", remindEveryMs: 7000 },
  ),
});

test("W1 to W5 hold in any order of events", () => {
  fc.assert(
    fc.property(question, fc.array(anything, { maxLength: 40 }), ({ expiry, ...rest }, events) => {
      const rig = askAs({ ...rest, ...expiry });
      let settled: string | undefined;
      let isAwaited = false;
      for (const next of events) {
        if (typeof next === "number") rig.clock.increment(next);
        else rig.send(next);
        if (typeof next !== "number" && next.type === "awaited") isAwaited = true;
        const { context, status } = rig.child.getSnapshot();
        const { votes = [], ...wait } = OwnerWaitContext.parse(context);
        const voters = votes.map(({ principal }) => principal);
        expect(new Set(voters).size, "W1: one reply of each person").toBe(voters.length);
        expect(voters, "W2").not.toContain(principalToken(AGENT));
        if (rest.approvers !== undefined) for (const voter of voters) expect(rest.approvers, "W2").toContain(voter);
        const agreed = votes.filter(({ value }) => value !== undefined && value === wait.answer).length;
        if (wait.outcome === "answered") expect(agreed, "W1: a quorum of equal answers").toBe(rest.quorum);
        if (wait.answer !== undefined && wait.outcome !== "answered") {
          expect([wait.outcome, wait.by], "W3: silence is no answer").toEqual(["expired", "default"]);
        }
        const told = offers(rig);
        expect(told.length, "W5: it is offered once").toBeLessThanOrEqual(1);
        if (told.length > 0 && wait.outcome === "answered")
          expect(isAwaited, "W5: not before it is waited for").toBe(true);
        if (told.length > 0) {
          settled ??= JSON.stringify(told[0]);
          expect(JSON.stringify(told[0]), "W4: what was offered stays").toBe(settled);
          expect(told[0], "W4").toMatchObject({ status: wait.outcome });
        }
        if (wait.status === "consumed") {
          expect(told.length, "W5: nothing is consumed that was not offered").toBe(1);
          expect(status).toBe("done");
        }
      }
    }),
    CHECKS,
  );
});
