import fc from "fast-check";
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

/** Replays every actor of a run from what was sent and what waits, and compares it with what is stored. */
async function judge({ scenario, order, options }: Run): Promise<number> {
  const { operations } = scenario;
  const chosen = order.flatMap((index) => operations[index % operations.length] ?? []);
  const { db } = await runScenario({ ...scenario, operations: chosen }, options);
  const machines = [...compileAll(scenarioMachines(() => undefined)).values()];
  let steps = 0;
  for (const record of Object.values(db.records)) {
    const entries = db.entries.filter(({ key }) => key === record.key);
    const stored = deepFreeze(roundTrip([...entries, ...unsentEntries(record)]));
    const result = replay(stored, { machines, scheme: TOY_SCHEME });
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

test(`any run of any of these machines replays to its record (SEED=${SEED})`, { timeout: 60_000 }, async () => {
  let steps = 0;
  const property = fc.asyncProperty(run, async (one) => {
    steps += await judge(one);
  });
  await fc.assert(property, RUNS);
  expect(steps).toBeGreaterThan(150);
});
