import { RuntimeFault, type ActorRecord } from "@holdfast/protocol";
import type { CompiledMachine } from "./compile.ts";

/** HF-2005: the stored state is not one of this machine's. The caller parks the actor and commits nothing. */
export function restoreFault(
  { stamp }: Pick<CompiledMachine, "stamp">,
  { key, machine }: Pick<ActorRecord, "key" | "machine">,
  cause: unknown,
): RuntimeFault {
  return new RuntimeFault(
    "HF-2005",
    `${key}: its state was written by machine ${machine.id} version ${machine.version} and does not exist in ` +
      `${stamp.id} version ${stamp.version}. Deploy a build that has it, or add a migration.`,
    { facts: { key, wanted: machine.version, known: stamp.version }, cause },
  );
}
