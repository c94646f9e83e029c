import { accountsOf, type NatsPasswords } from "./permissions.ts";

/**
 * F: every acknowledged write has been fsynced and survives power loss. P: it survives the death of the process, not power loss
 * (the server's default: an fsync every two minutes).
 */
export type DurabilityClass = "F" | "P";

export interface ServerLimits {
  /** Largest message. Default 1 MiB. */
  readonly maxPayloadBytes: number;
  /** Memory for JetStream. Default 256 MiB. */
  readonly maxMemoryBytes: number;
  /** Disk for JetStream; what streams reserve by `max_bytes` counts against it. Default 64 GiB. */
  readonly maxFileBytes: number;
}

export const DEFAULT_SERVER_LIMITS: ServerLimits = {
  maxPayloadBytes: 1024 * 1024,
  maxMemoryBytes: 256 * 1024 * 1024,
  maxFileBytes: 64 * 1024 * 1024 * 1024,
};

export interface ServerConfigOptions {
  readonly serverName: string;
  /** -1 lets the server take a free one and write it into `portsDir`. */
  readonly port: number;
  readonly portsDir: string;
  readonly storeDir: string;
  readonly logFile: string;
  readonly durabilityClass: DurabilityClass;
  readonly limits: ServerLimits;
  readonly ns: string;
  readonly shards: number;
  readonly principals: readonly string[];
  readonly passwords: NatsPasswords;
  readonly seats?: Readonly<Record<string, string>>;
}

const MAX_LOG_BYTES = 10 * 1024 * 1024;

/** Text of a nats-server configuration file; the format is a superset of JSON. Holds the passwords. Pure. */
export function serverConfigText(options: ServerConfigOptions): string {
  const config = {
    server_name: options.serverName,
    host: "127.0.0.1",
    port: options.port,
    ...(options.port === -1 ? { ports_file_dir: options.portsDir } : {}),
    log_file: options.logFile,
    logfile_size_limit: MAX_LOG_BYTES,
    logfile_max_num: 3,
    max_payload: options.limits.maxPayloadBytes,
    // A reader that does not read is cut off instead of holding memory.
    write_deadline: "5s",
    // Dead connections are noticed after 15 s instead of 6 min.
    ping_interval: "5s",
    ping_max: 2,
    jetstream: {
      store_dir: options.storeDir,
      max_memory_store: options.limits.maxMemoryBytes,
      max_file_store: options.limits.maxFileBytes,
      ...(options.durabilityClass === "F" ? { sync_interval: "always" } : {}),
    },
    authorization: { timeout: 5 },
    ...accountsOf(options),
  };
  return `${JSON.stringify(config, undefined, 1)}\n`;
}
