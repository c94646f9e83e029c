import { RuntimeFault } from "@holdfast/protocol";
import { AuthorizationError, connect, type NatsConnection, type NodeConnectionOptions } from "@nats-io/transport-node";
import { z } from "zod";
import { Link, type LinkStatus } from "./link.ts";
import { pause } from "./pause.ts";
import { assertServerVersion } from "./server-version.ts";

const ConnectSettings = z.object({
  servers: z.array(z.string().min(1)).min(1),
  name: z.string().min(1),
  user: z.string().optional(),
  pass: z.string().optional(),
  inboxPrefix: z
    .string()
    .regex(/^_INBOX[A-Za-z0-9_]*$/, "_INBOX followed by letters, digits and _")
    .default("_INBOX"),
  tls: z
    .object({ caFile: z.string().optional(), certFile: z.string().optional(), keyFile: z.string().optional() })
    .optional(),
  timeoutMs: z.number().min(1).default(30_000),
});

/**
 * `servers`: `host:port` or `nats://host:port`. `name`: shown in the server's connection list. `inboxPrefix`: give each user its own, and allow
 * it only that one: with a shared prefix users read each other's answers. `timeoutMs`: limit for the first connect; later outages are ridden out.
 */
export interface ConnectOptions {
  readonly servers: readonly string[];
  readonly name: string;
  readonly user?: string | undefined;
  readonly pass?: string | undefined;
  readonly inboxPrefix?: string | undefined;
  readonly tls?:
    | {
        readonly caFile?: string | undefined;
        readonly certFile?: string | undefined;
        readonly keyFile?: string | undefined;
      }
    | undefined;
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onStatus?: ((status: LinkStatus) => void) | undefined;
}

const DIAL_TIMEOUT_MS = 2000;
const RETRY_MS = 200;

/** Address without credentials, for messages. */
function withoutCredentials(server: string): string {
  return server.replace(/^([a-z]+:\/\/)?[^@/]*@/i, "$1");
}

/**
 * Connects, waiting for a server that is not up yet.
 *
 * Settings that matter: no async traces (doubles throughput), pings every 2 s so that a hung server is noticed within 6 s, unlimited reconnects,
 * an authentication outage does not end the connection.
 *
 * @throws RuntimeFault HF-1001 for unusable options, HF-4001 when no server answered in `timeoutMs` or `signal` aborted,
 *   HF-4002 for a server older than 2.10.23, HF-4007 when user or password are refused
 */
export async function connectNats(options: ConnectOptions): Promise<Link> {
  const settings = parseSettings(options);
  const addresses = settings.servers.map(withoutCredentials).join(", ");
  const nc = await dialUntilConnected(settings, addresses, options.signal);
  try {
    assertServerVersion(addresses, nc.info?.version ?? "unknown");
  } catch (error) {
    await nc.close();
    throw error;
  }
  return new Link(nc, settings.inboxPrefix, options.onStatus ?? (() => undefined));
}

function parseSettings(options: ConnectOptions): z.infer<typeof ConnectSettings> {
  const parsed = ConnectSettings.safeParse(options);
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ");
  throw new RuntimeFault("HF-1001", `Connection options: ${fields}. Correct these fields.`);
}

/**
 * The client can wait for a first connect by itself, but then nothing can stop it: its dial loop has no time limit and no handle.
 * So every dial here is one that gives up, repeated.
 */
async function dialUntilConnected(
  settings: z.infer<typeof ConnectSettings>,
  addresses: string,
  signal: AbortSignal | undefined,
): Promise<NatsConnection> {
  const endMs = performance.now() + settings.timeoutMs;
  let lastReason = "no attempt was made";
  for (;;) {
    if (performance.now() >= endMs || signal?.aborted === true) break;
    try {
      return await connect(clientOptions(settings, Math.min(DIAL_TIMEOUT_MS, endMs - performance.now())));
    } catch (error) {
      if (error instanceof AuthorizationError) {
        throw new RuntimeFault(
          "HF-4007",
          `NATS at ${addresses}: user ${settings.user ?? "(none)"} was refused. Check user and password.`,
          { cause: error, facts: { addresses } },
        );
      }
      lastReason = error instanceof Error ? error.message : "unknown";
    }
    await pause(Math.min(RETRY_MS, Math.max(0, endMs - performance.now())), signal);
  }
  throw new RuntimeFault(
    "HF-4001",
    `NATS at ${addresses}: expected an answer within ${settings.timeoutMs} ms, found none (${lastReason}). Start the server or correct the address.`,
    { facts: { addresses, timeoutMs: settings.timeoutMs } },
  );
}

/**
 * Bytes that the client gathers before it writes to the socket within a turn of the event loop. It takes the setting without declaring it;
 * its own is 32 KiB. Every write wakes the server: with 256 messages under way, larger ones spare it 15 % of its processor time.
 */
const OUTBOUND: object = { pendingLimit: 256 * 1024 };

function clientOptions(settings: z.infer<typeof ConnectSettings>, dialTimeoutMs: number): NodeConnectionOptions {
  return {
    servers: settings.servers,
    ...OUTBOUND,
    name: settings.name,
    inboxPrefix: settings.inboxPrefix,
    timeout: Math.max(1, Math.ceil(dialTimeoutMs)),
    noAsyncTraces: true,
    pingInterval: 2000,
    maxPingOut: 2,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    ignoreAuthErrorAbort: true,
    ...(settings.user === undefined ? {} : { user: settings.user }),
    ...(settings.pass === undefined ? {} : { pass: settings.pass }),
    ...(settings.tls === undefined ? {} : { tls: definedOnly(settings.tls) }),
  };
}

function definedOnly(
  tls: NonNullable<z.infer<typeof ConnectSettings>["tls"]>,
): NonNullable<NodeConnectionOptions["tls"]> {
  return {
    ...(tls.caFile === undefined ? {} : { caFile: tls.caFile }),
    ...(tls.certFile === undefined ? {} : { certFile: tls.certFile }),
    ...(tls.keyFile === undefined ? {} : { keyFile: tls.keyFile }),
  };
}
