import type { HoldfastClient } from "@holdfast/client";
import type { Cluster } from "../harness/cluster.ts";
import type { StartedProcess } from "../harness/child-process.ts";
import { untilServing } from "../harness/until-serving.ts";
import { waitUntil } from "../harness/wait-until.ts";
import type { AgentFleet } from "./agent-fleet.ts";
import type { TurnActs } from "./row-turns.ts";

export const NODES = { killed: "node-a", after: "node-b" } as const;

/** Conversation whose next step is stored and not told any more. */
export const CRASHES_AT = "between-writes";
/** What that step takes in. */
export const FATAL = { type: "userMessage", messageId: "fatal", text: "fatal of between-writes" } as const;

const PATIENT_MS = 60_000;

/** What happens to the nodes of the scenario, turn by turn. @param first  the one that is killed */
export function fleetTurns(
  { cluster, fleet, holdfast }: { cluster: Cluster; fleet: AgentFleet; holdfast: HoldfastClient },
  first: StartedProcess,
): TurnActs {
  let alive: readonly StartedProcess[] = [first];
  let stopped: readonly StartedProcess[] = [];
  const serving = () =>
    untilServing(holdfast, () => alive, { timeoutMs: PATIENT_MS, dump: () => fleet.logs().slice(-4000) });
  return {
    absence: { isNeeded: true, act: () => first.kill("SIGKILL") },
    death: {
      isNeeded: true,
      act: async () => {
        alive = [await fleet.startNode(NODES.after, [])];
      },
    },
    crash: {
      act: async () => {
        for (const node of alive) await dieBetweenWrites(node, holdfast);
        alive = await Promise.all(["node-c", "node-d"].map((name) => fleet.startNode(name)));
        await serving();
      },
    },
    outage: {
      act: async () => {
        await cluster.nats.kill();
        await cluster.nats.restart();
        await waitUntil("the broker answers", () => holdfast.read.fleet(), { timeoutMs: PATIENT_MS });
      },
    },
    standstill: {
      isNeeded: true,
      act: async () => {
        await serving(); // who owns nothing yet would have nothing to notice
        await Promise.all(alive.map((node) => node.freeze()));
        stopped = alive;
        alive = [await fleet.startNode("node-e")];
        await serving();
      },
    },
    return: {
      act: async () => {
        for (const node of stopped) {
          node.thaw();
          await waitUntil("the former owner has noticed", () => node.log().includes("partition.fenced"), {
            timeoutMs: PATIENT_MS,
            dump: () => node.log().slice(-4000),
          });
        }
      },
    },
  };
}

/** The node ends itself right after a commit. */
async function dieBetweenWrites(node: StartedProcess, holdfast: HoldfastClient): Promise<void> {
  const key = holdfast.key("conversation", CRASHES_AT);
  if ((await holdfast.read.header(key)) === undefined) return node.kill("SIGKILL"); // its row was not asked for
  node.tell({ arm: [{ point: "after-commit", match: key, act: "kill" }] });
  await waitUntil("it knows where to die", () => node.lines().some((line) => line.includes("armed")));
  await holdfast.send(key, FATAL, { timeoutMs: 300 });
  await node.exited;
}
