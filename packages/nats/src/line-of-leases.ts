import type { Link } from "@holdfast/jetstream";
import type { FleetRegistry } from "@holdfast/runtime/ports";

/**
 * The fleet bucket over a connection of its own: a heartbeat and its acknowledgement never wait behind messages and commits, of which the
 * server may have tens of megabytes on their way to a node.
 *
 * A node that can tell others that it lives, but cannot work, would keep partitions from those who can: while the connection of its work is
 * down nothing is told either.
 */
export function lineOfLeases(registry: FleetRegistry, work: Pick<Link, "isConnected">): FleetRegistry {
  return {
    put: (key, bytes) => (work.isConnected ? registry.put(key, bytes) : Promise.resolve(undefined)),
    compareAndSet: (key, bytes, expectedSeq, token) => registry.compareAndSet(key, bytes, expectedSeq, token),
    get: (key) => registry.get(key),
    watch: (deliver) => registry.watch(deliver),
    remove: (key) => registry.remove(key),
  };
}
