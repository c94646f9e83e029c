export { ENVIRONMENT, parseConfig, type Config, type EnvironmentName } from "./config.ts";
export { createLogger, type LoggerOptions } from "./logger.ts";
export { untilSignalled } from "./signals.ts";
export { systemCrc32 } from "./system-crc32.ts";
export { systemClock } from "./system-clock.ts";
export { inboxPrefixOf, type NatsUserName } from "./nats-server/permissions.ts";
export { ManagedNats, startManagedNats, type NatsCredentials } from "./nats-server/managed-nats.ts";
export { provideNatsServer, provideNatsServers, type ProvidedNatsServer } from "./nats-server/provide-nats-server.ts";
export { createSystemRandom } from "./system-random.ts";
