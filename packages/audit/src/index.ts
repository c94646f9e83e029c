export { countDelegations, DelegationFigures, type CountOptions } from "./count-delegations.ts";
export { AuditedActor, AuditedStep, orderSteps, type Evidence } from "./evidence.ts";
export { readEvidence, type ReadEvidenceOptions } from "./read-evidence.ts";
