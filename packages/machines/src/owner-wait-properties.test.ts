import { principalToken, type PlainEvent, type Principal } from "@holdfast/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { OwnerWaitContext } from "./owner-wait-context.ts";
import { AGENT, ANNA, answer, askAs, BEN, CARA, decline, offers, revoke } from "./testing/wait-rig.ts";

// What holds of an owner-wait whatever people, its asker and the clock do, in any order and any number of times.

const sender: fc.Arbitrary<Principal> = fc.constantFrom(ANNA, BEN, CARA, AGENT);
const answerId = fc.constantFrom("a1", "a2", "a3");
const event: fc.Arbitrary<PlainEvent | number> = fc.oneof(
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
    { expiresInMs: 60_000, default: "no", onExpiry: "default" },
  ),
});

test("W1 to W5 hold in any order of events", () => {
  fc.assert(
    fc.property(question, fc.array(event, { maxLength: 40 }), ({ expiry, ...rest }, events) => {
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
    { numRuns: 300 },
  );
});
