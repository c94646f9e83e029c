export { blobStoreContract } from "./contracts/blob-store.contract.ts";
export {
  type ContractFaults,
  type ContractSetup,
  type HeldFault,
  type MakeContractSetup,
} from "./contracts/contract-setup.ts";
export { fleetRegistryContract } from "./contracts/fleet-registry.contract.ts";
export { journalContract } from "./contracts/journal.contract.ts";
export { messageLogContract } from "./contracts/message-log.contract.ts";
export { recordStoreContract } from "./contracts/record-store.contract.ts";
export type { CoreMessage, ShardedStream } from "./broker-state.ts";
export type { FaultAim, FaultHandle, FaultRates, FaultScript, ScriptedFault, WriteOperation } from "./fault-plan.ts";
export { ManualClock } from "./manual-clock.ts";
export {
  MemoryBroker,
  type ConnectedNode,
  type MemoryBrokerOptions,
  type NodePorts,
  type PublishedEvent,
} from "./memory-broker.ts";
export type { StreamLimits } from "./memory-stream.ts";
export type { NodeLink } from "./node-link.ts";
export {
  buildChild,
  buildEffect,
  buildParentLink,
  buildRecord,
  buildSnapshot,
  buildTimer,
  TEST_PRINCIPAL,
} from "./record-builders.ts";
export { SeededRandom } from "./seeded-random.ts";
export { waitUntil, type WaitOptions } from "./wait-until.ts";
