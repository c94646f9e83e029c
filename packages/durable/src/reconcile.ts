import type { ActorRecord, ChildEntry } from "@holdfast/protocol";
import { ActorAddress } from "./actor-address.ts";
import { childKey } from "./child-key.ts";
import type { CompiledMachine } from "./compile.ts";
import type { Expectation } from "./engine.ts";
import { finishStep } from "./finish-step.ts";
import type { Decision, Spawned } from "./step-scope.ts";
import type { StepEnv, StepResult } from "./step-types.ts";
import { restoreFault } from "./restore-fault.ts";

/**
 * Fits a record to another version of its machine: cancels `after` timers that no active state has any more, arms those it has now,
 * starts invokes that are missing, stops children whose source is gone or runs elsewhere now. Entry actions are not run.
 * Doing it twice changes nothing.
 *
 * @throws RuntimeFault HF-2005 when the state does not exist: migrate first
 */
export function reconcile(compiled: CompiledMachine, record: ActorRecord, env: StepEnv): StepResult {
  if (record.status !== "active") return { kind: "ignored", record };
  if (!compiled.engine.fits(record.snapshot)) throw restoreFault(compiled, record, undefined);
  const expected = compiled.engine.expectation(record.snapshot);
  const { stamp } = compiled;
  const decisions = [...timerRepairs(record, expected), ...obsoleteChildren(compiled, record)];
  const spawned = missingInvokes(compiled, record, expected, env);
  const isSame =
    record.machine.hash === stamp.hash && record.machine.version === stamp.version && record.machine.id === stamp.id;
  if (isSame && decisions.length === 0 && spawned.length === 0) return { kind: "ignored", record };
  return finishStep({
    compiled,
    env,
    record,
    cause: { kind: "reconcile", id: stamp.hash },
    event: { type: "xstate.reconcile" },
    decisions,
    spawned,
    from: record.snapshot.value,
  });
}

function timerRepairs(record: ActorRecord, { timers }: Expectation): Decision[] {
  const repairs: Decision[] = [];
  for (const timer of Object.keys(record.timers)) {
    if (timer.startsWith("xstate.after.") && !timers.has(timer)) repairs.push({ kind: "cancel", timer });
  }
  for (const [timer, delay] of timers) {
    if (Object.hasOwn(record.timers, timer)) continue;
    const delayMs = delay(record.snapshot.context);
    if (typeof delayMs !== "number" || !Number.isFinite(delayMs)) continue; // XState arms nothing either
    const gen = `${record.rev + 1}.${repairs.length}`;
    const target = { to: new ActorAddress(record.key, record.id, record.genesis) };
    repairs.push({ kind: "schedule", timer, gen, delayMs, target, event: { type: timer } });
  }
  return repairs;
}

function obsoleteChildren(compiled: CompiledMachine, record: ActorRecord): Decision[] {
  return Object.entries(record.snapshot.children).flatMap(([id, child]): Decision[] =>
    isObsolete(compiled, child) ? [{ kind: "stop", ref: new ActorAddress(child.key, id) }] : [],
  );
}

const isObsolete = (compiled: CompiledMachine, { src, kind }: ChildEntry): boolean =>
  compiled.children.get(src)?.kind !== kind;

function missingInvokes(
  compiled: CompiledMachine,
  record: ActorRecord,
  { invokes }: Expectation,
  { scheme }: StepEnv,
): Spawned[] {
  return invokes.flatMap(({ id, src, systemId, sync, input }): Spawned[] => {
    const present = record.snapshot.children[id];
    if (present !== undefined && !isObsolete(compiled, present)) return [];
    const source = compiled.children.get(src);
    if (source === undefined) return [];
    const key = childKey(scheme, record, source, id, record.rev + 1);
    return [
      {
        ref: new ActorAddress(key, id),
        id,
        key,
        kind: source.kind,
        src,
        systemId,
        sync,
        input: input(record.snapshot.context),
      },
    ];
  });
}
