import { RuntimeFault, shardOf, subjectsOf, type Ancestor, type Manifest, type Subjects } from "@holdfast/protocol";
import type { OpenNamespace } from "@holdfast/jetstream";

/** Which stream a partition uses, and what is recorded of it. */
export interface NamespaceStreams {
  readonly manifest: Manifest;
  readonly subjects: Subjects;
  /** @throws RuntimeFault HF-4005 when the partition's pool is not in the manifest */
  shard(partition: string): number;
  /** Creation time of a stream as recorded; undefined for one that is not. */
  created(stream: string): string | undefined;
  /** @throws RuntimeFault HF-4005 when the manifest has none for it */
  generation(stream: string): string;
  /** What the stream goes on from, newest first. */
  lineage(stream: string): readonly Ancestor[];
}

/** @param namespace  may grow while it is in use: it is asked each time */
export function namespaceStreams(namespace: OpenNamespace): NamespaceStreams {
  return {
    get manifest() {
      return namespace.manifest;
    },
    subjects: subjectsOf(namespace.manifest.ns),
    shard: (partition) => {
      const { manifest } = namespace;
      const pool = partition.slice(0, partition.lastIndexOf("-"));
      if (manifest.pools[pool] === undefined) {
        throw new RuntimeFault(
          "HF-4005",
          `Partition ${partition}: expected one of the pools ${Object.keys(manifest.pools).join(", ")} of namespace ${manifest.ns}. Use an address of this namespace.`,
          { facts: { partition } },
        );
      }
      return shardOf(manifest, partition);
    },
    created: (stream) => namespace.streamCreated[stream],
    lineage: (stream) => namespace.manifest.lineage?.[stream] ?? [],
    generation: (stream) => {
      const { manifest } = namespace;
      const generation = manifest.generations[stream];
      if (generation !== undefined) return generation;
      throw new RuntimeFault(
        "HF-4005",
        `Namespace ${manifest.ns}: its manifest has no generation for stream ${stream}. Start a node once, which completes it.`,
        { facts: { stream } },
      );
    },
  };
}
