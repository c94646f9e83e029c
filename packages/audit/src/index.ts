export { AcceptedCommand, parseAcceptedCommands } from "./check/accepted-command.ts";
export { check, type CheckOptions } from "./check/check.ts";
export {
  CheckedHeader,
  CheckedLease,
  CheckedRecord,
  type CheckedActor,
  type CheckedMessage,
  type CheckEvidence,
} from "./check/check-evidence.ts";
export { collectEvidence, type CollectOptions } from "./check/collect-evidence.ts";
export { CheckedEntry, type JournalMessage } from "./check/journal-message.ts";
export { type StuckOptions } from "./check/nothing-stuck.ts";
export { type Replay, type ReplayAnswer, type ReplayRequest } from "./check/replays-to-stored.ts";
export { Claim, Finding, Verdict } from "./check/verdict.ts";
export { countDelegations, DelegationFigures, type CountOptions } from "./count-delegations.ts";
export { AuditedActor, AuditedStep, orderSteps, type Evidence } from "./evidence.ts";
export { readEvidence } from "./read-evidence.ts";
export { type ReadEvidenceOptions } from "./stored-streams.ts";
