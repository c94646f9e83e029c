import { z } from "zod";
import { ActorKey, Genesis } from "./ids.ts";
import { FailureCause } from "./status.ts";
import { WalletScope } from "./wallet.ts";

// Attributes travel as header values: printable, and bounded by what a header is for.
const attribute = z
  .string()
  .min(1)
  .max(512)
  .regex(/^\P{Cc}+$/u, "no control characters");
const id = z.string().min(1);
const Data = z.record(z.string(), z.unknown());
/** With the longest namespace and kind it still fits into a subject. */
const MAX_NAME_LENGTH = 200;

const AboutTask = z.looseObject({
  taskId: id,
  agent: id,
  callId: id,
  conversationId: id.optional(),
  cause: FailureCause.optional(),
});
const AboutConversation = z.looseObject({ conversationId: id, agent: id, cause: FailureCause.optional() });
const AboutWait = z.looseObject({
  waitId: id,
  callId: id,
  conversationId: id.optional(),
  agent: id.optional(),
  assignee: id.optional(),
});

const AboutFence = z.looseObject({ walletId: id, scope: WalletScope, fenceId: id });

/** CloudEvents type → schema of `data`. Later builds may add fields: readers keep those they do not know. */
export const LIFECYCLE_EVENTS = {
  "holdfast.task.created": AboutTask,
  "holdfast.task.queued": AboutTask,
  "holdfast.task.started": AboutTask,
  "holdfast.task.waiting": AboutTask,
  "holdfast.task.held": AboutTask,
  "holdfast.task.resumed": AboutTask,
  "holdfast.task.asked": AboutTask,
  "holdfast.task.continued": AboutTask,
  "holdfast.task.completed": AboutTask,
  "holdfast.task.failed": AboutTask,
  "holdfast.task.cancelled": AboutTask,
  "holdfast.task.timedOut": AboutTask,
  "holdfast.task.closed": AboutTask,
  "holdfast.conversation.created": AboutConversation,
  "holdfast.conversation.running": AboutConversation,
  "holdfast.conversation.waiting": AboutConversation,
  "holdfast.conversation.idle": AboutConversation,
  "holdfast.conversation.paused": AboutConversation,
  "holdfast.conversation.stuck": AboutConversation,
  "holdfast.conversation.error": AboutConversation,
  "holdfast.conversation.closed": AboutConversation,
  "holdfast.wait.opened": AboutWait,
  "holdfast.wait.answered": AboutWait.extend({ by: z.enum(["owner", "default"]).optional() }),
  "holdfast.wait.declined": AboutWait,
  "holdfast.wait.expired": AboutWait.extend({ by: z.enum(["owner", "default"]).optional() }),
  "holdfast.wait.cancelled": AboutWait,
  "holdfast.wait.revoked": AboutWait,
  "holdfast.wait.reminded": AboutWait,
  "holdfast.wait.reassigned": AboutWait,
  "holdfast.wait.escalated": AboutWait,
  "holdfast.wait.consumed": AboutWait,
  "holdfast.wallet.fenced": AboutFence,
  "holdfast.wallet.fenceLifted": AboutFence,
} as const satisfies Record<string, z.ZodType>;
export type LifecycleEventType = keyof typeof LIFECYCLE_EVENTS;

export const isLifecycleEventType = (type: string): type is LifecycleEventType => Object.hasOwn(LIFECYCLE_EVENTS, type);

/** What a public event tells of. The second token of its subject. */
export const EventKind = z.enum(["task", "conversation", "wait", "wallet"]);
export type EventKind = z.infer<typeof EventKind>;

/** A public event as an actor announces it: where it goes, and what it says. Types of other machines have no schema for their `data`. */
export const AnnouncedEvent = z
  .object({
    kind: EventKind,
    /** Tokens of the subject after the kind. */
    name: z
      .array(z.string().regex(/^[A-Za-z0-9_-]{1,80}$/, "one token of A-Z, a-z, 0-9, _ and -"))
      .min(1)
      .refine((tokens) => tokens.join(".").length <= MAX_NAME_LENGTH, `at most ${MAX_NAME_LENGTH} characters`),
    type: attribute,
    /** What JSON makes of it; throws where JSON does. */
    data: z.record(z.string(), z.unknown()).transform((data) => Data.parse(JSON.parse(JSON.stringify(data)))),
  })
  .superRefine(({ type, data }, context) => refuseOtherData(type, data, context));
export type AnnouncedEvent = z.infer<typeof AnnouncedEvent>;

/** A public event for services: the attributes of a CloudEvent 1.0 and its JSON data. */
export const LifecycleEvent = z
  .object({
    specversion: z.literal("1.0"),
    id: attribute,
    source: attribute,
    type: attribute,
    /** Key of the actor. */
    subject: attribute,
    /** When the transition was decided, RFC 3339, broker time. */
    time: attribute,
    datacontenttype: z.literal("application/json"),
    data: z.record(z.string(), z.unknown()),
  })
  .superRefine(({ type, data }, context) => refuseOtherData(type, data, context));
export type LifecycleEvent = z.infer<typeof LifecycleEvent>;

function refuseOtherData(type: string, data: unknown, context: z.RefinementCtx): void {
  if (!isLifecycleEventType(type)) return;
  const issue = LIFECYCLE_EVENTS[type].safeParse(data).error?.issues[0];
  if (issue !== undefined)
    context.addIssue({ code: "custom", path: ["data", ...issue.path], message: `${type}: ${issue.message}` });
}

const ATTRIBUTES = ["specversion", "id", "source", "type", "subject", "time", "datacontenttype"] as const;
const PREFIX = "ce-";

/** An event as a NATS message: binary mode of the CloudEvents binding, each attribute a header `ce-<name>`, the data as the payload. */
export interface EncodedEvent {
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. */
  readonly data: string;
}

export function encodeLifecycleEvent(event: LifecycleEvent): EncodedEvent {
  const headers = Object.fromEntries(ATTRIBUTES.map((name) => [PREFIX + name, encodeAttribute(event[name])]));
  return { headers, data: JSON.stringify(event.data) };
}

/** @returns why it is not one, when it is not */
export function tryDecodeLifecycleEvent(
  header: (name: string) => string | undefined,
  data: string,
):
  | { readonly kind: "event"; readonly event: LifecycleEvent }
  | { readonly kind: "unreadable"; readonly reason: string } {
  try {
    const attributes = Object.fromEntries(
      ATTRIBUTES.map((name) => [name, decodeAttribute(header(PREFIX + name))] as const),
    );
    const parsed = LifecycleEvent.safeParse({ ...attributes, data: JSON.parse(data) as unknown });
    if (parsed.success) return { kind: "event", event: parsed.data };
    const [issue] = parsed.error.issues;
    return { kind: "unreadable", reason: `${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}` };
  } catch (error) {
    return { kind: "unreadable", reason: error instanceof Error ? error.message : "not JSON" };
  }
}

/** Header of an event's id, for readers that need no more. */
export const EVENT_ID_HEADER = `${PREFIX}id`;

/** The binding's rule: what is not printable ASCII, the space, `"` and `%` are percent-encoded UTF-8. */
const encodeAttribute = (value: string): string =>
  value.toWellFormed().replaceAll(/[^\x21-\x7e]|["%]/gu, (one) => encodeURIComponent(one));
const decodeAttribute = (value: string | undefined): string | undefined =>
  value === undefined ? undefined : decodeURIComponent(value);

/** Where an event stands among those of its actor. */
export interface EventPlace {
  /** `<key>^<genesis>`. */
  readonly actor: string;
  readonly rev: number;
  readonly index: number;
}

const EVENT_ID = /^(?<key>[^^@#]+)\^(?<genesis>[^^@#]+)@(?<rev>[0-9]{1,15})#(?<index>[0-9]{1,6})$/;

/** Reads an event id, `<key>^<genesis>@<revision>#<index>`. @returns undefined when it is something else */
export function parseEventId(eventId: string): EventPlace | undefined {
  const { key, genesis, rev, index } = EVENT_ID.exec(eventId)?.groups ?? {};
  if (!ActorKey.safeParse(key).success || !Genesis.safeParse(genesis).success) return undefined;
  return { actor: `${key}^${genesis}`, rev: Number(rev), index: Number(index) };
}

/** Whether `a` was decided after `b`, of the same actor. */
export const isLaterEvent = (a: Pick<EventPlace, "rev" | "index">, b: Pick<EventPlace, "rev" | "index">): boolean =>
  a.rev > b.rev || (a.rev === b.rev && a.index > b.index);
