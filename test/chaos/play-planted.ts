import type { Cluster } from "../harness/cluster.ts";
import type { PlantedBreak } from "../harness/planted-breaks.ts";
import { headline } from "../scenarios/scenario.ts";
import { ChaosWorld } from "./chaos-world.ts";
import { judgeWorld } from "./judge-world.ts";
import { PLANTED_PLAYS } from "./planted-plays.ts";
import { ToldCommands } from "./told-commands.ts";

/** What the checker said about one play. */
export interface PlantedOutcome {
  readonly isRed: boolean;
  /** By claim. Absent when the play was not played to its end. */
  readonly rows?: Readonly<Record<string, boolean>>;
  /** Claims that do not hold, and the sorts of contradictions, `<claim> <code>`. */
  readonly red: readonly string[];
  readonly ms: number;
  /** Why the play was not played to its end. */
  readonly failure?: string;
}

/** Short: in most plays somebody is to be taken for dead. ms */
const TTL_MS = 900;
/** Nothing of a broken build comes to rest, so its time is short. ms */
const BROKEN_SETTLE_MS = 6000;
const RIGHT_SETTLE_MS = 40_000;

/** Plays what is aimed at one break, on a build that has it or on a right one, and asks the checker. */
export async function playPlanted(
  cluster: Cluster,
  planted: PlantedBreak,
  isPlanted: boolean,
): Promise<PlantedOutcome> {
  const startedAtMs = performance.now();
  const ms = (): number => Math.round(performance.now() - startedAtMs);
  await using world = new ChaosWorld({
    cluster,
    namespace: `${isPlanted ? "b" : "r"}${planted}`,
    leaseTtlMs: TTL_MS,
    // A break must be seen where it is, not healed by the next sweep.
    sweepMs: 60_000,
    partitions: 6,
    shards: 1,
    ...(isPlanted && { planted }),
  });
  const ended = new AbortController();
  const told = new ToldCommands(() => world.client, ended.signal);
  try {
    await PLANTED_PLAYS[planted](world, told);
    const settleMs = isPlanted ? BROKEN_SETTLE_MS : RIGHT_SETTLE_MS;
    const { verdict } = await judgeWorld(world, { accepted: told.accepted, settleMs });
    const red = [...new Set(verdict.findings.map(({ claim, code }) => `${claim} ${code}`))];
    return { isRed: !verdict.pass, rows: { ...verdict.rows }, red, ms: ms() };
  } catch (error) {
    return { isRed: false, red: [], ms: ms(), failure: headline(error) };
  } finally {
    ended.abort();
  }
}
