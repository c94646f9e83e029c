import {
  compareMachineVersions,
  NO_NEEDS,
  poolOf,
  type Heartbeat,
  type PartitionNeeds,
  type WeightedNode,
} from "@holdfast/protocol";

/** What a heartbeat says about what its node can serve. */
export type NodeAbilities = Pick<Heartbeat, "pools" | "types" | "formats" | "machines">;

/** A live node that takes partitions. */
export interface LiveNode extends NodeAbilities, WeightedNode {
  readonly incarnation: string;
}

/** Newest version of a machine a node runs. @returns undefined when it does not serve the type */
export const versionOf = ({ types, machines }: NodeAbilities, type: string): string | undefined =>
  types.includes(type) ? (machines[type]?.split("#")[0] ?? "") : undefined;

/** Types of a partition that a node cannot run: it does not serve them, or only in a version that is too old. */
export function unservedTypes(node: NodeAbilities, machines: PartitionNeeds["machines"]): readonly string[] {
  return Object.entries(machines)
    .filter(([type, version]) => {
      const served = versionOf(node, type);
      return served === undefined || compareMachineVersions(served, version) < 0;
    })
    .map(([type]) => type);
}

/**
 * Nodes among which a partition is placed: those of its pool that read its formats, and of these the ones that can run most of what is there.
 * So a partition goes to a node that can run all of it while there is one, and to somebody while there is none: what cannot run waits,
 * everything else goes on (F31).
 */
export function eligibleNodes(
  partition: string,
  needs: PartitionNeeds | undefined,
  nodes: readonly LiveNode[],
): readonly LiveNode[] {
  const { formats, machines } = needs ?? NO_NEEDS;
  const pool = poolOf(partition);
  const readers = nodes.filter(
    (node) => node.pools.includes(pool) && formats.every((format) => node.formats.includes(format)),
  );
  const missing = readers.map((node) => unservedTypes(node, machines).length);
  const fewest = Math.min(...missing);
  return readers.filter((_node, index) => missing[index] === fewest);
}
