import { z } from "zod";
import { sha256Hex } from "./hash.ts";
import { ActorKey, NodeName, Partition } from "./ids.ts";
import { Incarnation } from "./incarnation.ts";

/** Exit code of a process that ends for its planned restart. */
export const PLANNED_EXIT_CODE = 42;

/** The start of a process as its supervisor saw it may be this much before the process says it began, ms. */
const START_TOLERANCE_MS = 60_000;

/** Actors that a planned restart lists by name. */
export const MAX_KEPT_ACTORS = 512;

/** Key of the newest planned restart of a node, in the fleet bucket. */
export const restartKey = (node: string): string => `restart.${node}`;

/** Key of what the supervisor of a node saw when its process ended, in the fleet bucket; nodes may not write it. */
export const exitKey = (node: string): string => `exit.${node}`;

const RestartId = z.string().regex(/^[a-z0-9]{8,32}$/, "8 to 32 of a-z and 0-9");
/** Known to one process only until it is shown. */
const Secret = z.string().regex(/^[0-9a-f]{32,128}$/, "32 to 128 hex digits");

/** SHA-256 of a secret, which others may know: who shows the secret is the one it was made by, or given to. */
export const proofOf = (secret: string): string => sha256Hex(Uint8Array.from(secret, (digit) => digit.charCodeAt(0)));

/** SHA-256 of a secret that only the one knows who will have to show it. */
export const SecretProof = z.string().regex(/^[0-9a-f]{64}$/, "SHA-256 in hex");

/** One process of a node. */
export const Generation = z.object({
  incarnation: Incarnation,
  pid: z.number().int(),
  /** When the process began, by the clock of its machine, Unix ms. */
  startedAtMs: z.number(),
});
export type Generation = z.infer<typeof Generation>;

/** What a supervisor saw of the end of a process that it had started; key `exit.<node>`. JSON. */
export const ExitReport = z.object({
  v: z.literal(1),
  node: NodeName,
  generation: Generation,
  /** Of its own wait for the process. */
  exitCode: z.number().int(),
  /** Its SHA-256 was given to the process when it was started. */
  secret: Secret,
});
export type ExitReport = z.infer<typeof ExitReport>;

/** `returns`: it goes on where it is. `held`: nothing of it goes on by itself. `cancelled`: it is ending anyway. */
export const RestartVerdict = z.enum(["returns", "held", "cancelled"]);
export type RestartVerdict = z.infer<typeof RestartVerdict>;

export const KeptActor = z.object({ key: ActorKey, verdict: RestartVerdict, why: z.string().max(400) });
export type KeptActor = z.infer<typeof KeptActor>;

/**
 * A planned restart of one process; key `restart.<node>` of the fleet bucket. JSON.
 * `prepared → acknowledged → consumed`, or `abandoned` when nobody could show that the process had ended as planned.
 */
export const Restart = z.object({
  v: z.literal(1),
  id: RestartId,
  node: NodeName,
  generation: Generation,
  state: z.enum(["prepared", "acknowledged", "consumed", "abandoned"]),
  /** Principal token of who asked. */
  by: z.string().max(80),
  /** false: nothing of what the node owned goes on by itself. */
  resume: z.boolean(),
  /** Who may acknowledge it: the supervisor that started the process, or a successor with the one-shot token. */
  exitProof: SecretProof.optional(),
  tokenProof: SecretProof.optional(),
  /** Partitions that the node owned when it was prepared: others live and take them over, or they wait for a successor. */
  partitions: z.object({ moving: z.array(Partition), waiting: z.array(Partition) }),
  /** Actors with work there, at most MAX_KEPT_ACTORS; `actors` counts all of them. */
  keeps: z.array(KeptActor).max(MAX_KEPT_ACTORS),
  actors: z.number().int(),
  preparedAtMs: z.number(),
  acknowledgement: z
    .discriminatedUnion("source", [
      z.object({ source: z.literal("supervisor"), exit: ExitReport }),
      z.object({ source: z.literal("successor"), incarnation: Incarnation, token: Secret }),
    ])
    .optional(),
  /** Node that found every partition taken up again. */
  settledBy: Incarnation.optional(),
  /** Random token of the write attempt. */
  token: z.string(),
});
export type Restart = z.infer<typeof Restart>;

/** What an operator asks a node for with a planned restart. */
export const RestartRequest = z.object({
  id: RestartId,
  resume: z.boolean(),
  tokenProof: SecretProof.optional(),
});
export type RestartRequest = z.infer<typeof RestartRequest>;

/** What a released lease says of the planned restart for which it was released. */
export const RestartNote = z.object({
  id: RestartId,
  node: NodeName,
  incarnation: Incarnation,
  /** No other node of its pool lived: it waits for a successor. */
  isWaiting: z.boolean(),
  resume: z.boolean(),
});
export type RestartNote = z.infer<typeof RestartNote>;

export type AcknowledgementVerdict =
  | { readonly kind: "acknowledged"; readonly acknowledgement: NonNullable<Restart["acknowledgement"]> }
  | { readonly kind: "unacknowledged"; readonly why: string };

/**
 * Whether it is proven that the process of a restart has ended as planned. Whoever wrote what: it is judged by what it shows.
 * @param exit  what lies under `exit.<node>`
 */
export function judgeAcknowledgement(restart: Restart, exit: ExitReport | undefined): AcknowledgementVerdict {
  const { acknowledgement, generation, tokenProof } = restart;
  if (acknowledgement?.source === "successor") {
    if (tokenProof !== undefined && proofOf(acknowledgement.token) === tokenProof)
      return { kind: "acknowledged", acknowledgement };
    return { kind: "unacknowledged", why: "the token that was shown is not its token" };
  }
  const found = acknowledgement?.exit ?? (exit?.generation.incarnation === generation.incarnation ? exit : undefined);
  if (found === undefined) return { kind: "unacknowledged", why: "nobody has acknowledged that its process ended" };
  const why = flawOf(restart, found);
  if (why !== undefined) return { kind: "unacknowledged", why };
  return { kind: "acknowledged", acknowledgement: { source: "supervisor", exit: found } };
}

function flawOf(
  { generation, exitProof, node }: Restart,
  { secret, exitCode, generation: ended, node: of }: ExitReport,
): string | undefined {
  if (exitProof === undefined) return "its process had no supervisor that could acknowledge its end";
  if (proofOf(secret) !== exitProof) return "what acknowledges it does not come from the supervisor of its process";
  if (of !== node || ended.incarnation !== generation.incarnation) return `what ended was ${ended.incarnation}`;
  if (ended.pid !== generation.pid) return `what ended was process ${ended.pid}, not ${generation.pid}`;
  const earlierMs = generation.startedAtMs - ended.startedAtMs;
  if (earlierMs < -1000 || earlierMs > START_TOLERANCE_MS) return `process ${ended.pid} was started at another time`;
  return exitCode === PLANNED_EXIT_CODE ? undefined : `its process ended with ${exitCode}, not ${PLANNED_EXIT_CODE}`;
}

/** The state of a restart, with an acknowledgement that no node has taken note of yet. */
export function restartState(restart: Restart, exit: ExitReport | undefined): Restart["state"] {
  if (restart.state !== "prepared") return restart.state;
  return judgeAcknowledgement(restart, exit).kind === "acknowledged" ? "acknowledged" : "prepared";
}

/** What is known of an actor with work before its node is restarted. */
export interface RestartFacts {
  readonly key: string;
  /** It is closing. */
  readonly isClosing: boolean;
  /** Why nothing of it runs even now. */
  readonly heldBecause: string | undefined;
  /** Its type is held after an end that nobody acknowledged. */
  readonly isHeldAfterCrash: boolean;
  /** Another node of its pool lives. */
  readonly isMoving: boolean;
}

/** What becomes of an actor with work when its node is restarted. Pure. */
export function planActor(facts: RestartFacts, resume: boolean): KeptActor {
  const { key, isClosing, heldBecause, isHeldAfterCrash, isMoving } = facts;
  if (heldBecause !== undefined) return { key, verdict: "held", why: heldBecause.slice(0, 400) };
  if (!resume) return { key, verdict: "held", why: "the restart is without resume" };
  if (isClosing) return { key, verdict: "cancelled", why: "it is closing, and its successor ends it" };
  if (isMoving) return { key, verdict: "returns", why: "another node of its pool takes it over at once" };
  return {
    key,
    verdict: "returns",
    why: isHeldAfterCrash ? "with the next node, if the end is acknowledged; else it is held" : "with the next node",
  };
}
