// RowRun: rows of a table, each shown by a test of its own, all of them across the death of a node.
//
//   R1 own test    a row is true only when the test that carries its name ran through in this run; a row without a test is false
//   R2 evidence    a test names an actor and revisions of its journal; they are looked up in what is stored, by a reader of its own
//   R3 across      of a row that is about state the revisions were committed by the node that died and by the one that came after it
import type { Evidence } from "@holdfast/audit";
import type { HoldfastClient } from "@holdfast/client";
import { readFileSync } from "node:fs";
import { z } from "zod";
import type { Cluster } from "../harness/cluster.ts";
import type { AgentFleet } from "./agent-fleet.ts";
import { RowTurns, TURNS, type Turn, type TurnActs } from "./row-turns.ts";

const Row = z.object({ id: z.string(), part: z.string(), claim: z.string(), acrossKill: z.boolean() });
export type Row = z.infer<typeof Row>;
const RowTable = z.object({ rows: z.array(Row).min(1), leftOut: z.record(z.string(), z.string()) });
export type RowTable = z.infer<typeof RowTable>;

/** @throws ZodError when the file is no table, Error when a row is named twice */
export function readRowTable(file: string): RowTable {
  const table = RowTable.parse(JSON.parse(readFileSync(file, "utf8")));
  const twice = table.rows.filter(({ id }, at) => table.rows.findIndex((row) => row.id === id) !== at);
  if (twice.length > 0) throw new Error(`${file}: rows named twice: ${twice.map(({ id }) => id).join(", ")}`);
  return table;
}

/** What a test works with. */
export interface RowStage {
  readonly cluster: Cluster;
  readonly fleet: AgentFleet;
  readonly holdfast: HoldfastClient;
  /** Resolves when the node has been killed with everything that the tests had prepared, and another one was started. */
  readonly death: () => Promise<void>;
  /** Resolves when something else has happened to the fleet; whoever waits for a later turn has let the earlier ones pass. */
  readonly until: (turn: Turn) => Promise<void>;
}

/** An actor and revisions of its journal. */
export type RowEvidence = readonly [actor: string, ...revs: number[]];
export type RowTest = (stage: RowStage) => Promise<RowEvidence>;

/** What became of a row's test. */
export type RowOutcome =
  | { readonly kind: "ran"; readonly evidence: RowEvidence; readonly sawDeath: boolean }
  | { readonly kind: "failed"; readonly why: string }
  | { readonly kind: "untested" };

/** Runs the tests side by side, while the turns happen that they wait for. */
export async function runRows(
  rows: readonly Row[],
  tests: Readonly<Record<string, RowTest>>,
  world: Pick<RowStage, "cluster" | "fleet" | "holdfast">,
  acts: TurnActs,
): Promise<ReadonlyMap<string, RowOutcome>> {
  const turns = new RowTurns(rows.length);
  const outcomes = rows.map(async ({ id }, index): Promise<readonly [string, RowOutcome]> => {
    const test = tests[id];
    const waiter = turns.waiter(index);
    let sawDeath = false;
    const until = async (turn: Turn): Promise<void> => {
      await waiter.until(turn);
      sawDeath ||= TURNS.indexOf(turn) >= TURNS.indexOf("death");
    };
    try {
      if (test === undefined) return [id, { kind: "untested" }]; // R1
      return [id, { kind: "ran", evidence: await test({ ...world, until, death: () => until("death") }), sawDeath }];
    } catch (error) {
      return [id, { kind: "failed", why: inOneLine(error) }];
    } finally {
      waiter.leave();
    }
  });
  await turns.run(acts);
  return new Map(await Promise.all(outcomes));
}

const inOneLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, " ").slice(0, 400);

/** Why a row does not hold; undefined when it does. */
export function whyNot(
  row: Row,
  outcome: RowOutcome | undefined,
  stored: Pick<Evidence, "journals">,
  nodes: { readonly killed: string },
): string | undefined {
  if (outcome === undefined || outcome.kind === "untested") return "no test of this name";
  if (outcome.kind === "failed") return outcome.why;
  const [actor, ...revs] = outcome.evidence;
  const steps = [...stored.journals].flatMap(([name, found]) => (name.startsWith(`${actor}^`) ? found : []));
  const named = revs.map((rev) => steps.find((step) => step.rev === rev));
  if (revs.length === 0 || named.includes(undefined))
    return `evidence that is not stored: ${outcome.evidence.join(" ")}`; // R2
  if (!row.acrossKill) return undefined;
  // Nobody but the one that is killed is there before its death.
  const isByKilled = new Set(named.map((step) => step?.node === nodes.killed));
  if (!outcome.sawDeath || !isByKilled.has(true) || !isByKilled.has(false)) return "not shown across the death"; // R3
  return undefined;
}
