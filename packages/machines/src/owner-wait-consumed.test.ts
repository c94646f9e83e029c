import { describe, expect, test } from "vitest";
import { AGENT, ANNA, answer, askAs, BEN, decline, offers, revoke, whyNot } from "./testing/wait-rig.ts";
import type { ChildRig } from "./testing/child-rig.ts";

const context = (rig: ChildRig) => rig.child.getSnapshot().context;
const announced = (rig: ChildRig) => rig.emitted.map(({ type }) => type);

describe("W5: an outcome is consumed when the one who asked says so", () => {
  test("an answer before that one waits for it is kept, and offered when it does", () => {
    const rig = askAs();
    rig.send(answer(ANNA));
    expect(context(rig)).toMatchObject({ status: "answered" });
    expect(offers(rig)).toEqual([]);
    rig.send({ type: "awaited" });
    const output = { waitId: "child", status: "answered", answer: "yes", by: "owner", principal: "person-anna" };
    expect(offers(rig)).toEqual([output]);
    expect(context(rig)).toMatchObject({ status: "answered" });
    expect(rig.child.getSnapshot().status).toBe("active");
    rig.send({ type: "consumed" });
    expect(context(rig)).toMatchObject({ status: "consumed", outcome: "answered" });
    expect(rig.output()).toEqual(output);
  });

  test("one that is waited for already is offered at once", () => {
    const rig = askAs();
    rig.send({ type: "awaited" });
    rig.send(answer(ANNA));
    expect(offers(rig)).toMatchObject([{ status: "answered" }]);
  });

  test.each([
    ["declined", (rig: ChildRig) => rig.send(decline(ANNA)), {}],
    ["expired", (rig: ChildRig) => rig.clock.increment(60_000), { expiresInMs: 60_000 }],
    ["cancelled", (rig: ChildRig) => rig.send({ type: "cancel", principal: ANNA }), {}],
  ])("%s: likewise", (status, end, changes) => {
    const rig = askAs(changes);
    rig.send({ type: "awaited" });
    end(rig);
    expect(offers(rig)).toMatchObject([{ status }]);
    rig.send({ type: "consumed" });
    expect(context(rig)).toMatchObject({ status: "consumed", outcome: status });
    expect(rig.output()).toMatchObject({ status });
  });

  test.each([
    ["open", () => {}, "cancelled"],
    ["answered", (rig: ChildRig) => rig.send(answer(ANNA)), "answered"],
    ["offered", (rig: ChildRig) => [rig.send(answer(ANNA)), rig.send({ type: "awaited" })], "answered"],
  ])("%s when the one who asked gives it up: it ends, and was not consumed", (_, before, status) => {
    const rig = askAs();
    before(rig);
    rig.send({ type: "cancel", reason: "interrupt" });
    expect(rig.child.getSnapshot().status).toBe("done");
    expect(context(rig)).toMatchObject({ status });
  });

  test("the first answer wins until then, and a reply that comes again is no second one", () => {
    const rig = askAs();
    rig.send(answer(ANNA));
    expect(whyNot(rig, answer(ANNA))).toEqual({ kind: "duplicate" });
    expect(whyNot(rig, answer(BEN, "no"))).toMatchObject({ why: "closed", code: "HF-6001" });
    rig.send({ type: "awaited" });
    expect(whyNot(rig, answer(ANNA))).toEqual({ kind: "duplicate" });
    rig.send({ type: "consumed" });
    expect(whyNot(rig, answer(ANNA))).toEqual({ kind: "duplicate" });
    expect(whyNot(rig, answer(BEN, "no"))).toMatchObject({
      reason: "Question child is answered, and the answer is consumed; the first answer counts.",
    });
  });
});

describe("W4: a reply is taken back", () => {
  test("the question is open again, and somebody else may answer it", () => {
    const rig = askAs();
    rig.send(answer(ANNA));
    expect(rig.send(revoke(ANNA))).toBe(true);
    expect(context(rig)).toMatchObject({ status: "open", votes: [] });
    expect(rig.send(answer(BEN, "no"))).toBe(true);
    rig.send({ type: "awaited" });
    expect(offers(rig)).toMatchObject([{ answer: "no", principal: "person-ben" }]);
    expect(announced(rig)).toEqual(["waitOpened", "waitAnswered", "waitRevoked", "waitAnswered"]);
  });

  test("by nobody else", () => {
    const rig = askAs();
    rig.send(answer(ANNA));
    for (const event of [revoke(BEN), revoke(BEN, "a-anna"), revoke(ANNA, "other"), revoke(AGENT, "a-anna")]) {
      expect(rig.send(event)).toBe(false);
      expect(whyNot(rig, event)).toMatchObject({ kind: "refused", why: "notAllowed", code: "HF-6003" });
    }
    expect(context(rig)).toMatchObject({ status: "answered" });
  });

  test("it does not come back by being sent again; another one of the same person counts", () => {
    const rig = askAs();
    rig.send(answer(ANNA));
    rig.send(revoke(ANNA));
    expect(whyNot(rig, revoke(ANNA))).toEqual({ kind: "duplicate" });
    expect(rig.send(answer(ANNA))).toBe(false);
    expect(whyNot(rig, answer(ANNA))).toMatchObject({ code: "HF-6001" });
    expect(rig.send(answer(ANNA, "no", "a2"))).toBe(true);
  });

  test("never once it is offered", () => {
    const rig = askAs();
    rig.send(answer(ANNA));
    rig.send({ type: "awaited" });
    expect(rig.send(revoke(ANNA))).toBe(false);
    expect(whyNot(rig, revoke(ANNA))).toMatchObject({ why: "closed", code: "HF-6001" });
    rig.send({ type: "consumed" });
    expect(whyNot(rig, revoke(ANNA))).toMatchObject({ why: "closed", code: "HF-6001" });
  });

  test("for a time of its own, although it is waited for", () => {
    const rig = askAs({ revocableForMs: 10_000 });
    rig.send({ type: "awaited" });
    rig.send(answer(ANNA));
    rig.clock.increment(9999);
    expect(rig.send(revoke(ANNA))).toBe(true);
    rig.send(answer(ANNA, "no", "a2"));
    rig.clock.increment(9999);
    expect(offers(rig)).toEqual([]);
    rig.clock.increment(1);
    expect(offers(rig)).toMatchObject([{ answer: "no" }]);
  });

  test("the expiry does not begin anew", () => {
    const rig = askAs({ expiresInMs: 60_000 });
    rig.clock.increment(50_000);
    rig.send(answer(ANNA));
    rig.send(revoke(ANNA));
    rig.clock.increment(9999);
    expect(context(rig)).toMatchObject({ status: "open" });
    rig.clock.increment(1);
    expect(context(rig)).toMatchObject({ status: "expired" });
  });

  test("when its time is over meanwhile, taking it back is the expiry", () => {
    const rig = askAs({ expiresInMs: 60_000, default: "no", onExpiry: "default" });
    rig.send(answer(ANNA));
    rig.clock.increment(60_000);
    expect(context(rig)).toMatchObject({ status: "answered", answer: "yes" });
    rig.send(revoke(ANNA));
    expect(context(rig)).toMatchObject({ status: "expired", answer: "no", by: "default" });
    expect(announced(rig)).toEqual(["waitOpened", "waitAnswered", "waitRevoked", "waitExpired"]);
  });

  test("without end, it is refused", () => {
    const rig = askAs();
    for (let n = 0; n < 32; n += 1) {
      rig.send(answer(ANNA, "yes", `a${n}`));
      expect(rig.send(revoke(ANNA, `a${n}`))).toBe(true);
    }
    rig.send(answer(ANNA, "yes", "a32"));
    expect(rig.send(revoke(ANNA, "a32"))).toBe(false);
    expect(whyNot(rig, revoke(ANNA, "a32"))).toMatchObject({ why: "limit", code: "HF-5202" });
  });
});
