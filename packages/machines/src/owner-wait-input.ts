import { z } from "zod";
import { AnswerSchema } from "./json-schema-subset.ts";
import { mismatchOfAnswer } from "./owner-wait-answer.ts";
import { MAX_DELAY_MS } from "./task-input.ts";

/** Who is to answer: a word for lists, or `person-<id>` / `service-<id>`, and then nobody else may. */
export const Assignee = z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/);

/** Whoever has this role may answer, and nobody else. */
export const Role = z.string().regex(/^[a-z][a-z0-9-]{0,31}$/);

/** `person-<id>` or `service-<id>`; never an agent. */
const Approver = z.string().regex(/^(person|service)-[A-Za-z0-9_]{1,48}$/);

const MAX_APPROVERS = 32;
const MAX_ARGUMENTS_JSON_CHARACTERS = 16_000;
const delayMs = z.int().min(1000).max(MAX_DELAY_MS);

/** Somebody further up, and how long they have. */
const EscalationStep = z.union([
  z.strictObject({ assignee: Assignee, expiresInMs: delayMs }),
  z.strictObject({ role: Role, expiresInMs: delayMs }),
]);

/** What may be done about a question: take it as it is, change it, say something, or turn it down. */
export const WaitAction = z.enum(["accept", "edit", "respond", "reject"]);
export type WaitAction = z.infer<typeof WaitAction>;

const differ = (items: readonly string[]): boolean => new Set(items).size === items.length;

/** A question to a person, as a model or a machine asks it. */
export const Question = z
  .object({
    question: z.string().min(1).max(8000),
    reason: z.string().max(2000).optional(),
    /** What kind of question it is, for inboxes: `tool_call`, `input_required`, `confirmation`, or a word of one's own, `<namespace>:<word>`. */
    kind: z
      .string()
      .regex(/^(tool_call|input_required|confirmation|[a-z][a-z0-9-]{0,31}:[a-z][a-z0-9_-]{0,31})$/)
      .optional(),
    /** The call that is to be approved; `edit` replaces its arguments. */
    toolCall: z
      .object({ id: z.string().min(1).max(128), name: z.string().min(1).max(64), args: z.json() })
      .refine(({ args }) => JSON.stringify(args).length <= MAX_ARGUMENTS_JSON_CHARACTERS, "its arguments are too long")
      .optional(),
    /** What may be done about it. Absent: any answer that fits, or to decline. */
    actions: z.array(WaitAction).min(1).max(4).refine(differ, "actions must differ").optional(),
    /** The answer is one of these. */
    options: z.array(z.string().min(1).max(500)).min(1).max(32).refine(differ, "options must differ").optional(),
    /** The answer fits this; where `edit` is allowed, what it gives. Without options and schema it is any text that is not blank. */
    answerSchema: AnswerSchema.optional(),
    default: z.json().optional(),
    assignee: Assignee.default("owner"),
    role: Role.optional(),
    /** Only these may answer. */
    approvers: z.array(Approver).min(1).max(MAX_APPROVERS).refine(differ, "approvers must differ").optional(),
    /** Distinct people who have to give the same answer. Absent: 1. */
    quorum: z.int().min(1).max(MAX_APPROVERS).optional(),
    /** An answer may be taken back for so long, also when nothing else is waited for. Absent: only until then. */
    revocableForMs: delayMs.optional(),
    /** It is announced again so often while it is open, `maxReminders` times at most. */
    remindEveryMs: delayMs.optional(),
    /** Absent: 10. */
    maxReminders: z.int().min(1).max(100).optional(),
    /** Without it the question stays open until it is answered or cancelled. */
    expiresInMs: delayMs.optional(),
    /**
     * `default`: the default is taken, and said to be one. `escalate`: it goes to the next of `escalation`. Silence is never consent otherwise.
     */
    onExpiry: z.enum(["fail", "default", "escalate"]).default("fail"),
    /** Who is asked next, one after the other. */
    escalation: z.array(EscalationStep).min(1).max(8).optional(),
    /** When the last of them does not answer either. Absent: `fail`. */
    onEscalated: z.enum(["fail", "default"]).optional(),
  })
  .superRefine((question, context) => {
    const refuse = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
    if (question.default !== undefined) {
      const mismatch = mismatchOfAnswer(question, question.default);
      if (mismatch !== undefined) refuse("default", `does not answer the question: ${mismatch.reason}`);
    }
    const { approvers, role, assignee, quorum = 1, onExpiry, escalation } = question;
    const isExclusive = role === undefined && /^(person|service)-/.test(assignee);
    if (quorum > (approvers?.length ?? (isExclusive ? 1 : MAX_APPROVERS))) {
      refuse("quorum", "more than there are people who may answer");
    }
    if (approvers !== undefined && role !== undefined) refuse("role", "approvers are named already");
    if (onExpiry !== "fail" && question.expiresInMs === undefined) {
      refuse("onExpiry", `"${onExpiry}" needs expiresInMs`);
    }
    if ((onExpiry === "default" || question.onEscalated === "default") && question.default === undefined) {
      refuse(onExpiry === "default" ? "onExpiry" : "onEscalated", '"default" needs a default');
    }
    if ((onExpiry === "escalate") !== (escalation !== undefined)) refuse("escalation", 'goes with onExpiry "escalate"');
    if (escalation !== undefined && (approvers !== undefined || quorum > 1)) {
      refuse("escalation", "a question to several goes to nobody further up");
    }
  });
export type Question = Readonly<z.infer<typeof Question>>;

/** What an owner-wait is started with. */
export const OwnerWaitInput = z.intersection(
  Question,
  z.object({
    /** Absent: the id of the actor. */
    waitId: z.string().optional(),
    conversationId: z.string(),
    /** Name of the agent that asks. */
    agent: z.string(),
    callId: z.string(),
    /** What the one who asks calls it. With it that one says when it waits for the answer (`awaited`) and that it has it (`consumed`). */
    childId: z.string().optional(),
  }),
);
export type OwnerWaitInput = Readonly<z.infer<typeof OwnerWaitInput>>;
