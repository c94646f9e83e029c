import { AgentDefinition, CrashPolicy, Payer } from "@holdfast/protocol";
import { z } from "zod";

// Known only to the shell: it adds them before the job starts.
const filledByShell = {
  /** Key of the conversation. */
  conversation: z.string().optional(),
  /** Revision of the conversation up to which the transcript is to be read. */
  throughRev: z.number().optional(),
};

/** Input of the job `model.generate`; its output is a `ModelReply`. */
export const ModelJobInput = z.object({
  ...filledByShell,
  agent: AgentDefinition,
  iteration: z.number(),
  /** User messages that this call is shown: later ones wait for the next call, also when this one is made again. */
  messagesTaken: z.number().optional(),
  /** What the model is told after the transcript: that it goes round in circles. */
  nudge: z.string().optional(),
  /** What is wanted instead of the next step: a summary of the transcript. */
  purpose: z.literal("condense").optional(),
  /** Who pays. Absent: nobody is asked. */
  payer: Payer.optional(),
});
export type ModelJobInput = Readonly<z.infer<typeof ModelJobInput>>;

/** Input of the jobs `tool.run.*`; the output is a string, `{ ok, content }`, or any JSON value. */
export const ToolJobInput = z.object({
  ...filledByShell,
  agent: z.string(),
  callId: z.string(),
  name: z.string(),
  input: z.record(z.string(), z.unknown()),
  crashPolicy: CrashPolicy,
});
export type ToolJobInput = Readonly<z.infer<typeof ToolJobInput>>;
