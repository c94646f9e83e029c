export { composeNatsPorts, type NatsPorts, type NatsPortsOptions } from "./compose-nats-ports.ts";
export { NatsBlobStore } from "./nats-blob-store.ts";
export { NatsFleetRegistry } from "./nats-fleet-registry.ts";
export { NatsJournal } from "./nats-journal.ts";
export { NatsMessageLog, type MessageLogNotices } from "./nats-message-log.ts";
export { NatsRecordStore } from "./nats-record-store.ts";
export { namespaceStreams, type NamespaceStreams } from "./namespace-streams.ts";
