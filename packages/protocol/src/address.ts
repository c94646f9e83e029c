import { RuntimeFault } from "./errors.ts";
import { hash128 } from "./hash.ts";
import { ActorId, ActorType, type ActorKey, type Genesis } from "./ids.ts";
import { partitionOf, type PartitionScheme } from "./partition.ts";

export interface Address {
  readonly partition: string;
  readonly type: string;
  readonly id: string;
}

/** Splits an actor key. @throws RuntimeFault HF-1002 when it is not `<partition>.<type>.<id>` */
export function parseActorKey(key: ActorKey): Address {
  const [partition, type, id, ...rest] = key.split(".");
  if (partition === undefined || type === undefined || id === undefined || rest.length > 0) {
    throw new RuntimeFault(
      "HF-1002",
      `Actor key "${key}": expected <partition>.<type>.<id>. Use the key as a list or a reply printed it.`,
    );
  }
  return { partition, type, id };
}

export const formatActorKey = (address: Address): ActorKey => `${address.partition}.${address.type}.${address.id}`;

/**
 * Key of an actor by type and id, in the pool of its type.
 * @throws RuntimeFault HF-1002 when type or id are not valid
 */
export function actorKey(scheme: PartitionScheme, pool: string, type: string, id: string): ActorKey {
  if (!ActorType.safeParse(type).success || !ActorId.safeParse(id).success) {
    throw new RuntimeFault(
      "HF-1002",
      `Actor ${type}/${id}: a type is a word of letters and digits, an id 1 to 80 characters of A-Z, a-z, 0-9, _ and -. Choose another id.`,
    );
  }
  return formatActorKey({ partition: partitionOf(scheme, pool, type, id), type, id });
}

/**
 * Id of a child: `<label>-<hash>` of constant length, a function of (parent, genesis, child id, revision of the parent's decision).
 * Same decision, same id; another incarnation of the parent or a second start of the same child id gets another one.
 */
export function childActorId(parentKey: ActorKey, parentGenesis: Genesis, childId: string, rev: number): string {
  const label = childId.replaceAll(/[^A-Za-z0-9_-]+/g, "-").slice(0, 40) || "child";
  return `${label}-${hash128(`${parentKey}^${parentGenesis}\0${childId}\0${rev}`)}`;
}
