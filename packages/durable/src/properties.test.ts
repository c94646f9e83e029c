import fc from "fast-check";
import { expect, test } from "vitest";
import type { ActorRecord } from "@holdfast/protocol";
import { doneActorEvent, localEffectsOf, needsWork, step, type StepMessage } from "./index.ts";
import { isPlainObject } from "./plain-object.ts";
import { deepFreeze } from "./testing/deep-freeze.ts";
import { recorder } from "./testing/recorder.machine.ts";
import { roundTrip } from "./testing/round-trip.ts";
import { GENESIS, PARENT, PERSON, Subject } from "./testing/subject.ts";

const SEED = Number(process.env["SEED"] ?? 20_261_130);
const runs = (numRuns: number) => ({ seed: SEED, numRuns, verbose: 1 }) as const; // fast-check prints the seed of a failure

/** What may arrive, in any order and any number of times. */
type Arrival =
  | { readonly kind: "outside"; readonly id: number; readonly type: string }
  | { readonly kind: "linked"; readonly sender: number; readonly n: number }
  | { readonly kind: "child"; readonly n: number }
  | { readonly kind: "settled"; readonly incarnation: number }
  | { readonly kind: "timer"; readonly generation: number }
  | { readonly kind: "start" };

const arrival: fc.Arbitrary<Arrival> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("outside" as const),
      id: fc.nat(12),
      type: fc.constantFrom("SPAWN", "DROP", "ARM", "TELL", "KID", "ODD"),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("linked" as const),
      sender: fc.nat(2),
      n: fc.integer({ min: 1, max: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("child" as const), n: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("settled" as const), incarnation: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("timer" as const), generation: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.constant({ kind: "start" as const }) },
);

/** Everything that ever could have been a child key or a timer generation of this run. */
interface Past {
  readonly childKeys: string[];
  readonly generations: string[];
}

function messageOf(arrival: Arrival, { childKeys, generations }: Past): StepMessage {
  switch (arrival.kind) {
    case "outside": {
      const { id, type } = arrival;
      return { kind: "event", id: `o${id}`, event: { type, mark: `o${id}` }, external: true, principal: PERSON };
    }
    case "linked": {
      const { sender, n } = arrival;
      const mark = `s${sender}:${n}`;
      const from = { key: `d-0.other.s${sender}`, genesis: "g:5", n };
      return { kind: "event", id: mark, event: { type: "HELLO", mark }, from, external: false };
    }
    case "child": {
      const key = childKeys.at(-1) ?? "d-0.kid.none";
      const mark = `${key}:${arrival.n}`;
      return {
        kind: "event",
        id: mark,
        event: { type: "UP", mark },
        from: { key, genesis: "g:6", n: arrival.n },
        external: false,
      };
    }
    case "settled": {
      const childKey = childKeys[arrival.incarnation] ?? "d-0.kid.none";
      return {
        kind: "settled",
        id: `${childKey}:settled`,
        childId: "k",
        childKey,
        event: doneActorEvent("k", 1),
        toGenesis: GENESIS,
      };
    }
    case "timer":
      return { kind: "timer", timer: "t", gen: generations[arrival.generation] ?? "0.0" };
    case "start":
      return { kind: "start", id: "again", key: "d-0.subject.one", genesis: "g:1", principal: PERSON, generation: "g" };
  }
}

function play(
  arrivals: readonly Arrival[],
  visit: (subject: Subject, message: StepMessage, before: ActorRecord) => void,
): Subject {
  const subject = new Subject(recorder, { actors: { kid: {} }, parent: PARENT }).start();
  const past: Past = { childKeys: [], generations: [] };
  for (const one of arrivals) {
    const before = subject.record;
    const message = messageOf(one, past);
    subject.apply(message);
    visit(subject, message, before);
    const key = subject.record.snapshot.children["k"]?.key;
    if (key !== undefined && !past.childKeys.includes(key)) past.childKeys.push(key);
    const gen = subject.record.timers["t"]?.gen;
    if (gen !== undefined && !past.generations.includes(gen)) past.generations.push(gen);
  }
  return subject;
}
function seenBy(subject: Subject): readonly string[] {
  const { context } = subject.record.snapshot;
  return isPlainObject(context) && Array.isArray(context["seen"]) ? context["seen"].map(String) : [];
}

test(`no order and no number of deliveries applies a message twice (SEED=${SEED})`, () => {
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 60 }), (arrivals) => {
      const subject = play(arrivals, () => undefined);
      const marked = seenBy(subject).filter((mark) => mark !== "TICK" && mark !== "k:done");
      expect(marked).toEqual([...new Set(marked)]);
      for (const sender of [0, 1, 2]) {
        const taken = marked.filter((mark) => mark.startsWith(`s${sender}:`));
        expect(taken, "densely and in order").toEqual(taken.map((_, index) => `s${sender}:${index + 1}`));
      }
    }),
    runs(300),
  );
});

test(`each timer generation fires, and each child settles, at most once (SEED=${SEED})`, () => {
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 60 }), (arrivals) => {
      const fired: string[] = [];
      const subject = play(arrivals, (current, message, before) => {
        if (current.record === before) return;
        if (message.kind === "timer") fired.push(message.gen);
        if (message.kind === "settled") fired.push(message.childKey);
      });
      expect(fired).toEqual([...new Set(fired)]);
      expect(seenBy(subject).filter((mark) => mark === "TICK" || mark === "k:done")).toHaveLength(fired.length);
    }),
    runs(300),
  );
});

test(`every revision is one journal entry, ids are dense, counters of a link are dense (SEED=${SEED})`, () => {
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 40 }), (arrivals) => {
      let sent = 0;
      play(arrivals, ({ record }, _, before) => {
        if (record === before) return;
        expect(record.rev).toBe(before.rev + 1);
        expect(record.outbox.map(({ id }) => id)).toEqual(
          record.outbox.map((_entry, index) => `${record.rev}#${index}`),
        );
        expect(record.outbox.filter(({ kind }) => kind === "journal")).toHaveLength(1);
        for (const effect of record.outbox) {
          if (effect.kind !== "send" || effect.to !== PARENT.key) continue;
          sent += 1;
          expect(effect.n).toBe(sent);
        }
      });
    }),
    runs(200),
  );
});

test(`hot and cold, once and twice: a step is a function of its arguments (SEED=${SEED})`, () => {
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 30 }), (arrivals) => {
      play(arrivals, (subject, message, before) => {
        const cold = step(subject.compiled, deepFreeze(roundTrip(before)), message, subject.env);
        const again = step(subject.compiled, before, message, subject.env);
        expect(roundTrip(again)).toEqual(roundTrip(cold));
        if (again.kind === "stepped") expect(roundTrip(again.record)).toEqual(roundTrip(subject.record));
        else expect(subject.record).toBe(before);
      });
    }),
    runs(100),
  );
});

test(`a record that needs no work has nothing to be re-armed (SEED=${SEED})`, () => {
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 40 }), (arrivals) => {
      play(arrivals, ({ record }) => {
        const quiet = { ...record, outbox: [] };
        if (!needsWork(quiet)) expect(localEffectsOf(quiet)).toEqual([]);
      });
    }),
    runs(100),
  );
});
