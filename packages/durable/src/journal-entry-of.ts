import { formatStamp, nodeOf, type ActorRecord, type EffectOf, type JournalEntry } from "@holdfast/protocol";

/** The line of the journal that a journal effect becomes. @param node  name of the node that sends it */
export function journalEntryOf(
  { key, genesis, machine }: Pick<ActorRecord, "key" | "genesis" | "machine">,
  effect: EffectOf<"journal">,
  node: string,
): JournalEntry {
  const { kind: _kind, id: _id, ...macrostep } = effect;
  return {
    v: 1,
    key,
    genesis,
    ...macrostep,
    machine: effect.machine ?? formatStamp(machine),
    node: effect.writer === undefined ? node : nodeOf(effect.writer.incarnation),
  };
}
