import type { JournalEntry } from "@holdfast/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { foldDelegations } from "./delegations.ts";
import { formatFamilyCursor, parseFamilyCursor } from "./family-cursor.ts";
import { kindOf } from "./family-entry.ts";
import { FamilyOrder } from "./family-order.ts";

const ROOT = "d-0.conversation.c1";
const TASK = "d-1.task.t1";
const WORK = "d-2.conversation.w1";
const WAIT = "d-3.ownerWait.q1";

const entry = (key: string, rev: number, atMs: number, more: Partial<JournalEntry> = {}): JournalEntry => ({
  v: 1,
  key,
  genesis: "g1:1",
  rev,
  prevRev: rev - 1,
  event: { type: "xstate.init" },
  cause: { kind: rev === 1 ? "start" : "event", id: `m${rev}` },
  from: undefined,
  to: "x",
  status: "active",
  effects: [],
  atMs,
  machine: "m@1#000000000000",
  node: "n1",
  writer: { incarnation: "n1:a", epoch: 1 },
  ...more,
});
const settled = (childId: string, more: Partial<JournalEntry> = {}): Partial<JournalEntry> => ({
  event: { type: `xstate.done.actor.${childId}` },
  cause: { kind: "settled", id: `${childId}:settled` },
  ...more,
});
const starting = (childId: string, key: string, src: string): Partial<JournalEntry> => ({
  starts: [{ childId, key, src }],
});

/** A conversation that delegates and asks; each journal in stored order, one message per entry. */
const FAMILY: Readonly<Record<string, readonly JournalEntry[]>> = {
  [ROOT]: [
    entry(ROOT, 1, 10, starting("model-1-1", "model-1-1-x", "model.generate")),
    entry(ROOT, 2, 20, {
      ...settled("model-1-1", { ran: { attempt: 1, runner: "n1:a" } }),
      starts: [
        { childId: "call-1-a", key: TASK, src: "task" },
        { childId: "call-1-b", key: WAIT, src: "ownerWait" },
        { childId: "call-1-c", key: "call-1-c-y", src: "tool.run.idempotent" },
      ],
    }),
    // Its clock is behind: the outcome is applied before it happened.
    entry(ROOT, 3, 25, settled("call-1-a")),
    entry(ROOT, 4, 26, settled("call-1-c", { ran: { attempt: 1, runner: "n2:b" } })),
    entry(ROOT, 5, 60, settled("call-1-b")),
  ],
  [TASK]: [
    entry(TASK, 1, 22, starting("conversation", WORK, "conversation")),
    entry(TASK, 2, 50, settled("conversation", { status: "done" })),
  ],
  [WORK]: [
    entry(WORK, 1, 23, starting("model-1-1", "model-1-1-z", "model.generate")),
    entry(WORK, 2, 40, settled("model-1-1", { status: "done", ran: { attempt: 1, runner: "n2:b" } })),
  ],
  [WAIT]: [
    entry(WAIT, 1, 24),
    entry(WAIT, 2, 45, { principal: { kind: "person", id: "local", roles: [] }, status: "done" }),
  ],
};
const ORDER = [
  [ROOT, 1],
  [ROOT, 2],
  [TASK, 1],
  [WORK, 1],
  [WAIT, 1],
  [WORK, 2],
  [WAIT, 2],
  [TASK, 2],
  [ROOT, 3],
  [ROOT, 4],
  [ROOT, 5],
];
const root = { key: ROOT, genesis: "g1:1", rev: 0, seq: 0 };
const placeOf = ({ key, rev }: JournalEntry): readonly [string, number] => [key, rev];

/** Offers journals as a reader does, from where the position says; takes what may come. */
function drain(order: FamilyOrder, journals = FAMILY): JournalEntry[] {
  const taken: JournalEntry[] = [];
  const offer = (key: string, seq: number): void =>
    (journals[key] ?? []).forEach((one, at) => {
      if (at + 1 >= seq) order.offer(key, at + 1, [one]);
    });
  for (const { key, seq } of order.position) offer(key, seq);
  for (let step = order.take(); step !== undefined; step = order.take()) {
    for (const key of step.started) offer(key, 0);
    taken.push(step.entry);
  }
  return taken;
}

describe("the order of a family", () => {
  test("Y2, Y3: by time, a child after what started it, a result after what it is the result of", () => {
    const order = new FamilyOrder([root]);
    expect(drain(order).map(placeOf)).toEqual(ORDER);
    expect(order.position.map(({ key, rev }) => [key, rev])).toEqual([[ROOT, 5]]);
  });

  test("Y4: from every position exactly what comes after it", () => {
    const whole = drain(new FamilyOrder([root]));
    const order = new FamilyOrder([root]);
    const offer = (key: string): void => (FAMILY[key] ?? []).forEach((one, at) => order.offer(key, at + 1, [one]));
    offer(ROOT);
    for (let at = 1; at <= whole.length; at += 1) {
      order.take()?.started.forEach(offer);
      const position = parseFamilyCursor(ROOT, formatFamilyCursor(ROOT, order.position));
      expect(drain(new FamilyOrder(position)).map(placeOf), `after ${at}`).toEqual(whole.slice(at).map(placeOf));
    }
  });

  test("Y1: repeated and late entries, and those of another incarnation, leave no trace", () => {
    const rootEntries = FAMILY[ROOT] ?? [];
    const [first, second, third] = rootEntries;
    if (first === undefined || second === undefined || third === undefined) throw new Error("no entries");
    const former = { ...first, genesis: "g0:9", rev: 7 };
    const disturbed = { ...FAMILY, [ROOT]: [former, first, first, third, second, first, ...rootEntries.slice(3)] };
    expect(drain(new FamilyOrder([root]), disturbed).map(placeOf)).toEqual(ORDER);
  });

  test("Y1, Y2: however the entries arrive, each is handed over once, and never an effect before its cause", () => {
    const all = Object.entries(FAMILY).flatMap(([key, entries]) =>
      entries.map((one, at) => ({ key, seq: at + 1, one })),
    );
    fc.assert(
      fc.property(fc.shuffledSubarray(all, { minLength: all.length }), (arrivals) => {
        const order = new FamilyOrder([root]);
        const taken: string[] = [];
        const came: typeof all = [];
        const takeAll = (): void => {
          for (let step = order.take(); step !== undefined; step = order.take()) {
            taken.push(`${step.entry.key}@${step.entry.rev}`);
            for (const { key, seq, one } of came) if (step.started.includes(key)) order.offer(key, seq, [one]);
          }
        };
        for (const arrival of arrivals) {
          came.push(arrival);
          order.offer(arrival.key, arrival.seq, [arrival.one]);
          takeAll();
        }
        expect(taken.toSorted()).toEqual(all.map(({ one }) => `${one.key}@${one.rev}`).toSorted());
        const before = (a: string, b: string): boolean => taken.indexOf(a) < taken.indexOf(b);
        expect(before(`${ROOT}@2`, `${TASK}@1`) && before(`${TASK}@1`, `${WORK}@1`)).toBe(true);
        expect(before(`${WORK}@2`, `${TASK}@2`) && before(`${TASK}@2`, `${ROOT}@3`)).toBe(true);
        expect(before(`${WAIT}@2`, `${ROOT}@5`)).toBe(true);
      }),
    );
  });

  test("a member whose journal is gone holds its parent up until it is given up", () => {
    const { [TASK]: _gone, ...rest } = FAMILY;
    const order = new FamilyOrder([root]);
    expect(drain(order, rest).map(placeOf)).toEqual([
      [ROOT, 1],
      [ROOT, 2],
      [WAIT, 1],
      [WAIT, 2],
    ]);
    expect(order.missing.map(({ key }) => key)).toEqual([TASK]);
    order.giveUp(TASK);
    expect(order.missing).toEqual([]);
    expect(drain(order, {}).map(placeOf)).toEqual(ORDER.slice(-3));
  });
});

describe("a cursor of a family", () => {
  test("of another family, or no cursor at all, is refused", () => {
    const cursor = formatFamilyCursor(ROOT, [root]);
    expect(parseFamilyCursor(ROOT, cursor)).toEqual([root]);
    for (const [key, word] of [
      [WORK, cursor],
      [ROOT, "f1-"],
      [ROOT, "e1-00000000-1-1"],
      [ROOT, `${cursor}x`.slice(0, 30)],
    ] as const)
      expect(() => parseFamilyCursor(key, word)).toThrow(expect.objectContaining({ code: "HF-1001" }));
  });
});

test("an entry is a message, a result, a step of a wait, or another transition", () => {
  const kinds = drain(new FamilyOrder([root])).map(kindOf);
  expect(kinds).toEqual([
    "transition",
    "result",
    "transition",
    "transition",
    "wait",
    "result",
    "wait",
    "result",
    "result",
    "result",
    "result",
  ]);
  const said = entry(ROOT, 6, 70, { principal: { kind: "person", id: "local", roles: [] } });
  const reported = entry(ROOT, 7, 71, { sender: { key: TASK, genesis: "g1:1", n: 1 } });
  const timed = entry(ROOT, 8, 72, { cause: { kind: "timer", id: "t/1" } });
  expect([said, reported, timed].map(kindOf)).toEqual(["message", "message", "transition"]);
});

describe("the delegations of a family", () => {
  const common = { conversation: ROOT, decided: { rev: 2, atMs: 20 } };

  test("each call with what became of it, and what had to be done again", () => {
    expect(foldDelegations(drain(new FamilyOrder([root])))).toEqual([
      {
        ...common,
        callId: "a",
        src: "task",
        key: TASK,
        created: { atMs: 22, node: "n1" },
        attempts: 1,
        reissued: 1, // the model call of its conversation, by n2
        settled: { atMs: 50, status: "done" },
        applied: { rev: 3, atMs: 25, outcome: "done" },
        appliedTimes: 1,
      },
      {
        ...common,
        callId: "b",
        src: "ownerWait",
        key: WAIT,
        created: { atMs: 24, node: "n1" },
        attempts: 0,
        reissued: 0,
        settled: { atMs: 45, status: "done" },
        applied: { rev: 5, atMs: 60, outcome: "done" },
        appliedTimes: 1,
      },
      {
        ...common,
        callId: "c",
        src: "tool.run.idempotent",
        key: "call-1-c-y",
        attempts: 2,
        reissued: 1,
        settled: { atMs: 26, status: "done" },
        applied: { rev: 4, atMs: 26, outcome: "done" },
        appliedTimes: 1,
      },
    ]);
  });

  test("a question is applied when its outcome is taken in, and once, also when it ends later", () => {
    const [decided, ...rest] = FAMILY[ROOT] ?? [];
    if (decided === undefined) throw new Error("The family has no root.");
    const output = { waitId: "q1", status: "answered", answer: "yes" };
    const offered = { type: "waitSettled", childId: "call-1-b", output };
    const entries = rest.map((one) =>
      one.event.type === "xstate.done.actor.call-1-b"
        ? [
            {
              ...one,
              rev: one.rev + 100,
              atMs: one.atMs - 5,
              event: offered,
              cause: { kind: "event", id: "m" } as const,
            },
            one,
          ]
        : [one],
    );
    const rows = foldDelegations([decided, ...entries.flat()]);
    expect(rows.find(({ key }) => key === WAIT)).toMatchObject({
      applied: { atMs: 55, outcome: "done" },
      appliedTimes: 1,
    });
  });

  test("what has not happened yet is absent", () => {
    const early = (FAMILY[ROOT] ?? []).slice(0, 2);
    const rows = foldDelegations([...early, ...(FAMILY[TASK] ?? []).slice(0, 1)]);
    expect(rows[0]).toEqual({
      ...common,
      callId: "a",
      src: "task",
      key: TASK,
      created: { atMs: 22, node: "n1" },
      attempts: 1,
      reissued: 0,
      appliedTimes: 0,
    });
    expect(rows.map(({ callId, created }) => [callId, created === undefined])).toEqual([
      ["a", false],
      ["b", true],
      ["c", true],
    ]);
  });

  test("each member of a group has a row", () => {
    const starts = ["group-1-g-0", "group-1-g-1"].map((childId) => ({
      childId,
      key: `d-1.task.${childId}`,
      src: "task",
    }));
    const rows = foldDelegations([entry(ROOT, 1, 10, { starts }), entry(ROOT, 2, 20, settled("group-1-g-1"))]);
    expect(rows.map(({ callId, appliedTimes }) => [callId, appliedTimes])).toEqual([
      ["g-0", 0],
      ["g-1", 1],
    ]);
  });

  test("a result that was applied twice is seen", () => {
    const twice = [...drain(new FamilyOrder([root])), entry(ROOT, 6, 70, settled("call-1-b"))];
    expect(foldDelegations(twice).map(({ appliedTimes }) => appliedTimes)).toEqual([1, 2, 1]);
  });
});
