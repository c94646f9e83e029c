import { formatStamp, type ActorRecord, type JournalEntry } from "@holdfast/protocol";
import { assign, fromCallback, setup } from "xstate";
import { describe, expect, test } from "vitest";
import { compareWithStored, passOver, reconcile, replay, unsentEntries, type Replay } from "../index.ts";
import { recorder } from "../testing/recorder.machine.ts";
import { roundTrip } from "../testing/round-trip.ts";
import { typesOf } from "../testing/scenario-types.ts";
import { PARENT, SCHEME, Subject } from "../testing/subject.ts";

const GENESIS = "g:1";
const replayed = (subject: Subject, entries: readonly JournalEntry[] = subject.entries): Replay =>
  replay(roundTrip(entries), { machines: [subject.compiled], scheme: SCHEME });

/** A run with every cause: outside, another actor twice, a child, its outcome, a timer. */
function eventful(): Subject {
  const subject = new Subject(recorder, { actors: { kid: {} }, parent: PARENT }).start({ n: 1 });
  subject.send({ type: "HELLO", mark: "one" });
  subject.hear({ key: "d-0.other.o", genesis: "g:5", n: 1 }, { type: "SPAWN", mark: "two" });
  subject.nowMs += 5;
  subject.send("ARM");
  subject.hear({ key: subject.child("k").key, genesis: "g:6", n: 1 }, { type: "UP", mark: "up" });
  subject.settle("k", 7);
  subject.nowMs += 5;
  subject.fire("t");
  subject.send("TELL");
  return subject;
}

const changed = (entries: readonly JournalEntry[], rev: number, change: Partial<JournalEntry>): JournalEntry[] =>
  entries.map((entry) => (entry.rev === rev ? { ...entry, ...change } : entry));

describe("a journal replays to its record", () => {
  test("every cause, with the record after each step", () => {
    const subject = eventful();
    const { steps, end, repeated } = replayed(subject);
    expect({ end, repeated }).toEqual({ end: { kind: "complete" }, repeated: 0 });
    expect(steps.map(({ record }) => record.rev)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(compareWithStored(steps, subject.record)).toEqual([]);
    expect(steps.at(-1)?.record.linksOut).toEqual(subject.record.linksOut);
  });

  test("an event that was passed over, one of a volatile host, a stop", () => {
    const ears = setup({
      types: typesOf<{ heard: unknown[] }>({}),
      actors: { mouth: fromCallback(() => undefined) },
    }).createMachine({
      id: "ears",
      context: { heard: [] },
      invoke: { src: "mouth", id: "m" },
      on: { word: { actions: assign({ heard: ({ context, event }) => [...context.heard, event["word"]] }) } },
    });
    const subject = new Subject(ears).start();
    subject.apply({
      kind: "event",
      id: "said",
      event: { type: "word", word: "one" },
      fromHost: subject.child("m").key,
      external: false,
    });
    const large = { kind: "event", id: "large", event: { type: "word", word: "?" }, external: false } as const;
    const from = { key: "d-0.other.o", genesis: "g:5", n: 1 };
    const skipped = passOver(subject.compiled, subject.record, { ...large, from }, subject.env, "record-too-large");
    if (skipped.kind === "stepped") subject.commit(skipped);
    subject.apply(
      { kind: "event", id: "by-hand", event: { type: "word", word: "two" }, external: false },
      {
        ...subject.env,
        writer: { incarnation: "a:00000001", epoch: 1 },
      },
    );
    subject.stop();
    const { steps, end } = replayed(subject);
    expect(end).toEqual({ kind: "complete" });
    expect(compareWithStored(steps, subject.record)).toEqual([]);
    expect(subject.record).toMatchObject({
      rev: 5,
      status: "stopped",
      snapshot: { context: { heard: ["one", "two"] } },
    });
  });

  test("across two versions of a machine, when both are known", () => {
    const version = (name: string, delay: number) =>
      setup({ delays: { soon: delay } }).createMachine({
        id: "m",
        version: name,
        initial: "a",
        states: { a: { on: { go: "b" }, after: { soon: "b" } }, b: { after: name === "2" ? { 9: "a" } : {} } },
      });
    const old = new Subject(version("1", 5)).start();
    old.send("go");
    const unsent = old.record;
    const next = new Subject(version("2", 5));
    const result = reconcile(next.compiled, unsent, { ...next.env, carriedOutbox: unsent.outbox });
    if (result.kind !== "stepped") throw new Error(result.kind);
    // The entry of revision 2 waits in a record of another machine by now, and still names its own.
    const [first] = old.entries;
    const entries = [...(first === undefined ? [] : [first]), ...unsentEntries(result.record)];
    expect(entries.map(({ machine }) => machine.split("#")[0])).toEqual(["m@1", "m@1", "m@2"]);
    const machines = [old.compiled, next.compiled];
    const both = replay(entries, { machines, scheme: SCHEME });
    expect(both.end).toEqual({ kind: "complete" });
    expect(compareWithStored(both.steps, result.record)).toEqual([]);
    const wanted = formatStamp(next.compiled.stamp);
    expect(replay(entries, { machines: [old.compiled], scheme: SCHEME })).toMatchObject({
      steps: { length: 2 },
      end: { kind: "unknown-machine", rev: 3, wanted, known: [formatStamp(old.compiled.stamp)] },
    });
  });

  test("entries that were sent again, and those of a former incarnation that come late, change nothing", () => {
    const subject = eventful();
    const former = new Subject(recorder, { actors: { kid: {} } })
      .start()
      .entries.map((entry) => ({ ...entry, genesis: "g:0" }));
    const again = subject.entries.slice(2, 4).map((entry) => ({ ...entry, node: "other" }));
    const { steps, end, repeated } = replayed(subject, [...former, ...subject.entries, ...again, ...former]);
    expect({ end, repeated }).toEqual({ end: { kind: "complete" }, repeated: 2 });
    expect(compareWithStored(steps, subject.record)).toEqual([]);
    expect(steps.every(({ entry }) => entry.genesis === GENESIS)).toBe(true);
  });

  test("of an older build what does not need to know its sender", () => {
    const subject = new Subject(recorder, { actors: { kid: {} } }).start();
    subject.send("HELLO");
    expect(replayed(subject).end).toEqual({ kind: "complete" });
    subject.hear({ key: "d-0.other.o", genesis: "g:5", n: 1 }, "HELLO");
    const old = subject.entries.map(({ sender: _none, ...entry }) => entry);
    expect(replayed(subject, old)).toMatchObject({ steps: { length: 2 }, end: { kind: "unreplayable", rev: 3 } });
  });

  test("of an older build what names nothing that it started; of this one what it names is compared", () => {
    const subject = eventful();
    const at = subject.entries.find(({ starts }) => starts !== undefined);
    expect(at?.starts).toEqual([{ childId: "k", key: subject.child("k").key, src: "kid" }]);
    const older = subject.entries.map(({ starts: _starts, ...entry }) => entry);
    expect(replayed(subject, older).end).toEqual({ kind: "complete" });
    const wrong = changed(subject.entries, at?.rev ?? 0, {
      starts: [{ childId: "k", key: "d-0.kid.other", src: "kid" }],
    });
    expect(replayed(subject, wrong).end).toMatchObject({ kind: "mismatch", rev: at?.rev, path: "starts[0].key" });
  });

  test("nothing is complete, and not the record", () => {
    const subject = eventful();
    const { steps, end } = replayed(subject, []);
    expect(end).toEqual({ kind: "complete" });
    expect(compareWithStored(steps, subject.record)).toEqual([{ path: "rev", before: 8 }]);
  });
});

describe("planted: what does not belong together is named", () => {
  const end = (entries: (subject: Subject) => readonly JournalEntry[]): Replay["end"] => {
    const subject = eventful();
    return replayed(subject, entries(subject)).end;
  };
  const by = (rev: number, change: Partial<JournalEntry>): Replay["end"] =>
    end(({ entries }) => changed(entries, rev, change));

  test.each<readonly [string, number, Partial<JournalEntry>, string]>([
    ["another state after it", 2, { to: "off" }, "to"],
    ["another state before it", 4, { from: "off" }, "from"],
    ["another status", 3, { status: "done" }, "status"],
    ["one effect more", 3, { effects: ["3#0", "3#1"] }, "effects[1]"],
    ["an effect under another id", 3, { effects: ["3#9"] }, "effects[0]"],
    ["another event of a timer", 7, { event: { type: "TOCK" } }, "event.type"],
    ["a generation of a timer that never was", 7, { cause: { kind: "timer", id: "t/9.9" } }, "event"],
    ["a message out of its order", 3, { sender: { key: "d-0.other.o", genesis: "g:5", n: 2 } }, "event"],
    ["a message that was there before", 8, { cause: { kind: "event", id: "m-1" } }, "event"],
    ["an outcome of nobody", 6, { event: { type: "xstate.done.actor.nobody" } }, "event"],
  ])("%s", (_what, rev, change, path) => {
    expect(by(rev, change)).toMatchObject({ kind: "mismatch", rev, path });
  });

  test("a mismatch says what the journal holds and what the machine does", () => {
    expect(by(2, { to: "off" })).toEqual({ kind: "mismatch", rev: 2, path: "to", expected: "off", found: "on" });
  });

  test("a revision that is missing, at the beginning and in the middle", () => {
    expect(end(({ entries }) => entries.slice(1))).toEqual({ kind: "gap", rev: 1, found: 2 });
    expect(end(({ entries }) => entries.filter(({ rev }) => rev !== 4))).toEqual({ kind: "gap", rev: 4, found: 5 });
  });

  test("one revision with two contents", () => {
    const twice = end(({ entries }) => [...entries, ...changed(entries, 5, { to: "off" }).slice(4, 5)]);
    expect(twice).toEqual({ kind: "contradiction", rev: 5, path: "to", first: "on", second: "off" });
  });

  test("a start that lacks its principal, an actor whose type nobody knows", () => {
    const subject = eventful();
    const [first] = subject.entries;
    if (first === undefined) throw new Error("no first entry");
    const { principal: _nobody, ...anonymous } = first;
    expect(replayed(subject, [anonymous]).end).toMatchObject({ kind: "unreplayable", rev: 1 });
    expect(replay(subject.entries, { machines: [], scheme: SCHEME }).end).toMatchObject({
      kind: "unknown-machine",
      known: [],
    });
  });

  test("a pool that this namespace does not have cannot be replayed, and is no mismatch", () => {
    const subject = eventful();
    const scheme = { pools: { gpu: 1 }, shards: 1 };
    expect(replay(subject.entries, { machines: [subject.compiled], scheme }).end).toMatchObject({
      kind: "unreplayable",
      rev: 3,
      why: expect.stringContaining("HF-1002"),
    });
  });

  test.each<readonly [string, (record: ActorRecord) => ActorRecord, string]>([
    ["context", withContext, "snapshot.context.seen[1]"],
    ["status", (record) => ({ ...record, status: "closing" }), "status"],
    [
      "timers",
      (record) => ({ ...record, timers: { t: { gen: "9.0", dueAtMs: 1, to: record.key, event: { type: "x" } } } }),
      "timers.t",
    ],
    ["marks", (record) => ({ ...record, marks: {} }), 'marks["d-0.other.o^g:5"]'],
    ["links", (record) => ({ ...record, linksOut: {} }), 'linksOut["d-0.boss.b^g:9"]'],
    ["children", (record) => ({ ...record, snapshot: { ...record.snapshot, children: {} } }), "snapshot.children.k"],
    ["remembered ids", (record) => ({ ...record, messageIds: new Uint8Array(8) }), "messageIds.$hf[2][0]"],
    ["an effect that waits", withOtherSend, 'outbox["8#0"].n'],
    [
      "an effect that nobody decided",
      (record) => ({ ...record, outbox: [{ kind: "stop", id: "8#7", to: record.key }] }),
      'outbox["8#7"]',
    ],
  ])("a stored record with other %s", (_what, tamper, path) => {
    const subject = eventful();
    const { steps } = replayed(subject);
    expect(compareWithStored(steps, tamper(subject.record))[0]?.path).toBe(path);
  });

  test("a payload that was changed afterwards is found in the context that it led to", () => {
    const subject = eventful();
    const { steps, end } = replayed(subject, changed(subject.entries, 2, { event: { type: "HELLO", mark: "other" } }));
    expect(end).toEqual({ kind: "complete" });
    expect(compareWithStored(steps, subject.record)).toEqual([
      { path: "snapshot.context.seen[0]", before: "one", after: "other" },
    ]);
  });

  test("of a tombstone: who it was and how it ended", () => {
    const subject = eventful();
    subject.send("END");
    const { steps } = replayed(subject);
    const { record } = subject;
    const tombstone: ActorRecord = {
      ...record,
      snapshot: { ...record.snapshot, context: undefined, historyValue: {}, children: {} },
      messageIds: new Uint8Array(0),
      outbox: [],
      tombstone: { endedAtMs: 1, atMs: 2 },
    };
    expect(record.status).toBe("done");
    expect(compareWithStored(steps, tombstone)).toEqual([]);
    const other = { ...tombstone, snapshot: { ...tombstone.snapshot, output: "planted" } };
    expect(compareWithStored(steps, other).map(({ path }) => path)).toEqual(["snapshot.output"]);
    expect(compareWithStored(steps, { ...tombstone, status: "stopped" }).map(({ path }) => path)).toEqual(["status"]);
  });

  test("what no journal knows is not compared", () => {
    const subject = eventful();
    const { steps } = replayed(subject);
    const { snapshot } = subject.record;
    const children = Object.fromEntries(
      Object.entries(snapshot.children).map(([id, child]) => [id, { ...child, attempt: 2, runner: "a:00000001" }]),
    );
    const considered = { generation: "z", inbox: 99, control: 9 };
    expect(
      compareWithStored(steps, { ...subject.record, considered, outbox: [], snapshot: { ...snapshot, children } }),
    ).toEqual([]);
  });
});

function withContext(record: ActorRecord): ActorRecord {
  return { ...record, snapshot: { ...record.snapshot, context: { seen: ["one", "?"] } } };
}

function withOtherSend(record: ActorRecord): ActorRecord {
  return { ...record, outbox: record.outbox.map((effect) => (effect.kind === "send" ? { ...effect, n: 7 } : effect)) };
}
