export { ActorAddress, actorRefExtension, type ValueExtension } from "./actor-address.ts";
export { passOver } from "./apply-event.ts";
export { type ChildActor, type ChildSource } from "./child-sources.ts";
export { compile, type AfterEnd, type CompiledMachine, type CompileOptions } from "./compile.ts";
export { inputHash } from "./input-hash.ts";
export { journalEntryOf } from "./journal-entry-of.ts";
export { lint, type LintFinding, type LintRule } from "./lint.ts";
export { reconcile } from "./reconcile.ts";
export { compareWithStored, journaledStateJson, NOT_COMPARED } from "./replay/compare-with-stored.ts";
export { differences, type Difference } from "./replay/differences.ts";
export { orderJournal, unsentEntries, type OrderedJournal } from "./replay/order-journal.ts";
export { replay, type Replay, type ReplayedStep, type ReplayEnd, type ReplayOptions } from "./replay/replay.ts";
export { type TextHash } from "./remembered-ids.ts";
export { doneActorEvent, errorActorEvent } from "./reserved-events.ts";
export { resolveAction, type Deliver } from "./resolve-action.ts";
export { type KeepOutside } from "./kept-outside.ts";
export { dropReasonOf, step } from "./step.ts";
export {
  type DropReason,
  type EventMessage,
  type LocalEffect,
  type SettledMessage,
  type StartMessage,
  type StepEnv,
  type StepMessage,
  type StepResult,
  type StopMessage,
  type TimerMessage,
} from "./step-types.ts";
export { expectedWake, fits, isIdle, localEffectsOf, needsWork, tagsOf, waitsForOthers, type Wake } from "./work.ts";
export { startVolatileHost, type VolatileHost, type VolatileHostOptions } from "./volatile-host.ts";
