import { describe, expect, test } from "vitest";
import { parseAcceptedCommands, type AcceptedCommand } from "./accepted-command.ts";
import { check, type CheckOptions } from "./check.ts";
import type { CheckEvidence } from "./check-evidence.ts";
import type { Claim } from "./verdict.ts";
import { CHILD, healthy, PARENT, type Draft } from "../testing/healthy-evidence.ts";

const same: CheckOptions = { replay: () => ({ kind: "same", steps: 1 }) };

/** Evidence of a clean run with one thing changed. */
function planted(plant: (draft: Draft) => void): CheckEvidence {
  const draft = healthy();
  plant(draft);
  return draft;
}

describe("a clean run", () => {
  test("holds every claim, and says how much was looked at", () => {
    const verdict = check(healthy(), same);
    expect(verdict.findings).toEqual([]);
    expect(verdict).toMatchObject({
      pass: true,
      leftOut: {},
      figures: {
        actors: 2,
        entries: 7,
        commands: 4,
        children: 1,
        settled: 2,
        replayed: 2,
        epochs: 3,
        ledgerEffects: 1,
      },
    });
    expect(Object.values(verdict.rows)).toEqual(Array.from({ length: 7 }, () => true));
  });

  test("what was not handed in is left out, not held", () => {
    const { ledger: _none, ...rest } = healthy();
    const { rows, leftOut, pass } = check({ ...rest, ledger: undefined });
    expect(Object.keys(leftOut)).toEqual(["replaysToStored", "ledgerClean"]);
    expect(Object.keys(rows)).not.toContain("ledgerClean");
    expect(pass).toBe(true);
  });

  test("entries that were sent again, also by a successor, are no contradiction", () => {
    const evidence = planted(({ journal }) => {
      const [first] = journal;
      if (first === undefined) return;
      journal.push({ ...first, seq: 90, entries: first.entries.map((entry) => ({ ...entry, node: "b" })) });
    });
    expect(check(evidence, same)).toMatchObject({ pass: true, figures: { repeated: 5 } });
  });

  test("a command that was accepted and may change nothing need not be applied", () => {
    const evidence = planted(({ accepted }) => {
      accepted.push({ key: PARENT, messageId: "m8", outcome: "accepted", mayBeIgnored: true });
      accepted.push(
        { key: PARENT, messageId: "m9", outcome: "refused" },
        { key: PARENT, messageId: "m1", outcome: "ignored" },
      );
    });
    expect(check(evidence, same).findings).toEqual([]);
  });

  test("entries that wait in the outbox of their record belong to its journal", () => {
    const evidence = planted((draft) => {
      const last = draft.entriesOf(CHILD).pop();
      draft.recordOf(CHILD).outbox.push({ ...last, kind: "journal", id: "2#1" });
    });
    const { rows } = check(evidence, same);
    expect(rows).toMatchObject({ journalGapFree: true, delegationsSettledOnce: true, nothingStuck: false });
  });
});

type Plant = readonly [claim: Claim, codes: readonly string[], what: string, plant: (draft: Draft) => void];

const PLANTS: readonly Plant[] = [
  [
    "acceptedAppliedOnce",
    ["lost"],
    "an applied command that is in no journal",
    ({ accepted }) => accepted.push({ key: PARENT, messageId: "m9", outcome: "applied", rev: 9 }),
  ],
  [
    "acceptedAppliedOnce",
    ["lost"],
    "an accepted command that never came",
    ({ accepted }) => accepted.push({ key: PARENT, messageId: "m9", outcome: "accepted" }),
  ],
  [
    "acceptedAppliedOnce",
    ["other-revision"],
    "a sender who was told another revision",
    ({ accepted }) => accepted.push({ key: PARENT, messageId: "m1", outcome: "applied", rev: 3 }),
  ],
  [
    "acceptedAppliedOnce",
    ["applied-twice"],
    "one message that caused two macrosteps",
    ({ entryAt }) => {
      entryAt(PARENT, 5).cause = { kind: "event", id: "m1" };
      entryAt(PARENT, 5).principal = { kind: "person", id: "ann" };
    },
  ],
  [
    "acceptedAppliedOnce",
    ["applied-twice"],
    "a message of a child that was taken twice",
    ({ entryAt }) => {
      entryAt(PARENT, 5).cause = { kind: "event", id: "up" };
      entryAt(PARENT, 5).sender = { key: CHILD, genesis: "g:2", n: 1 };
    },
  ],
  [
    "acceptedAppliedOnce",
    ["link-gap"],
    "a message of a child before the one it sent earlier",
    ({ entryAt }) => {
      entryAt(PARENT, 3).sender = { key: CHILD, genesis: "g:2", n: 2 };
    },
  ],
  [
    "delegationsSettledOnce",
    ["settled-twice"],
    "an outcome that was applied twice",
    ({ entryAt }) => {
      entryAt(PARENT, 5).cause = { kind: "settled", id: `${CHILD}:settled` };
    },
  ],
  [
    "delegationsSettledOnce",
    ["no-parent"],
    "a child of an incarnation that is gone",
    ({ recordOf }) => {
      recordOf(CHILD).parent = { key: PARENT, genesis: "g:0", childId: "kid" };
    },
  ],
  [
    "delegationsSettledOnce",
    ["settled-unended"],
    "an outcome of a child that never had one",
    (draft) => {
      draft.recordOf(CHILD).status = "stopped";
      draft.actorOf(CHILD).header.status = "stopped";
      draft.entryAt(CHILD, 2).status = "stopped";
    },
  ],
  ["journalGapFree", ["gap"], "a revision that is missing", ({ entriesOf }) => entriesOf(PARENT).splice(2, 1)],
  [
    "journalGapFree",
    ["short"],
    "a record that is ahead of its journal",
    ({ actorOf, recordOf }) => {
      recordOf(PARENT).rev = 6;
      actorOf(PARENT).header.rev = 6;
    },
  ],
  [
    "journalGapFree",
    ["ahead"],
    "a journal that is ahead of its record",
    ({ actorOf, recordOf }) => {
      recordOf(CHILD).rev = 1;
      actorOf(CHILD).header.rev = 1;
    },
  ],
  [
    "journalGapFree",
    ["contradiction"],
    "one revision with two contents",
    ({ entriesOf, entryAt }) => entriesOf(PARENT).push({ ...entryAt(PARENT, 2), event: { type: "other" } }),
  ],
  [
    "journalGapFree",
    ["previous"],
    "an entry that follows another one than the last",
    ({ entryAt }) => {
      entryAt(PARENT, 3).prevRev = 1;
    },
  ],
  [
    "journalGapFree",
    ["state-jump"],
    "an entry that begins elsewhere",
    ({ entryAt }) => {
      entryAt(PARENT, 3).from = "elsewhere";
    },
  ],
  [
    "journalGapFree",
    ["state"],
    "a record in another state than its last entry",
    ({ recordOf }) => {
      recordOf(PARENT).snapshot.value = "elsewhere";
    },
  ],
  [
    "journalGapFree",
    ["status"],
    "a record with another status than its last entry",
    ({ entryAt }) => {
      entryAt(PARENT, 5).status = "closing";
    },
  ],
  [
    "journalGapFree",
    ["start"],
    "a second start of one incarnation",
    ({ entryAt }) => {
      entryAt(PARENT, 5).cause = { kind: "start", id: "again" };
    },
  ],
  [
    "journalGapFree",
    ["wrong-subject"],
    "an entry under the subject of another actor",
    ({ journal }) => {
      const [first] = journal;
      if (first !== undefined) journal[0] = { ...first, key: CHILD };
    },
  ],
  [
    "journalGapFree",
    ["unreadable"],
    "a stored value that nobody can read",
    ({ unreadable }) => unreadable.push({ where: "KV_x 3", why: "not a frame" }),
  ],
  [
    "oneOwnerPerEpoch",
    ["two-owners"],
    "two incarnations that committed in one epoch",
    ({ entryAt }) => {
      entryAt(PARENT, 2).writer = { incarnation: "b:00000002", epoch: 1 };
    },
  ],
  [
    "oneOwnerPerEpoch",
    ["two-owners"],
    "a record whose last writer is not the owner of its epoch",
    ({ actorOf }) => {
      actorOf(PARENT).header.writer = "c:00000003";
    },
  ],
  [
    "oneOwnerPerEpoch",
    ["epoch-fell"],
    "a former owner that committed after its successor",
    ({ entryAt }) => {
      entryAt(PARENT, 5).writer = { incarnation: "a:00000001", epoch: 1 };
      entryAt(PARENT, 4).writer = { incarnation: "b:00000002", epoch: 2 };
    },
  ],
  [
    "oneOwnerPerEpoch",
    ["owner-unknown"],
    "an entry that does not say who committed it",
    ({ entryAt }) => {
      delete entryAt(PARENT, 2).writer;
    },
  ],
  [
    "oneOwnerPerEpoch",
    ["lease-behind"],
    "a lease that is older than what was committed",
    ({ leases }) => {
      const [, second] = leases;
      if (second !== undefined) leases[1] = { ...second, epoch: 0 };
    },
  ],
  [
    "nothingStuck",
    ["unsent"],
    "an effect that did not leave",
    ({ recordOf }) => recordOf(PARENT).outbox.push({ kind: "send", id: "5#0" }),
  ],
  [
    "nothingStuck",
    ["overdue"],
    "a timer that should have fired",
    ({ recordOf }) => {
      recordOf(PARENT).timers["t"] = { gen: "5.0", dueAtMs: 1 };
    },
  ],
  [
    "nothingStuck",
    ["job-pending"],
    "a job that never came back",
    ({ recordOf }) => {
      recordOf(PARENT).snapshot.children["j"] = { kind: "job", key: "j-x", status: "active" };
    },
  ],
  [
    "nothingStuck",
    ["child-missing"],
    "a child that was never created",
    ({ recordOf }) => {
      recordOf(PARENT).snapshot.children["k2"] = { kind: "actor", key: "d-2.task.gone", status: "active" };
    },
  ],
  ["nothingStuck", ["unread"], "a message that nobody read", ({ messages }) => messages.push(message(77, "inbox"))],
  ["nothingStuck", ["parked"], "a message that was set aside", ({ messages }) => messages.push(message(1, "parked"))],
  [
    "nothingStuck",
    ["generations"],
    "a lease that counts in another stream than its record",
    ({ leases, messages }) => {
      const [first] = leases;
      if (first !== undefined) leases[0] = { ...first, generation: "old" };
      messages.push(message(1, "inbox"));
    },
  ],
  [
    "nothingStuck",
    ["unowned"],
    "a partition without an owner",
    ({ leases }) => {
      const [first] = leases;
      if (first !== undefined) leases[0] = { ...first, state: "released" };
    },
  ],
  ["ledgerClean", ["effect-twice"], "an effect that happened twice", ({ ledger }) => ledger.push(line("applied", 1))],
  [
    "ledgerClean",
    ["two-keys"],
    "a call that asked under two keys",
    ({ ledger }) =>
      ledger.push(
        JSON.stringify({ line: "attempt", attempt: 2, at: 1, callId: "call", idempotencyKey: "other", kind: "x" }),
      ),
  ],
  [
    "ledgerClean",
    ["effect-late"],
    "an effect after its call was settled",
    ({ ledger }) => ledger.push(settlement("call"), attempt(2), line("applied", 2)),
  ],
  [
    "ledgerClean",
    ["effect-lost"],
    "a settled call without an effect",
    ({ ledger }) => ledger.push(settlement("call-2")),
  ],
  ["ledgerClean", ["bad-line"], "a line that is none", ({ ledger }) => ledger.push("{")],
];

const line = (what: string, attempt: number): string => JSON.stringify({ line: what, attempt, at: 1 });
const settlement = (callId: string): string =>
  JSON.stringify({ line: "settlement", at: 1, callId, outcome: "completed" });
const attempt = (number: number): string =>
  JSON.stringify({
    line: "attempt",
    attempt: number,
    at: 1,
    callId: "call",
    idempotencyKey: `key-${number}`,
    kind: "x",
  });
const message = (seq: number, lane: "inbox" | "parked") =>
  ({ stream: "S", seq, lane, key: PARENT, principal: undefined, messageId: `id-${seq}`, storedAtMs: 1 }) as const;

describe("planted: exactly one row goes red", () => {
  // A late effect is one of a call under another key than its first: the ledger cannot have the one without the other.
  const also: Readonly<Record<string, readonly string[]>> = { "effect-late": ["two-keys"] };

  test.each(PLANTS)("%s %j: %s", (claim, codes, _what, plant) => {
    const { rows, findings, pass } = check(planted(plant), same);
    const red = Object.entries(rows).flatMap(([row, holds]) => (holds ? [] : [row]));
    expect({ red, pass }).toEqual({ red: [claim], pass: false });
    const known = new Set([...codes, ...codes.flatMap((code) => also[code] ?? [])]);
    expect(new Set(findings.map(({ code }) => code))).toEqual(known);
  });

  test("a child that ended while its parent waits is neither settled nor awake", () => {
    const evidence = planted(({ entriesOf, recordOf, actorOf, entryAt }) => {
      entriesOf(PARENT).splice(3);
      entryAt(PARENT, 3).to = "idle";
      recordOf(PARENT).rev = 3;
      actorOf(PARENT).header.rev = 3;
      recordOf(PARENT).snapshot.children["kid"] = { kind: "actor", key: CHILD, status: "active" };
    });
    const { findings } = check({ ...evidence, accepted: [] }, same);
    expect(findings.map(({ claim, code }) => `${claim} ${code}`)).toEqual([
      "delegationsSettledOnce unsettled",
      "nothingStuck child-ended",
    ]);
  });

  test("a replay that leads elsewhere, and one that cannot be made", () => {
    const different = check(healthy(), {
      replay: ({ key }) =>
        key === CHILD ? { kind: "different", rev: 2, expected: "a", found: "b" } : { kind: "same", steps: 5 },
    });
    expect(different.findings).toEqual([
      { claim: "replaysToStored", code: "different", key: CHILD, at: 2, expected: "a", found: "b" },
    ]);
    const unknown = check(healthy(), { replay: () => ({ kind: "not-replayed", why: "unknown type" }) });
    expect(unknown.rows).toMatchObject({ replaysToStored: false, journalGapFree: true });
    expect(unknown.figures.replayed).toBe(0);
  });

  test("an ended actor that is gone contradicts something only where nothing is ever removed", () => {
    const evidence = planted(({ recordOf, entryAt }) => {
      recordOf(CHILD).parent = { key: "d-3.boss.gone", genesis: "g:9", childId: "kid" };
      entryAt(PARENT, 4).cause = { kind: "timer", id: "t/1" };
    });
    expect(check(evidence, same).findings.map(({ code }) => code)).toEqual(["no-parent"]);
    expect(check(evidence, { ...same, retention: true }).findings).toEqual([]);
    const withoutChild = { ...healthy(), actors: healthy().actors.filter(({ record }) => record.key !== CHILD) };
    expect(check(withoutChild, same).findings.map(({ code }) => code)).toEqual(["no-record"]);
    expect(check(withoutChild, { ...same, retention: true }).findings).toEqual([]);
    const journal = withoutChild.journal.filter(({ key }) => key !== CHILD);
    const withoutBoth = { ...withoutChild, journal };
    expect(check(withoutBoth, same).findings.map(({ code }) => code)).toEqual(["lost"]);
    expect(check(withoutBoth, { ...same, retention: true }).findings).toEqual([]);
    const lost = { ...healthy(), actors: healthy().actors.filter(({ record }) => record.key !== PARENT) };
    expect(check(lost, { ...same, retention: true }).findings.map(({ code }) => code)).toContain("no-record");
  });

  test("an actor that must not rest where it is", () => {
    const verdict = check(healthy(), { ...same, mayRest: ({ snapshot }) => snapshot.value !== "idle" });
    expect(verdict.findings).toMatchObject([{ claim: "nothingStuck", code: "no-wake", key: PARENT }]);
  });
});

describe("the file of accepted commands", () => {
  const lineOf = (command: AcceptedCommand): string => `${JSON.stringify(command)}\n`;
  const one: AcceptedCommand = { key: PARENT, messageId: "m1", outcome: "applied", rev: 2 };

  test("a last line that was cut off does not count", () => {
    expect(parseAcceptedCommands(`${lineOf(one)}${lineOf(one).slice(0, 20)}`)).toEqual([one]);
  });

  test("a line that is none is named", () => {
    expect(() => parseAcceptedCommands(`${lineOf(one)}{}\n`)).toThrow("Line 2");
  });
});
