import type { ActorRecord, RecordHeader } from "@holdfast/protocol";
import { z } from "zod";

const Vote = z.looseObject({ answerId: z.string(), principal: z.string(), value: z.json().optional() });
const Asked = z.looseObject({
  waitId: z.string(),
  status: z.string(),
  outcome: z.string().optional(),
  question: z.string(),
  reason: z.string().optional(),
  kind: z.string().optional(),
  toolCall: z.looseObject({ id: z.string(), name: z.string(), args: z.json() }).optional(),
  actions: z.array(z.string()).optional(),
  options: z.array(z.string()).optional(),
  answerSchema: z.record(z.string(), z.unknown()).optional(),
  default: z.json().optional(),
  assignee: z.string(),
  role: z.string().optional(),
  approvers: z.array(z.string()).optional(),
  quorum: z.number().optional(),
  onExpiry: z.string(),
  escalated: z.number().optional(),
  conversationId: z.string(),
  agent: z.string(),
  callId: z.string(),
  votes: z.array(Vote).optional(),
  answerId: z.string().optional(),
  answer: z.json().optional(),
  action: z.string().optional(),
  by: z.string().optional(),
  principal: z.string().optional(),
  approvals: z.array(z.string()).optional(),
  endReason: z.string().optional(),
});
type Asked = z.infer<typeof Asked>;

/** One question to people. What is not said of it is absent. Times are broker times, Unix ms. */
export interface WaitRow {
  readonly id: string;
  /** Key of its actor, revision, and the version of the machine that wrote it. */
  readonly key: string;
  readonly rev: number;
  readonly machineVersion: string;
  /** `open`, `answered`, `declined`, `expired`, `cancelled`, `consumed`; `outcome`: how it was settled. */
  readonly status: string;
  readonly outcome?: string;
  readonly question: string;
  readonly reason?: string;
  readonly kind?: string;
  readonly toolCall?: { readonly id: string; readonly name: string; readonly args: unknown };
  readonly actions?: readonly string[];
  readonly options?: readonly string[];
  readonly answerSchema?: Readonly<Record<string, unknown>>;
  readonly default?: unknown;
  readonly assignee: string;
  readonly role?: string;
  readonly approvers?: readonly string[];
  readonly quorum?: number;
  /** Who has replied so far. */
  readonly replied: readonly string[];
  readonly conversation: string;
  readonly agent: string;
  readonly callId: string;
  readonly user?: string;
  readonly tenant?: string;
  readonly createdAtMs: number;
  readonly expiresAtMs?: number;
  readonly onExpiry: string;
  readonly answer?: {
    readonly answerId?: string;
    readonly value?: unknown;
    readonly action?: string;
    readonly by?: string;
    readonly principal?: string;
    readonly approvals?: readonly string[];
  };
  /** Why there is no answer. */
  readonly endReason?: string;
}

/** The row of a stored question; undefined when the record is none. Pure. */
export function waitRowOf(header: RecordHeader, record: ActorRecord): WaitRow | undefined {
  const asked = Asked.safeParse(record.snapshot.context).data;
  if (asked === undefined) return undefined;
  const { key, list } = header;
  const { waitId: id, status, conversationId: conversation, votes = [], ...rest } = asked;
  const optional = present({
    outcome: rest.outcome,
    reason: rest.reason,
    kind: rest.kind,
    toolCall: rest.toolCall,
    actions: rest.actions,
    options: rest.options,
    answerSchema: rest.answerSchema,
    default: rest.default,
    role: rest.role,
    approvers: rest.approvers,
    quorum: rest.quorum,
    user: text(list["user"]),
    tenant: text(list["tenant"]),
    expiresAtMs: status === "open" ? expiryOf(record) : undefined,
    answer: answerOf(asked),
    endReason: rest.endReason,
  });
  return {
    id,
    key,
    rev: header.rev,
    machineVersion: record.machine.version,
    status,
    question: rest.question,
    assignee: rest.assignee,
    replied: votes.map(({ principal }) => principal),
    conversation,
    agent: rest.agent,
    callId: rest.callId,
    createdAtMs: record.createdAtMs,
    onExpiry: rest.onExpiry,
    ...optional,
  };
}

/** A question of an earlier build has a timer that is bound to its state. */
const expiryOf = ({ timers }: ActorRecord): number | undefined =>
  Object.entries(timers).find(([timer]) => timer === "expiry" || timer.startsWith("xstate.after.expiry."))?.[1].dueAtMs;

function answerOf({ answer, answerId, action, by, principal, approvals }: Asked): WaitRow["answer"] {
  if (by === undefined) return undefined;
  return { by, ...present({ answerId, value: answer, action, principal, approvals }) };
}

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** The fields that have a value. */
function present<T extends object>(fields: T): Present<T> {
  const kept: Present<T> = {};
  for (const key in fields) {
    const value = fields[key];
    if (isValue(value)) kept[key] = value;
  }
  return kept;
}

const isValue = <T>(value: T): value is Exclude<T, undefined> => value !== undefined;
