import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster } from "../harness/cluster.ts";
import { AgentFleet } from "./agent-fleet.ts";
import { CONVERSATION_ROWS } from "./openhands-conversations.ts";
import { TASK_ROWS } from "./openhands-tasks.ts";
import { WAIT_ROWS } from "./openhands-waits.ts";
import { readRowTable, runRows, whyNot } from "./row-run.ts";
import type { Scenario } from "./scenario.ts";
import { writeSeededDocuments } from "./seeded-documents.ts";

const TABLE = join(import.meta.dirname, "openhands.rows.json");
const NODES = { killed: "node-a", after: "node-b" } as const;

/**
 * What an agent server of its kind is asked for, feature by feature and reported fault by reported fault, on agent nodes of which one is killed
 * in the middle. A row without a test of its own is false, so the scenario passes only when the whole table has tests that do.
 */
export const openhands: Scenario = {
  name: "openhands",
  variants: [],
  run: async ({ quick, seed, say }) => {
    const { rows, leftOut } = readRowTable(TABLE);
    await using stack = new AsyncDisposableStack();
    const cluster = stack.adopt(await Cluster.start(), (started) => started.stop());
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
    const outcomes = await runRows(
      rows,
      { ...CONVERSATION_ROWS, ...WAIT_ROWS, ...TASK_ROWS },
      { fleet, holdfast },
      async () => {
        await first.kill("SIGKILL");
        await fleet.startNode(NODES.after);
      },
    );
    const stored = await cluster.evidence(fleet.namespace);
    const judged = rows.map((row) => [row.id, whyNot(row, outcomes.get(row.id), stored, NODES)] as const);
    for (const [id, why] of judged) say(`  ${id}: ${why === undefined ? "pass" : `FAIL ${why}`}`);
    const evidence = [...outcomes].flatMap(([id, outcome]) => (outcome.kind === "ran" ? [[id, outcome.evidence]] : []));
    return {
      rows: Object.fromEntries(judged.map(([id, why]) => [id, why === undefined])),
      leftOut,
      details: {
        evidence: Object.fromEntries(evidence),
        untested: rows.filter(({ id }) => outcomes.get(id)?.kind === "untested").map(({ id }) => id),
        failed: Object.fromEntries(
          judged.flatMap(([id, why]) =>
            why === undefined || outcomes.get(id)?.kind === "untested" ? [] : [[id, why]],
          ),
        ),
      },
    };
  },
};
