import type { CompiledMachine } from "@holdfast/durable";
import { compareMachineVersions, type ActorRecord } from "@holdfast/protocol";
import type { ServedType } from "./cell-host.ts";
import { versionOf } from "./eligible-nodes.ts";
import type { FleetView } from "./fleet-view.ts";

/**
 * Which of several versions a build writes: the newest that every live node can read (F31).
 *
 * A build that carries the former version of a machine goes on writing it until the last node without the new one has left, and reads both.
 * Safety does not hang on this: what was written is listed in the lease, and a node that cannot read it takes no such partition.
 */
export class WriteSwitch {
  readonly #view: FleetView;
  readonly #me: string;

  /** @param me  name of this node: what it can read it knows itself */
  constructor(view: FleetView, me: string) {
    this.#view = view;
    this.#me = me;
  }

  /** Machine of new actors of a type, and of those that may be brought up to date. */
  machineOf({ definition, versions, compiled }: ServedType): CompiledMachine {
    const oldest = versions[0];
    if (oldest === undefined || versions.length === 1) return compiled;
    const read = this.#others().flatMap(({ heartbeat }) => versionOf(heartbeat, definition.type) ?? []);
    const isReadByAll = ({ stamp }: CompiledMachine): boolean =>
      read.every((version) => compareMachineVersions(version, stamp.version) >= 0);
    return versions.findLast(isReadByAll) ?? oldest;
  }

  /** Record format to write, of those a build can write. @param writable  ascending, at least one */
  formatOf(writable: readonly number[]): number {
    if (writable.length === 1 && writable[0] !== undefined) return writable[0];
    const others = this.#others();
    const isReadByAll = (format: number): boolean =>
      others.every(({ heartbeat }) => heartbeat.formats.includes(format));
    return writable.findLast(isReadByAll) ?? writable[0] ?? 1;
  }

  #others() {
    return this.#view.liveNodes().filter(({ heartbeat }) => heartbeat.name !== this.#me);
  }
}

/** Machine that a record in memory is stepped with: the one that wrote it last. */
export const machineOfRecord = ({ versions, compiled }: ServedType, record: ActorRecord): CompiledMachine =>
  versions.find(({ stamp }) => stamp.hash === record.machine.hash) ?? compiled;

/**
 * Machine that a loaded record is to go on with: never an older one than wrote it, otherwise the one that is written now.
 * @param active  as `WriteSwitch.machineOf` says
 */
export function machineToRestore(served: ServedType, record: ActorRecord, active: CompiledMachine): CompiledMachine {
  const { versions, compiled } = served;
  const wrote = versions.findIndex(({ stamp }) => stamp.hash === record.machine.hash);
  if (wrote >= 0) return versions[Math.max(wrote, versions.indexOf(active))] ?? compiled;
  return compareMachineVersions(record.machine.version, active.stamp.version) > 0 ? compiled : active;
}
