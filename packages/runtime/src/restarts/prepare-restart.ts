import {
  isTerminal,
  MAX_KEPT_ACTORS,
  parseActorKey,
  planActor,
  Restart,
  restartKey,
  type DrainRequest,
  type Generation,
  type KeptActor,
} from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import type { FleetRegistry } from "../ports/index.ts";
import { inParallel } from "../rehydration/in-parallel.ts";
import type { RestartBook } from "./restart-book.ts";

export interface PrepareRestartOptions {
  readonly services: NodeServices;
  readonly fleet: Pick<FleetRegistry, "compareAndSet" | "get">;
  readonly book: RestartBook;
  readonly owners: ReadonlyMap<string, PartitionOwner>;
  readonly generation: Generation;
  /** SHA-256 of the secret of whoever started this process. */
  readonly exitProof: string | undefined;
  readonly isServedElsewhere: (partition: string) => boolean;
}

/**
 * Stores that this process is to come back, and what it keeps: the actors with work of the partitions that it owns now.
 * @returns undefined when it could not be stored: then nothing may end for it
 */
export async function prepareRestart(
  options: PrepareRestartOptions,
  { by, restart: request }: DrainRequest,
): Promise<Restart | undefined> {
  const { services, fleet, book, owners, generation, exitProof, isServedElsewhere } = options;
  if (request === undefined) return undefined;
  const { node, time, random } = services;
  const known = await fleet.get(restartKey(node));
  const partitions = [...owners.keys()].toSorted();
  const keys = partitions.flatMap((partition) => [...(owners.get(partition)?.work.keys() ?? [])]);
  const restart: Restart = {
    v: 1,
    id: request.id,
    node,
    generation,
    state: "prepared",
    by,
    resume: request.resume,
    ...(exitProof !== undefined && { exitProof }),
    ...(request.tokenProof !== undefined && { tokenProof: request.tokenProof }),
    partitions: {
      moving: partitions.filter(isServedElsewhere),
      waiting: partitions.filter((partition) => !isServedElsewhere(partition)),
    },
    keeps: await keptActors(options, keys.slice(0, MAX_KEPT_ACTORS), request.resume),
    actors: keys.length,
    preparedAtMs: time.nowMs(),
    token: random.hex(8),
  };
  const bytes = new TextEncoder().encode(JSON.stringify(Restart.parse(restart)));
  const outcome = await fleet.compareAndSet(restartKey(node), bytes, known?.seq ?? 0, restart.token);
  if (outcome.kind !== "committed") return undefined;
  book.prepared(restart);
  services.telemetry.info("restart.prepared", { id: restart.id, by, actors: restart.actors });
  return restart;
}

async function keptActors(
  { services, isServedElsewhere }: PrepareRestartOptions,
  keys: readonly string[],
  resume: boolean,
): Promise<readonly KeptActor[] & KeptActor[]> {
  const kept: KeptActor[] = [];
  await inParallel(keys, services.settings.rehydrateConcurrency, async (key) => {
    const { type, partition } = parseActorKey(key);
    const stored = await services.records.load(key);
    const status = stored === undefined ? undefined : statusOf(services, stored.bytes);
    if (status === "ended") return;
    const held = services.quarantine.heldBack(key);
    const facts = {
      key,
      isClosing: status === "closing",
      heldBecause: held?.reason ?? (status === "unreadable" ? "its record cannot be read" : undefined),
      isHeldAfterCrash: services.types.get(type)?.definition.afterCrash === "hold",
      isMoving: isServedElsewhere(partition),
    };
    kept.push(planActor(facts, resume));
  });
  return kept.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

function statusOf(
  { codec }: Pick<NodeServices, "codec">,
  bytes: Uint8Array,
): "active" | "closing" | "ended" | "unreadable" {
  try {
    const { status } = codec.decodeHeader(bytes);
    if (status === "active" || status === "closing") return status;
    return isTerminal(status) ? "ended" : "active";
  } catch {
    return "unreadable";
  }
}
