export { type ClientWindow } from "./busy-gate.ts";
export { foldDelegations, type Delegation } from "./family/delegations.ts";
export { type FamilyEntry } from "./family/family-entry.ts";
export { readFamily, type FamilyOptions, type FamilyReaderOptions } from "./family/read-family.ts";
export { readEvents, type EventsOptions, type ReceivedEvent } from "./events/read-events.ts";
export { type ConversationStart, type FinalAnswer, type ForkOptions } from "./conversation-desk.ts";
export { HoldfastClient, type HoldfastClientOptions, type StartOptions } from "./holdfast-client.ts";
export { type SendOptions, type SendResult } from "./message-sender.ts";
export { PanicDesk, type PanicAnswers } from "./panic-desk.ts";
export { WalletDesk, type LimitChange, type StoredWallet } from "./wallets/wallet-desk.ts";
export { WalletTeller, type AttemptRequest, type Reservation, type WalletHost } from "./wallets/wallet-teller.ts";
export { RestartDesk, type RestartPlan, type RestartRow } from "./restart-desk.ts";
export { type WaitChange } from "./waits/wait-changes.ts";
export { WaitDesk, type BatchResult, type WaitAnswer } from "./waits/wait-desk.ts";
export { type WaitFilter } from "./waits/wait-filter.ts";
export { type WaitRow } from "./waits/wait-row.ts";
export { StuckDesk, type CommandResult, type ExportedActor } from "./stuck-desk.ts";
export { type StuckRow } from "./stuck-rows.ts";
export {
  NamespaceReader,
  StuckList,
  type FleetState,
  type StoredActor,
  type StoredJournalMessage,
} from "./namespace-reader.ts";
export { fleetOverview, type FleetOverview, type NodeOverview, type PartitionOverview } from "./fleet-overview.ts";
