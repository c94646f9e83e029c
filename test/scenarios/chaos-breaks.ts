import { PLANTED_PLAYS } from "../chaos/planted-plays.ts";
import { playPlanted, type PlantedOutcome } from "../chaos/play-planted.ts";
import { Cluster } from "../harness/cluster.ts";
import { PlantedBreak } from "../harness/planted-breaks.ts";
import type { Scenario } from "./scenario.ts";

/** Plays mostly wait for processes and leases. */
const AT_ONCE = 3;

/**
 * The checker of the chaos run, shown builds that break a promise: it must be red on each of them, and green on a right build that goes through
 * the same misfortune.
 */
export const chaosBreaks: Scenario = {
  name: "chaos-breaks",
  variants: PlantedBreak.options,
  run: async ({ variant, say }) => {
    const rows: Record<string, boolean> = {};
    const leftOut: Record<string, string> = {};
    const plays: Record<string, Omit<PlantedOutcome, "rows">> = {};
    const cluster = await Cluster.start();
    const waiting: { readonly planted: PlantedBreak; readonly isPlanted: boolean }[] = [];
    for (const planted of PlantedBreak.options) {
      if (variant !== undefined && variant !== planted) leftOut[planted] = `only --variant ${variant} was asked for`;
      else waiting.push({ planted, isPlanted: true }, { planted, isPlanted: false });
    }
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const { planted, isPlanted } = next;
        const name = isPlanted ? planted : `${planted}-right-build`;
        const { rows: _claims, ...outcome } = await playPlanted(cluster, planted, isPlanted);
        // A play that breaks off has shown nothing.
        rows[name] = outcome.failure === undefined && outcome.isRed === isPlanted;
        plays[name] = outcome;
        say(`  ${name}: ${rows[name] ? "pass" : "FAIL"} ${JSON.stringify(outcome)}`);
      }
    };
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, work));
    } finally {
      await cluster.stop();
    }
    return { rows, leftOut, details: { plays, plants: Object.keys(PLANTED_PLAYS).length } };
  },
};
