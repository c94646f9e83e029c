import { z } from "zod";
import { ClosePolicy } from "./policies.ts";

// What models call the tools with that concern tasks which can be continued.

/** A year: longer deadlines are a mistake of the model. */
const MAX_DELAY_MS = 365 * 24 * 3_600_000;
/** Milliseconds a call may wait for the end of a task that runs in the background. */
const MAX_WAIT_MS = 3_600_000;

const TaskName = z.string().min(1).max(128);
const deadlineMs = z.int().min(1000).max(MAX_DELAY_MS).optional().describe("Milliseconds after which it is stopped.");

/** Arguments of a tool of kind `delegate` whose schema knows `resume`: its tasks can be continued. */
export const TaskArguments = z.object({
  subagent: z.string().optional().describe("Name of the agent that is to do the work. Not needed with resume."),
  prompt: z.string().min(1).max(100_000).describe("The whole assignment; the agent knows nothing else."),
  description: z.string().max(200).optional().describe("A few words for lists."),
  resume: TaskName.optional().describe(
    "taskId of an earlier task: the prompt is a further message to it, or the answer to its question. It remembers its work.",
  ),
  background: z.boolean().optional().describe("Do not wait for it; task_output tells later how it ended."),
  deadlineMs,
  idleMs: deadlineMs.describe("Milliseconds without any activity after which it is stopped."),
  onClose: ClosePolicy.optional().describe("What becomes of it when this conversation is closed first."),
  resources: z
    .array(z.string().min(1).max(200))
    .max(32)
    .optional()
    .describe("What it changes, e.g. paths. Tasks that name the same thing run one after the other."),
  onConflict: z.enum(["serialize", "allow"]).optional().describe("allow: beside other tasks that allow it too."),
});
export type TaskArguments = Readonly<z.infer<typeof TaskArguments>>;

/** Arguments of a tool of kind `taskGroup`. */
export const TaskGroupArguments = z
  .object({
    tasks: z
      .array(TaskArguments.pick({ prompt: true, description: true, deadlineMs: true }).extend({ subagent: z.string() }))
      .min(1)
      .max(64),
    mode: z
      .enum(["all", "any", "quorum", "race"])
      .describe("Wait until all have ended, any or a quorum has succeeded, or one has ended. The others are stopped."),
    quorum: z.int().min(1).max(64).optional(),
  })
  .refine(({ mode, quorum }) => (mode === "quorum") === (quorum !== undefined), {
    path: ["quorum"],
    message: 'belongs to mode "quorum"',
  })
  .refine(({ tasks, quorum }) => (quorum ?? 1) <= tasks.length, {
    path: ["quorum"],
    message: "is larger than the group",
  });
export type TaskGroupArguments = Readonly<z.infer<typeof TaskGroupArguments>>;

/** Arguments of a tool of kind `taskOutput`. */
export const TaskOutputArguments = z.object({
  taskId: TaskName,
  waitMs: z.int().min(0).max(MAX_WAIT_MS).optional().describe("Milliseconds to wait for its end."),
});

/** Arguments of a tool of kind `taskStop`. */
export const TaskStopArguments = z.object({ taskId: TaskName, reason: z.string().max(500).optional() });

/** Arguments of a tool of kind `askParent`. */
export const AskParentArguments = z.object({ question: z.string().min(1).max(8000) });
