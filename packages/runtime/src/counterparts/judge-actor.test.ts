import { describe, expect, test } from "vitest";
import { buildEffect } from "../testing/index.ts";
import type { Counterpart } from "./counterpart.ts";
import { judgeActor, type Finding } from "./judge-actor.ts";

const NOW = 1_800_000_000_000;
const KEY = "d-0.boss.b";
const judge = (...counterparts: readonly Counterpart[]): readonly Finding[] =>
  judgeActor({ key: KEY, seq: 7, counterparts }, NOW);
const timer = (inMs: number, isHeld: boolean): Counterpart => ({
  kind: "timer",
  timer: "expiry",
  gen: "3:0",
  dueAtMs: NOW + inMs,
  isHeld,
});
const child = (state: Extract<Counterpart, { kind: "child" }>["state"]): Counterpart => ({
  kind: "child",
  childId: "h",
  childKey: "d-1.helper.h",
  state,
});

describe("what has no counterpart", () => {
  test.each<[string, Counterpart]>([
    ["a rest that its author declared", { kind: "rest" }],
    ["a timer that is held", timer(60_000, true)],
    ["a timer that falls due now, held or being acted on", timer(-1000, false)],
    ["a child that lives", child({ kind: "alive" })],
    ["a job that is run", { kind: "work", childId: "j", childKey: "k", isRun: true }],
  ])("not: %s", (_what, counterpart) => {
    expect(judge(counterpart)).toEqual([]);
    expect(judge(counterpart, { kind: "parent", parentKey: "d-2.boss.a", isWaiting: true })).toEqual([]);
  });

  test("who has none at all, and the parent that waits for it does not wake it", () => {
    expect(judge()).toMatchObject([{ kind: "unwoken", subject: "7" }]);
    expect(judge({ kind: "parent", parentKey: "d-2.boss.a", isWaiting: true })).toMatchObject([{ kind: "unwoken" }]);
  });

  test("each thing by itself: one that lives does not excuse another that does not", () => {
    const found = judge(timer(60_000, true), child({ kind: "missing", why: "w" }), {
      kind: "work",
      childId: "j",
      childKey: "job-key",
      isRun: false,
    });
    expect(found.map(({ kind, subject }) => [kind, subject])).toEqual([
      ["child-missing", "d-1.helper.h"],
      ["unrun", "job-key"],
    ]);
  });

  test("a timer that nobody holds is armed again; one that is held and late only waits for its turn", () => {
    expect(judge(timer(60_000, false))).toMatchObject([
      { kind: "overdue", subject: "expiry/3:0", repair: { kind: "arm", dueAtMs: NOW + 60_000 } },
    ]);
    expect(judge(timer(-60_000, false))).toMatchObject([{ repair: { kind: "arm" } }]);
    expect(judge(timer(-60_000, true))).toMatchObject([{ kind: "overdue", repair: undefined }]);
  });

  test("a child that has ended is asked for its outcome, when that is stored", () => {
    const settled = buildEffect("settled");
    const ended = { kind: "ended", status: "done", genesis: "g1:5" } as const;
    expect(judge(child({ ...ended, settled }))).toMatchObject([
      { kind: "child-ended", repair: { kind: "resettle", child: { key: "d-1.helper.h", genesis: "g1:5" }, settled } },
    ]);
    expect(judge(child({ ...ended, settled: undefined }))).toMatchObject([{ repair: undefined }]);
  });

  test("effects that have not left: their actor is loaded when it is not", () => {
    const oldest = buildEffect("send");
    const outbox = { kind: "outbox", oldest, effects: 3 } as const;
    expect(judge({ ...outbox, isInMemory: false })).toMatchObject([
      { kind: "unsent", subject: oldest.id, repair: { kind: "load" } },
    ]);
    expect(judge({ ...outbox, isInMemory: true })).toMatchObject([{ repair: undefined }]);
  });

  test("a message that waits may be what all of them wait for, but not what was set aside, or does not leave", () => {
    const mayBeMail = (counterpart: Counterpart): readonly boolean[] =>
      judge(counterpart).map((found) => found.mayBeMail);
    expect(mayBeMail(child({ kind: "missing", why: "w" }))).toEqual([true]);
    expect(mayBeMail({ kind: "parent", parentKey: "p", isWaiting: false })).toEqual([true, true]);
    expect(mayBeMail(child({ kind: "setAside", why: "w" }))).toEqual([false]);
    expect(mayBeMail({ kind: "outbox", oldest: buildEffect("send"), effects: 1, isInMemory: true })).toEqual([false]);
  });

  test("each says what a person can do, and names whom", () => {
    for (const { fix } of [...judge(child({ kind: "missing", why: "w" })), ...judge(timer(-60_000, true)), ...judge()])
      expect(fix).toContain(KEY);
  });
});
