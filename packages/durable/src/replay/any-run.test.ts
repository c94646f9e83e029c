import fc from "fast-check";
import type { ActorRecord, JournalEntry } from "@holdfast/protocol";
import { expect, test } from "vitest";
import { compareWithStored, replay, unsentEntries } from "../index.ts";
import { deepFreeze } from "../testing/deep-freeze.ts";
import { roundTrip } from "../testing/round-trip.ts";
import { runScenario, type RunOptions } from "../testing/run-scenario.ts";
import { scenarioMachines } from "../testing/scenario-machines.ts";
import { SCENARIOS, type Scenario } from "../testing/scenarios.ts";
import { TOY_SCHEME, type ToyHost } from "../testing/toy-host.ts";
import { compileAll } from "../testing/toy-types.ts";

const SEED = Number(process.env["SEED"] ?? 20_261_201);
const RUNS = { seed: SEED, numRuns: 30, verbose: 1 } as const; // fast-check prints the seed of a failure

interface Run {
  readonly scenario: Scenario;
  /** Which of the scenario's operations happen, in which order. */
  readonly order: readonly number[];
  readonly options: RunOptions;
}

async function again(host: ToyHost): Promise<void> {
  host.db.inbox.push(...host.db.history.toReversed(), ...host.db.history);
  await host.drain();
}

const run: fc.Arbitrary<Run> = fc.record({
  scenario: fc.constantFrom(...SCENARIOS),
  order: fc.array(fc.nat(20), { maxLength: 10 }),
  options: fc.record(
    {
      cold: fc.boolean(),
      copies: fc.constantFrom(1, 2),
      swaps: fc.boolean(),
      crashAt: fc.constantFrom("after-commit" as const, "mid-dispatch" as const),
    },
    { requiredKeys: [] },
  ),
});

interface ActorOfRun {
  readonly record: ActorRecord;
  /** What was sent, repeats included, and what waits. */
  readonly stored: readonly JournalEntry[];
}

async function actorsOf({ scenario, order, options }: Run): Promise<readonly ActorOfRun[]> {
  const { operations } = scenario;
  const chosen = order.flatMap((index) => operations[index % operations.length] ?? []);
  const { db } = await runScenario({ ...scenario, operations: chosen }, options);
  return Object.values(db.records).map((record) => {
    const entries = db.entries.filter(({ key }) => key === record.key);
    return { record, stored: deepFreeze(roundTrip([...entries, ...unsentEntries(record)])) };
  });
}

const machines = [...compileAll(scenarioMachines(() => undefined)).values()];
const replayed = (stored: readonly JournalEntry[]) => replay(stored, { machines, scheme: TOY_SCHEME });

/** Replays every actor of a run and compares it with what is stored. */
async function judge(run: Run): Promise<number> {
  let steps = 0;
  for (const { record, stored } of await actorsOf(run)) {
    const result = replayed(stored);
    expect({ key: record.key, end: result.end }).toEqual({ key: record.key, end: { kind: "complete" } });
    expect(compareWithStored(result.steps, record)).toEqual([]);
    steps += result.steps.length;
  }
  return steps;
}

test.each(SCENARIOS)(
  "$name: the journal of every actor replays to its record, whatever went wrong on the way",
  async (scenario) => {
    const order = scenario.operations.map((_, index) => index);
    expect(await judge({ scenario, order, options: {} })).toBeGreaterThan(0);
    await judge({
      scenario,
      order,
      options: { cold: true, copies: 2, swaps: true, crashAt: "after-commit", disturb: again },
    });
  },
);

/** One thing about an entry that no transition could have written. */
const CORRUPTIONS: Readonly<Record<string, (entry: JournalEntry) => JournalEntry>> = {
  "another state after it": (entry) => ({ ...entry, to: "planted" }),
  "another state before it": (entry) => ({ ...entry, from: "planted" }),
  "another status": (entry) => ({ ...entry, status: entry.status === "closing" ? "active" : "closing" }),
  "an effect more": (entry) => ({ ...entry, effects: [...entry.effects, `${entry.rev}#99`] }),
  "another revision before it": (entry) => ({ ...entry, prevRev: entry.prevRev + 1 }),
  "a counter of its sender that is not the next": (entry) =>
    entry.sender === undefined
      ? { ...entry, sender: { key: entry.key, genesis: "toy:99999", n: 7 } }
      : { ...entry, sender: { ...entry.sender, n: entry.sender.n + 1 } },
};

test.each(SCENARIOS)("$name: whichever entry is tampered with or missing, the replay names it", async (scenario) => {
  const order = scenario.operations.map((_, index) => index);
  for (const { stored } of await actorsOf({ scenario, order, options: {} })) {
    for (const { rev } of stored) {
      for (const [what, corrupt] of Object.entries(CORRUPTIONS)) {
        const { end } = replayed(stored.map((entry) => (entry.rev === rev ? corrupt(entry) : entry)));
        expect({ what, end }).toMatchObject({
          what,
          end: { kind: expect.stringMatching(/^(mismatch|unreplayable)$/), rev },
        });
      }
      if (rev === stored.at(-1)?.rev) continue;
      expect(replayed(stored.filter((entry) => entry.rev !== rev)).end).toMatchObject({ kind: "gap", rev });
    }
  }
});

test(`any run of any of these machines replays to its record (SEED=${SEED})`, { timeout: 60_000 }, async () => {
  let steps = 0;
  const property = fc.asyncProperty(run, async (one) => {
    steps += await judge(one);
  });
  await fc.assert(property, RUNS);
  expect(steps).toBeGreaterThan(150);
});
