import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentFleet } from "./agent-fleet.ts";
import { CONVERSATION_ROWS } from "./openhands-conversations.ts";
import { DAMAGE_ROWS } from "./openhands-damage.ts";
import { FAILURE_ROWS } from "./openhands-failures.ts";
import { fleetTurns, NODES } from "./openhands-fleet.ts";
import { OWNERSHIP_ROWS } from "./openhands-ownership.ts";
import { RECOVERY_ROWS } from "./openhands-recovery.ts";
import { TASK_ROWS } from "./openhands-tasks.ts";
import { WAIT_ROWS } from "./openhands-waits.ts";
import { rowScenario } from "./row-scenario.ts";
import type { Scenario } from "./scenario.ts";
import { writeSeededDocuments } from "./seeded-documents.ts";

const TABLE = join(import.meta.dirname, "openhands.rows.json");
const TESTS = {
  ...CONVERSATION_ROWS,
  ...WAIT_ROWS,
  ...TASK_ROWS,
  ...RECOVERY_ROWS,
  ...FAILURE_ROWS,
  ...DAMAGE_ROWS,
  ...OWNERSHIP_ROWS,
};

/**
 * What an agent server of its kind is asked for, feature by feature and reported fault by reported fault, on agent nodes of which one is killed
 * in the middle. A row without a test of its own is false, so the scenario passes only when the whole table has tests that do.
 */
export const openhands: Scenario = {
  name: "openhands",
  ...rowScenario(TABLE, [
    {
      tests: TESTS,
      open: async (stack, cluster, { quick, seed }) => {
        const folder = stack.adopt(await mkdtemp(join(tmpdir(), "holdfast-openhands-")), (path) =>
          rm(path, { recursive: true }),
        );
        await writeSeededDocuments(join(folder, "documents"), 2, seed);
        const options = {
          namespace: "main",
          leaseTtlMs: quick ? 600 : 3000,
          env: { HOLDFAST_ROOT: join(folder, "documents"), HOLDFAST_OUTPUT: join(folder, "reports") },
        };
        const fleet = stack.adopt(await AgentFleet.start(cluster, options), (started) => started.stop());
        const first = await fleet.startNode(NODES.killed);
        const { holdfast } = stack.use(await fleet.client());
        const world = { cluster, fleet, holdfast };
        return { world, acts: fleetTurns(world, first), nodes: NODES };
      },
    },
  ]),
};
