import { Cluster } from "../harness/cluster.ts";
import { readRowTable, runRows, whyNot, type Row, type RowStage, type RowTable, type RowTest } from "./row-run.ts";
import type { TurnActs } from "./row-turns.ts";
import { headline, type Scenario, type ScenarioOptions } from "./scenario.ts";

export type RowWorld = Pick<RowStage, "cluster" | "fleet" | "holdfast">;

/** Rows that share a fleet and what happens to it. */
export interface RowGroup {
  /** By the ids of their rows. */
  readonly tests: Readonly<Record<string, RowTest>>;
  /** Starts the fleet; what it adopts lives as long as the tests run. Groups have different namespaces. */
  readonly open: (stack: AsyncDisposableStack, cluster: Cluster, options: ScenarioOptions) => Promise<OpenGroup>;
}

export interface OpenGroup {
  readonly world: RowWorld;
  readonly acts: TurnActs;
  /** Name of the node that ends in the middle. */
  readonly nodes: { readonly killed: string };
}

/** A row, and why it does not hold; undefined when it does. */
interface Judged {
  readonly id: string;
  readonly why: string | undefined;
  readonly evidence?: readonly unknown[];
}

/**
 * A scenario that is a table of rows. Every row is a variant. The line carries the evidence of each, lists what failed with the reason, and what
 * has no test: those are false as well.
 * @param table  path of its file
 */
export function rowScenario(table: string, groups: readonly RowGroup[]): Omit<Scenario, "name"> {
  return {
    variants: readRowTable(table).rows.map(({ id }) => id),
    run: async (options) => {
      const { rows, leftOut } = chosenOf(readRowTable(table), options.variant);
      const judged = new Map<string, Judged>();
      const judge = (each: Judged): void => {
        judged.set(each.id, each);
        options.say(`  ${each.id}: ${each.why === undefined ? "pass" : `FAIL ${each.why}`}`);
      };
      await using stack = new AsyncDisposableStack();
      const cluster = stack.adopt(await Cluster.start(), (started) => started.stop());
      for (const group of groups) {
        const chosen = rows.filter(({ id }) => group.tests[id] !== undefined);
        if (chosen.length > 0) for (const each of await runGroup(group, chosen, cluster, options)) judge(each);
      }
      const untested = rows.filter(({ id }) => !judged.has(id));
      for (const row of untested) judge({ id: row.id, why: whyNot(row, undefined, { journals: new Map() }, NOBODY) });
      const inOrder = rows.flatMap(({ id }) => judged.get(id) ?? []);
      const failed = inOrder.filter(({ id, why }) => why !== undefined && !untested.some((row) => row.id === id));
      return {
        rows: Object.fromEntries(inOrder.map(({ id, why }) => [id, why === undefined])),
        leftOut,
        details: {
          evidence: Object.fromEntries(
            inOrder.flatMap(({ id, evidence }) => (evidence === undefined ? [] : [[id, evidence]])),
          ),
          untested: untested.map(({ id }) => id),
          failed: Object.fromEntries(failed.map(({ id, why }) => [id, why])),
        },
      };
    },
  };
}

const NOBODY = { killed: "" } as const;

/** Runs the tests of a group on a fleet of its own. A group that cannot begin or end fails all of its rows, and no other. */
async function runGroup(
  group: RowGroup,
  rows: readonly Row[],
  cluster: Cluster,
  options: ScenarioOptions,
): Promise<readonly Judged[]> {
  try {
    await using stack = new AsyncDisposableStack();
    const { world, acts, nodes } = await group.open(stack, cluster, options);
    const outcomes = await runRows(rows, group.tests, world, acts);
    const stored = await cluster.evidence(world.fleet.namespace);
    return rows.map((row) => {
      const outcome = outcomes.get(row.id);
      const why = whyNot(row, outcome, stored, nodes);
      return { id: row.id, why, ...(outcome?.kind === "ran" && { evidence: outcome.evidence }) };
    });
  } catch (error) {
    options.say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return rows.map(({ id }) => ({ id, why: `its group: ${headline(error)}` }));
  }
}

/** One row, when only that was asked for. */
function chosenOf({ rows, leftOut }: RowTable, variant: string | undefined): RowTable {
  if (variant === undefined) return { rows, leftOut };
  const others = rows.filter(({ id }) => id !== variant).map(({ id }) => id);
  const why = `only --variant ${variant} was asked for`;
  return {
    rows: rows.filter(({ id }) => id === variant),
    leftOut: { ...leftOut, ...Object.fromEntries(others.map((id) => [id, why])) },
  };
}
