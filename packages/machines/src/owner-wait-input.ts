import { z } from "zod";
import { AnswerSchema } from "./json-schema-subset.ts";
import { mismatchOfAnswer } from "./owner-wait-answer.ts";
import { MAX_DELAY_MS } from "./task-input.ts";

/** Who is to answer: a word for lists, or `person-<id>` / `service-<id>`, and then nobody else may. */
const Assignee = z.string().regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/);

/** `person-<id>` or `service-<id>`; never an agent. */
const Approver = z.string().regex(/^(person|service)-[A-Za-z0-9_]{1,48}$/);

const MAX_APPROVERS = 32;

/** A question to a person, as a model or a machine asks it. */
export const Question = z
  .object({
    question: z.string().min(1).max(8000),
    reason: z.string().max(2000).optional(),
    /** The answer is one of these. */
    options: z
      .array(z.string().min(1).max(500))
      .min(1)
      .max(32)
      .refine((options) => new Set(options).size === options.length, "options must differ")
      .optional(),
    /** The answer fits this. Without options and schema it is any text that is not blank. */
    answerSchema: AnswerSchema.optional(),
    default: z.json().optional(),
    assignee: Assignee.default("owner"),
    /** Only these may answer. */
    approvers: z
      .array(Approver)
      .min(1)
      .max(MAX_APPROVERS)
      .refine((approvers) => new Set(approvers).size === approvers.length, "approvers must differ")
      .optional(),
    /** Distinct people who have to give the same answer. Absent: 1. */
    quorum: z.int().min(1).max(MAX_APPROVERS).optional(),
    /** An answer may be taken back for so long, also when nothing else is waited for. Absent: only until then. */
    revocableForMs: z.int().min(1000).max(MAX_DELAY_MS).optional(),
    /** Without it the question stays open until it is answered or cancelled. */
    expiresInMs: z.int().min(1000).max(MAX_DELAY_MS).optional(),
    /** `default`: the default is taken, and said to be one. Silence is never consent otherwise. */
    onExpiry: z.enum(["fail", "default"]).default("fail"),
  })
  .superRefine((question, context) => {
    const refuse = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
    if (question.default !== undefined) {
      const mismatch = mismatchOfAnswer(question, question.default);
      if (mismatch !== undefined) refuse("default", `does not answer the question: ${mismatch.reason}`);
    }
    if (question.approvers !== undefined && (question.quorum ?? 1) > question.approvers.length) {
      refuse("quorum", "more than there are approvers");
    }
    if (question.onExpiry === "default" && question.default === undefined) {
      refuse("onExpiry", '"default" needs a default');
    }
    if (question.onExpiry === "default" && question.expiresInMs === undefined) {
      refuse("onExpiry", '"default" needs expiresInMs');
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
