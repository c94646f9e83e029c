import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { StartedProcess } from "../harness/child-process.ts";
import { waitUntil } from "../harness/wait-until.ts";
import type { FaultPlan } from "../harness/fault-points.ts";
import { AgentFleet } from "./agent-fleet.ts";
import { fleetTurns, NODES } from "./openhands-fleet.ts";
import type { RowTest } from "./row-run.ts";
import type { RowGroup, RowWorld } from "./row-scenario.ts";
import type { TurnActs } from "./row-turns.ts";

export { NODES };

type Tests = Readonly<Record<string, RowTest>>;

export interface FleetGroupOptions {
  /** Its first node is as it is shipped; otherwise it can be told where to die. */
  readonly isShipped?: boolean;
  /** Further HOLDFAST_* variables of every node. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Rows on a fleet of their own.
 * @param story  what happens to it
 */
export function fleetGroup(
  namespace: string,
  tests: Tests,
  story: (world: RowWorld, first: StartedProcess) => TurnActs,
  { isShipped = false, env = {} }: FleetGroupOptions = {},
): RowGroup {
  return {
    tests,
    open: async (stack, cluster, { quick }) => {
      const folder = stack.adopt(await mkdtemp(join(tmpdir(), "holdfast-ouroboros-")), (path) =>
        rm(path, { recursive: true }),
      );
      const options = { namespace, leaseTtlMs: quick ? 600 : 3000, env: { HOLDFAST_OUTPUT: folder, ...env } };
      const fleet = stack.adopt(await AgentFleet.start(cluster, options), (started) => started.stop());
      const first = await fleet.startNode(NODES.killed, isShipped ? undefined : []);
      const { holdfast } = stack.use(await fleet.client());
      const world = { cluster, fleet, holdfast };
      return { world, acts: story(world, first), nodes: NODES };
    },
  };
}

/** It is killed; so is its successor, and two begin together; then the broker dies, and everybody stands still. */
export const killed = (tests: Tests, options: FleetGroupOptions): RowGroup =>
  fleetGroup("killed", tests, fleetTurns, options);

/** Until a node has come to the place where it dies. ms */
const DIES_WITHIN_MS = 30_000;

/** The one that comes after it. */
export const successor =
  ({ fleet }: RowWorld): (() => Promise<void>) =>
  async () =>
    void (await fleet.startNode(NODES.after, []));

/**
 * It kills itself at the end of a plan, once everybody waits for that.
 * @param plan  the places that it passes, the last one deadly
 * @param go    what leads there
 */
export const dying = (
  namespace: string,
  tests: Tests,
  plan: (world: RowWorld) => FaultPlan | Promise<FaultPlan>,
  go: (world: RowWorld) => Promise<unknown>,
): RowGroup =>
  fleetGroup(namespace, tests, (world, first) => ({
    absence: {
      isNeeded: true,
      act: async () => {
        first.tell({ arm: await plan(world) });
        await waitUntil("it knows where to die", () => first.lines().some((line) => line.includes("armed")));
        await go(world);
        const late = delay(DIES_WITHIN_MS, "late", { ref: false });
        if ((await Promise.race([first.exited, late])) === "late") throw new Error("it did not come where it dies");
      },
    },
    death: { isNeeded: true, act: successor(world) },
  }));
