import { Namespace, DEFAULT_SHARDS } from "@holdfast/protocol";
import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { LaunchOptions } from "./launch-server.ts";
import type { NatsPasswords } from "./permissions.ts";
import { DEFAULT_SERVER_LIMITS, type DurabilityClass, type ServerLimits } from "./server-config.ts";
import type { TieMethod } from "./tied-child.ts";

export interface StartManagedNatsOptions {
  /** Path of a nats-server, e.g. from `provideNatsServer`. */
  readonly binary: string;
  /** JetStream's data; made when absent. One server at a time. */
  readonly storeDir: string;
  /** Configuration with the passwords, and the log; made when absent, closed to other users. One server at a time. */
  readonly configDir: string;
  /** Namespace the guest accounts may reach. */
  readonly ns: string;
  /** Default: a free one, chosen by the server. */
  readonly port?: number;
  /** Default "F". */
  readonly durabilityClass?: DurabilityClass;
  /** Shards of the namespace. Default 8. */
  readonly shards?: number;
  /** Principal tokens the user `client` may speak for. Default `person-local`. */
  readonly principals?: readonly string[];
  /** Each one that is absent is generated. */
  readonly passwords?: Partial<NatsPasswords>;
  /** Seats of runners; each gets a user `runner_<seat>` with a generated password. Default: none. */
  readonly seats?: readonly string[];
  readonly limits?: Partial<ServerLimits>;
  /** Until it serves, ms. Default 30,000: a store with millions of keys takes seconds. */
  readonly startTimeoutMs?: number;
  /** How the server is kept from outliving this process. Default: the best this machine has. */
  readonly tie?: TieMethod;
  /** Stops the start, not the running server. */
  readonly signal?: AbortSignal;
}

const DEFAULT_PRINCIPALS = ["person-local"];
const START_TIMEOUT_MS = 30_000;
const PASSWORD_BYTES = 24;

/** Fills in defaults, generates what is secret and makes the folders. `port` is -1 when the server is to choose. */
export async function prepareLaunch(
  options: StartManagedNatsOptions,
): Promise<{ readonly launch: LaunchOptions; readonly port: number }> {
  const storeDir = resolve(options.storeDir);
  const configDir = resolve(options.configDir);
  await mkdir(storeDir, { recursive: true, mode: 0o700 });
  await mkdir(configDir, { recursive: true, mode: 0o700 });
  return {
    port: options.port ?? -1,
    launch: {
      binary: options.binary,
      configFile: join(configDir, "nats-server.conf"),
      outputFile: join(configDir, "nats-server.out"),
      startTimeoutMs: options.startTimeoutMs ?? START_TIMEOUT_MS,
      tie: options.tie,
      config: {
        portsDir: join(configDir, "ports"),
        storeDir,
        logFile: join(configDir, "nats-server.log"),
        durabilityClass: options.durabilityClass ?? "F",
        limits: { ...DEFAULT_SERVER_LIMITS, ...options.limits },
        ns: Namespace.parse(options.ns),
        shards: options.shards ?? DEFAULT_SHARDS,
        principals: options.principals ?? DEFAULT_PRINCIPALS,
        passwords: {
          node: options.passwords?.node ?? generatePassword(),
          client: options.passwords?.client ?? generatePassword(),
          operator: options.passwords?.operator ?? generatePassword(),
          subscriber: options.passwords?.subscriber ?? generatePassword(),
        },
        seats: Object.fromEntries((options.seats ?? []).map((seat) => [seat, generatePassword()])),
      },
    },
  };
}

const generatePassword = (): string => randomBytes(PASSWORD_BYTES).toString("base64url");
