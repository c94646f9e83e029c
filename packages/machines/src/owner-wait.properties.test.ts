import type { Principal } from "@holdfast/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { OwnerWaitContext } from "./owner-wait-context.ts";
import { ownerWaitMachine } from "./owner-wait.machine.ts";
import { startChild } from "./testing/child-rig.ts";

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
