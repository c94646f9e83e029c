import { join } from "node:path";
import { ANSWER_PROMISES } from "./ouroboros-answers.ts";
import { ASKED_ENV, ASKED_PROMISES } from "./ouroboros-asked.ts";
import { BUDGET_FAULTS, BUDGET_PROMISES } from "./ouroboros-budgets.ts";
import { DEATH_GROUPS } from "./ouroboros-deaths.ts";
import { KILLED_FAULTS } from "./ouroboros-faults.ts";
import { FENCE_ROWS } from "./ouroboros-fences.ts";
import { killed } from "./ouroboros-fleet.ts";
import { HELD_GROUPS } from "./ouroboros-held.ts";
import { SPENT_PROMISES } from "./ouroboros-spent.ts";
import { STOP_GROUPS } from "./ouroboros-stops.ts";
import { WAIT_FAULTS, WAIT_PROMISES } from "./ouroboros-waits.ts";
import { rowScenario, type RowGroup } from "./row-scenario.ts";
import type { Scenario } from "./scenario.ts";

/** Each with a fleet of its own, one after the other. */
export const OUROBOROS_GROUPS: readonly RowGroup[] = [
  killed(
    {
      ...WAIT_PROMISES,
      ...ASKED_PROMISES,
      ...ANSWER_PROMISES,
      ...BUDGET_PROMISES,
      ...BUDGET_FAULTS,
      ...FENCE_ROWS,
      ...SPENT_PROMISES,
      ...WAIT_FAULTS,
      ...KILLED_FAULTS,
    },
    { env: ASKED_ENV },
  ),
  ...DEATH_GROUPS,
  ...STOP_GROUPS,
  ...HELD_GROUPS,
];

/**
 * What becomes of work that waits for its owner, is restarted as planned, has a budget, or is cancelled: case by case, invariant by invariant and
 * reported fault by reported fault, on agent nodes that end in the middle. A row without a test of its own is false.
 */
export const ouroboros: Scenario = {
  name: "ouroboros",
  ...rowScenario(join(import.meta.dirname, "ouroboros.rows.json"), OUROBOROS_GROUPS),
};
