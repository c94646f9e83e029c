import type { ActorRecord } from "@holdfast/protocol";
import type { CompiledMachine } from "./compile.ts";
import { finishStep } from "./finish-step.ts";
import type { EventMessage, StepEnv, StepResult } from "./step-types.ts";

/**
 * What a type notes about an actor after its end, e.g. that others read it now, or that it was deleted. Only its context changes: status, state,
 * output and what its parent was told are final.
 *
 * @param record  of an actor whose machine has ended, or which has
 * @returns undefined when there is nothing to note
 */
export function noteAfterEnd(
  compiled: CompiledMachine,
  record: ActorRecord,
  { id, event, external, principal, toGenesis }: EventMessage,
  env: StepEnv,
): StepResult | undefined {
  if (!external || record.tombstone !== undefined) return undefined;
  if (toGenesis !== undefined && toGenesis !== record.genesis) return undefined;
  const context = compiled.afterEnd?.(record.snapshot.context, event);
  if (context === undefined) return undefined;
  return finishStep({
    compiled,
    env,
    record: { ...record, snapshot: { ...record.snapshot, context } },
    cause: { kind: "event", id },
    event,
    origin: principal === undefined ? {} : { principal },
    decisions: [],
    spawned: [],
    from: record.snapshot.value,
  });
}
