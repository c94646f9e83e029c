import { hash128 } from "@holdfast/protocol";
import { RunnerFault } from "../runner-fault.ts";
import type { RunnerEnvelope } from "../wire/envelope.ts";
import { canonicalJson } from "./canonical-json.ts";

/** A durable envelope as the host stores it: once per conversation, type and causation. */
export interface RunnerFact {
  readonly conversation: string;
  readonly type: string;
  readonly causation: string;
  readonly payload: FactPayload;
}

export interface FactPayload {
  readonly engine: string;
  /** Place of the envelope that brought it. Not part of its identity: a runner that counts anew brings the same fact. */
  readonly runnerSeq: number;
  readonly message: unknown;
}

/** Type of every fact that comes from an engine's message. */
export const ENGINE_MESSAGE = "engine.message";

/**
 * The fact of a durable event. Its causation is `<engine>:<message type>:<uuid of the message>`, or a hash of the message when it has no uuid.
 *
 * @throws RunnerFault HF-1001 when the envelope is not a durable event
 */
export function factOf(engine: string, envelope: RunnerEnvelope): RunnerFact {
  if (envelope.op !== "event" || envelope.requiresPersistence !== true)
    throw new RunnerFault(
      "HF-1001",
      `Envelope ${envelope.seq} of ${envelope.conversation}: a durable event expected, ${envelope.op} found. Store only what the runner marked as durable.`,
      { facts: { seq: envelope.seq, op: envelope.op } },
    );
  const { message, messageType, seq, conversation } = envelope;
  return {
    conversation,
    type: ENGINE_MESSAGE,
    causation: `${engine}:${messageType}:${uuidOf(message) ?? hash128(canonicalJson(message))}`,
    payload: { engine, runnerSeq: seq, message },
  };
}

/**
 * Name under which a fact is claimed, 26 characters: a function of conversation, type and causation alone.
 *
 * @throws RunnerFault HF-1001 when one of the three is empty: it would fall together with others
 */
export function claimKeyOf({ conversation, type, causation }: Omit<RunnerFact, "payload">): string {
  for (const [name, part] of Object.entries({ conversation, type, causation }))
    if (part === "")
      throw new RunnerFault("HF-1001", `Fact of a runner: its ${name} is empty, text expected. Name it.`, {
        facts: { field: name },
      });
  return hash128(JSON.stringify([conversation, type, causation]));
}

/**
 * Checks that what is stored under a claim is what would be stored now; the place in the runner's count may differ.
 *
 * @throws RunnerFault HF-9003 when it is not
 */
export function assertSameFact(fact: RunnerFact, stored: FactPayload): void {
  const sameMessage = canonicalJson(stored.message) === canonicalJson(fact.payload.message);
  if (stored.engine === fact.payload.engine && sameMessage) return;
  throw new RunnerFault(
    "HF-9003",
    `Fact ${fact.causation} of ${fact.conversation}: stored once, now brought with other content. The first stays and no receipt is sent; find out which engine uses an id twice.`,
    { facts: { conversation: fact.conversation, type: fact.type, causation: fact.causation } },
  );
}

function uuidOf(message: unknown): string | undefined {
  if (typeof message !== "object" || message === null || !("uuid" in message)) return undefined;
  return typeof message.uuid === "string" && message.uuid !== "" ? message.uuid : undefined;
}
