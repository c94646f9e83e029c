import {
  ActorType,
  Namespace,
  NodeName,
  Pool,
  principalToken,
  parsePrincipalToken,
  RuntimeFault,
  SecretProof,
} from "@holdfast/protocol";
import { z } from "zod";

const ms = (fallback: number) => z.coerce.number().int().min(1).max(86_400_000).default(fallback);
const count = (fallback: number, most: number) => z.coerce.number().int().min(1).max(most).default(fallback);
const hours = (least: number, fallback: number) => z.coerce.number().int().min(least).max(87_600).default(fallback);
const url = (protocols: RegExp) => z.url({ protocol: protocols });

/** @returns undefined when the text is not of the form `model=8,tools=32` */
function readShares(text: string): Readonly<Record<string, number>> | undefined {
  const pairs = text.split(",").map((pair) => /^([A-Za-z][A-Za-z0-9_.-]{0,63})=([1-9][0-9]{0,4})$/.exec(pair.trim()));
  const shares: [string, number][] = [];
  for (const pair of pairs) {
    if (pair?.[1] === undefined) return undefined;
    shares.push([pair[1], Number(pair[2])]);
  }
  return Object.fromEntries(shares);
}

/** @returns undefined when the text is not of the form `reviewer=person-anna,person-ben;operator=person-cara` */
function readRoles(text: string): Readonly<Record<string, readonly string[]>> | undefined {
  const roles: [string, readonly string[]][] = [];
  for (const part of text.split(";")) {
    const [, role, members = ""] = /^\s*([a-z][a-z0-9-]{0,31})=(.+)$/.exec(part) ?? [];
    const tokens = members.split(",").map((member) => member.trim());
    if (role === undefined || !tokens.every(isPrincipal)) return undefined;
    roles.push([role, tokens]);
  }
  return Object.fromEntries(roles);
}

function isPrincipal(token: string): boolean {
  try {
    return parsePrincipalToken(token).kind !== "agent";
  } catch {
    return false;
  }
}

/** Every environment variable Holdfast reads. The only reader of the environment; `docs/configuration.md` is checked against it. */
const SCHEMAS = {
  HOLDFAST_NATS_URL: url(/^(nats|tls)$/)
    .optional()
    .describe("Address of a NATS server to use instead of the managed one."),
  HOLDFAST_NATS_USER: z.string().min(1).optional().describe("User on that server."),
  HOLDFAST_NATS_PASSWORD: z.string().min(1).optional().describe("Password of that user."),
  HOLDFAST_OPERATOR_USER: z
    .string()
    .min(1)
    .optional()
    .describe("User for what only operators may do; default: HOLDFAST_NATS_USER. Its inbox prefix is _INBOX_operator."),
  HOLDFAST_OPERATOR_PASSWORD: z.string().min(1).optional().describe("Password of that user."),
  HOLDFAST_NATS_SERVER: z.string().min(1).optional().describe("Path of a nats-server binary, 2.10.23 or newer."),
  HOLDFAST_NATS_PORT: z.coerce
    .number()
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe("Port of the managed NATS server; default: any free one."),
  HOLDFAST_NAMESPACE: Namespace.default("main").describe("Namespace inside the NATS account."),
  HOLDFAST_HOME: z
    .string()
    .min(1)
    .default(".holdfast")
    .describe("Folder for the fetched binary, the store of the managed server and reports."),
  HOLDFAST_NODE: NodeName.optional().describe("Name of this node; default: a random one."),
  HOLDFAST_POOLS: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(Pool).min(1))
    .default(["d"])
    .describe("Node pools this node serves, separated by commas."),
  HOLDFAST_HOLD_AFTER_CRASH: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(ActorType).min(1))
    .optional()
    .describe(
      "Actor types, separated by commas, of which nothing goes on by itself after its node has died: see holdfast held.",
    ),
  HOLDFAST_EXIT_PROOF: SecretProof.optional().describe(
    "Set by holdfast supervise: SHA-256 of the secret with which it acknowledges the end of the node.",
  ),
  HOLDFAST_RESTART_TOKEN: z
    .string()
    .regex(/^[0-9a-f]{32,128}$/, "expected 32 to 128 hex digits")
    .optional()
    .describe("One-shot token of the planned restart that this node is the successor of."),
  HOLDFAST_WEIGHT: z.coerce
    .number()
    .min(0.01)
    .max(1000)
    .default(1)
    .describe("Share of partitions relative to the other nodes of a pool, 0.01 to 1000."),
  HOLDFAST_BUILD: z.string().max(64).optional().describe("What you call this build; shown by the fleet command."),
  HOLDFAST_LEASE_TTL_MS: ms(3000).describe("Silence after which a node counts as dead, ms."),
  HOLDFAST_SWEEP_MS: ms(30_000).describe("Pause between two sweeps of a partition, ms."),
  HOLDFAST_DRAIN_GRACE_MS: ms(600_000).describe("How long a planned leave waits for running jobs, ms."),
  HOLDFAST_MEMORY_MB: z.coerce
    .number()
    .int()
    .min(160)
    .max(1_048_576)
    .default(512)
    .describe("Memory this process is meant for, MiB; what it holds for actors is bounded by it."),
  HOLDFAST_STEP_CONCURRENCY: count(256, 65_536).describe("Actors this node steps at the same time."),
  HOLDFAST_JOB_CONCURRENCY: count(128, 65_536).describe("Jobs this node runs at the same time."),
  HOLDFAST_PROVIDER_CONCURRENCY: z
    .string()
    .transform((text, context) => {
      const shares = readShares(text);
      if (shares !== undefined) return shares;
      context.addIssue({ code: "custom", message: "expected <provider>=<number from 1>, separated by commas" });
      return z.NEVER;
    })
    .optional()
    .describe(
      "Jobs of one provider at the same time, <provider>=<n> separated by commas; agents have model and tools.",
    ),
  HOLDFAST_TASK_CONCURRENCY: count(64, 65_536).describe(
    "Tasks of people's conversations that run here at once, plus one of one without any; others wait.",
  ),
  HOLDFAST_BUSY_FROM: count(1000, 1_000_000).describe(
    "Messages of one partition that wait from which on senders from outside are told to come back later.",
  ),
  HOLDFAST_KEEP_ENDED_HOURS: hours(1, 168).describe("Time until an actor that ended is made a tombstone, hours."),
  HOLDFAST_KEEP_HELD_HOURS: hours(1, 720).describe(
    "Time until the pending jobs of an actor that is held end as cancelled, hours.",
  ),
  HOLDFAST_KEEP_TOMBSTONES_HOURS: hours(24, 720).describe("Time until a tombstone goes, with its journal, hours."),
  HOLDFAST_MAX_ATTEMPTS: count(3, 100).describe(
    "Tries of a message that makes its machine throw, and of anything that ends its node.",
  ),
  HOLDFAST_LOG_LEVEL: z
    .enum(["debug", "info", "warn", "error", "silent"])
    .default("info")
    .describe("Least level that is logged."),
  HOLDFAST_PRINCIPAL: z
    .string()
    .default("person-local")
    .transform((text, context) => {
      try {
        return principalToken(parsePrincipalToken(text));
      } catch {
        context.addIssue({ code: "custom", message: "expected person-<id>, service-<id> or agent-<id>" });
        return z.NEVER;
      }
    })
    .describe("Who the command line acts for: person-<id>, service-<id> or agent-<id>."),
  HOLDFAST_ROLES: z
    .string()
    .transform((text, context) => {
      const roles = readRoles(text);
      if (roles !== undefined) return roles;
      context.addIssue({ code: "custom", message: "expected <role>=<principal>,<principal>;<role>=…, and no agents" });
      return z.NEVER;
    })
    .optional()
    .describe("Who has which role, the same on every node: <role>=<principal>,<principal>;<role>=<principal>."),
  HOLDFAST_ROOT: z.string().min(1).optional().describe("Folder that the file tools of agents may read."),
  HOLDFAST_OUTPUT: z.string().min(1).optional().describe("Folder that the file tools of agents may write reports to."),
  HOLDFAST_LEDGER_URL: url(/^http$/)
    .optional()
    .describe("Address of a ledger that counts attempts of effects."),
  HOLDFAST_AGENTS: z.string().min(1).default(".agents").describe("Folder with agents of the project."),
  HOLDFAST_USER_AGENTS: z
    .string()
    .min(1)
    .optional()
    .describe("Folder with agents of the user; those of the project come first."),
  HOLDFAST_MODEL_BASE_URL: url(/^https?$/)
    .optional()
    .describe("OpenAI-compatible endpoint; default: the scripted model of the demo."),
  HOLDFAST_MODEL_API_KEY: z.string().min(1).optional().describe("Key for that endpoint."),
  HOLDFAST_MODEL: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe("Model name for every agent; default: the one of its definition."),
  HOLDFAST_MODEL_CONNECT_MS: ms(10_000).describe("Time for the model endpoint to answer at all, ms."),
  HOLDFAST_MODEL_FIRST_TOKEN_MS: ms(60_000).describe("Time until the first token, ms."),
  HOLDFAST_MODEL_IDLE_MS: ms(60_000).describe("Longest silence between tokens, ms."),
};

export type EnvironmentName = keyof typeof SCHEMAS;

/** Every variable with its schema and meaning, for documentation. */
export const ENVIRONMENT: Readonly<Record<string, { readonly schema: z.ZodType; readonly meaning: string }>> =
  Object.fromEntries(
    Object.entries(SCHEMAS).map(([name, schema]) => [name, { schema, meaning: schema.description ?? "" }]),
  );

const schema = z.object(SCHEMAS);

export type Config = z.output<typeof schema>;

const SECRET = /PASSWORD|API_KEY|RESTART_TOKEN/;

/**
 * Reads the configuration once; after it nothing is optional that has a default. Empty values count as unset.
 * @throws RuntimeFault HF-7001 for a value that does not fit, HF-7002 for an unknown HOLDFAST_ variable
 */
export function parseConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith("HOLDFAST_") || value === undefined || value === "") continue;
    if (!Object.hasOwn(ENVIRONMENT, name)) {
      throw new RuntimeFault(
        "HF-7002",
        `${name} is not a variable of Holdfast. Did you mean ${nearest(name)}? All of them are in docs/configuration.md.`,
        { facts: { variable: name } },
      );
    }
    given[name] = value;
  }
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const name = String(issue?.path[0] ?? "HOLDFAST_");
  const shown = SECRET.test(name) ? "(hidden)" : `"${given[name] ?? ""}"`;
  throw new RuntimeFault(
    "HF-7001",
    `${name}: found ${shown}, ${issue?.message ?? "not valid"}. Correct it or leave it out.`,
    { facts: { variable: name } },
  );
}

function nearest(name: string): string {
  const names = Object.keys(ENVIRONMENT);
  const scored = names.map((known) => [distance(name, known), known] as const).toSorted((a, b) => a[0] - b[0]);
  return scored[0]?.[1] ?? names.join(", ");
}

/** Levenshtein distance, one row at a time. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
