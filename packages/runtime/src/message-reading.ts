import type { Codec } from "@holdfast/codec";
import {
  inputHash,
  type DropReason,
  type SettledMessage,
  type StartMessage,
  type StepMessage,
} from "@holdfast/durable";
import {
  actingFor,
  MAX_OUTSIDE_EVENT_TYPE,
  principalToken,
  type ActorRecord,
  type BlobFields,
  type Envelope,
  type EnvelopeOf,
  type MessageOutcome,
  type Principal,
} from "@holdfast/protocol";
import type { ActorDefinition } from "./actor-definition.ts";
import type { InboxMessage } from "./ports/index.ts";

const NOBODY: Principal = { kind: "service", id: "unknown", roles: [] };

/** An inbox message, decoded: what `step` gets and who waits for the outcome. */
export interface ReadMessage {
  readonly step: StepMessage;
  readonly envelope: Envelope;
  readonly replyTo: string | undefined;
  /** Fields of its payload that are kept outside. Never of a message from outside: it names no blobs of others (F35). */
  readonly blobs: BlobFields | undefined;
}

/** The roles of a sender are what this node was told of them: the subject says who it is, and nothing says what it may. */
export function withRoles(message: InboxMessage, roles: Readonly<Record<string, readonly string[]>>): InboxMessage {
  const { principal } = message;
  if (principal === undefined) return message;
  const token = principalToken(principal);
  const own = Object.entries(roles).flatMap(([role, members]) => (members.includes(token) ? [role] : []));
  return own.length === 0 ? message : { ...message, principal: { ...principal, roles: own } };
}

/**
 * Decodes an inbox message. Who sent it is known from its subject: of a message from outside, `from` and `principal` in the payload mean
 * nothing, and only kinds that an outsider may send are read (F35).
 * @throws RuntimeFault HF-1001 or HF-2001 when the bytes are not an envelope
 */
export function readMessage(codec: Codec, message: InboxMessage, generation: string): ReadMessage {
  const envelope = codec.decodeEnvelope(message.bytes);
  const replyTo = envelope.kind === "start" || envelope.kind === "send" ? envelope.replyTo : undefined;
  const blobs = message.principal !== undefined || envelope.kind === "stop" ? undefined : envelope.blobs;
  return { step: stepMessageOf(envelope, message, generation), envelope, replyTo, blobs };
}

function stepMessageOf(envelope: Envelope, message: InboxMessage, generation: string): StepMessage {
  const outside = message.principal;
  switch (envelope.kind) {
    case "start":
      return {
        kind: "start",
        id: message.messageId,
        key: message.key,
        genesis: `${generation}:${message.seq}`,
        ...(outside === undefined && envelope.parent !== undefined && { parent: envelope.parent }),
        input: envelope.input,
        principal: outside === undefined ? (envelope.principal ?? NOBODY) : actingFor(outside, envelope.onBehalf),
        generation,
      };
    case "send":
      if (outside !== undefined) {
        return {
          kind: "event",
          id: message.messageId,
          event: { ...envelope.event, principal: outside },
          principal: outside,
          ...(envelope.toGenesis !== undefined && { toGenesis: envelope.toGenesis }),
          external: true,
        };
      }
      return {
        kind: "event",
        id: envelope.id,
        event: envelope.event,
        ...(envelope.from !== undefined && { from: envelope.from }),
        ...(envelope.toGenesis !== undefined && { toGenesis: envelope.toGenesis }),
        external: false,
      };
    case "settled":
      return outside === undefined
        ? {
            kind: "settled",
            id: envelope.id,
            childId: envelope.childId,
            childKey: envelope.childKey,
            event: envelope.event,
            toGenesis: envelope.toGenesis,
            ...ranOf(envelope),
          }
        : reserved(message, envelope.event.type);
    case "stop":
      return outside === undefined ? { kind: "stop", id: envelope.id } : reserved(message, "stop");
  }
}

const ranOf = ({ attempt, runner }: EnvelopeOf<"settled">): Pick<SettledMessage, "ran"> =>
  attempt === undefined || runner === undefined ? {} : { ran: { attempt, runner } };

/** What an outsider may not send becomes an event that `step` refuses and counts. */
function reserved(message: InboxMessage, type: string): StepMessage {
  return { kind: "event", id: message.messageId, event: { type: `xstate.outside.${type}` }, external: true };
}

/** Checks what an outsider sent against what the actor type accepts. @returns the refusal, or undefined when it fits */
export function refusalOfOutside(definition: ActorDefinition, read: ReadMessage): MessageOutcome | undefined {
  const { step, envelope } = read;
  if (step.kind === "event" && step.event.type.length > MAX_OUTSIDE_EVENT_TYPE) {
    const reason = `The event's type has ${step.event.type.length} characters, at most ${MAX_OUTSIDE_EVENT_TYPE} are taken. Send what varies in its fields.`;
    return { kind: "refused", code: "HF-1001", reason };
  }
  const checked =
    step.kind === "start"
      ? definition.input?.safeParse(envelope.kind === "start" ? envelope.input : undefined)
      : step.kind === "event" && !step.event.type.startsWith("xstate.")
        ? definition.outsideEvent?.safeParse(step.event)
        : undefined;
  if (checked === undefined || checked.success) return undefined;
  const what = step.kind === "event" ? `event ${step.event.type}` : "input";
  return {
    kind: "refused",
    code: "HF-1001",
    reason: `The ${what} does not fit ${definition.type}: ${checked.error?.message ?? "not valid"}`,
  };
}

/** What the sender of an event that changed nothing is told. */
export function outcomeOfIgnored(
  definition: ActorDefinition,
  message: StepMessage,
  record: ActorRecord,
): MessageOutcome {
  const told = { rev: record.rev, status: record.status, value: record.snapshot.value };
  const why =
    message.kind === "event"
      ? definition.noEffect?.(message.event, record.snapshot.context, record.snapshot.value)
      : undefined;
  if (why?.kind === "refused") {
    const { code, reason, facts } = why;
    return { kind: "refused", code, reason, status: record.status, ...(facts !== undefined && { facts }) };
  }
  return { kind: "ignored", ...told };
}

/** Whether a start from outside asks for something else than what the actor was started with; of records of older builds nobody knows. */
const isOtherContent = (message: StartMessage, { inputHash: known }: ActorRecord): boolean =>
  message.parent === undefined && known !== undefined && known !== inputHash(message.input);

/** What the sender of a dropped message is told; the type of an actor that has ended may have more to say than that it has. */
export function outcomeOfDropped(
  definition: ActorDefinition,
  message: StepMessage,
  reason: DropReason,
  record: ActorRecord | undefined,
): MessageOutcome {
  if (message.kind === "start" && record !== undefined && isOtherContent(message, record)) {
    const reason = `An actor of this id was started before, with other content. Use another id, or the same content.`;
    return { kind: "refused", code: "HF-3012", reason, status: record.status };
  }
  const isTold = reason === "terminal" && record?.tombstone === undefined; // a tombstone has no context to judge by
  if (!isTold || record === undefined || message.kind !== "event") return outcomeOfDrop(reason, record);
  const why = definition.noEffect?.(message.event, record.snapshot.context, record.snapshot.value).kind ?? "noEffect";
  return why === "noEffect" ? outcomeOfDrop(reason, record) : outcomeOfIgnored(definition, message, record);
}

/** What a reason to drop a message means to its sender. */
export function outcomeOfDrop(reason: DropReason, record: ActorRecord | undefined): MessageOutcome {
  const status = record?.status ?? "absent";
  switch (reason) {
    case "duplicate":
    case "already-started":
      return { kind: "ignored", rev: record?.rev ?? 0, status, value: record?.snapshot.value };
    case "terminal":
      return {
        kind: "refused",
        code: "HF-3009",
        reason: `The actor has ended with status ${status}. Start a new one.`,
        status,
      };
    case "not-started":
      return { kind: "refused", code: "HF-3001", reason: "No actor has this key. Check the id, or start it first." };
    case "reserved-event":
      return {
        kind: "refused",
        code: "HF-1004",
        reason: "Event types that start with xstate. belong to the runtime. Use your own name.",
      };
    case "record-too-large":
      return {
        kind: "refused",
        code: "HF-2004",
        reason: "The message would make the record larger than its hard limit. Send less, or by reference.",
      };
    case "skipped":
    case "stale-timer":
    case "stale-child":
    case "gap":
    case "other-incarnation":
    case "too-many-links":
      return { kind: "refused", code: "HF-3011", reason: `The message was not applied: ${reason}.`, status };
  }
}
