import { z } from "zod";
import type { AuditedStep } from "./evidence.ts";

/** One delegation as a conversation decided it: a task that is to be started, or a follow-up to one. */
interface DecidedDelegation {
  /** Child id of the task. */
  readonly task: string;
  /** Follow-ups that the task knows when it has done this. */
  readonly runs: number;
}

const Arguments = z.looseObject({ resume: z.string().optional(), tasks: z.array(z.unknown()).optional() });
const Call = z.looseObject({ callId: z.string(), name: z.string(), input: Arguments.optional().catch(undefined) });
const ModelDone = z.looseObject({
  type: z.string().regex(/^xstate\.done\.actor\.model-/),
  output: z.looseObject({ toolCalls: z.array(Call) }),
});
const Report = z.looseObject({
  type: z.enum(["taskReported", "taskAsked"]),
  childId: z.string(),
  runs: z.number(),
});

/** What became of the delegations of one conversation, by its journal alone. */
export interface ConversationDelegations {
  readonly decided: number;
  /** Of these, how many have a result, or an answer that asks, in the conversation. */
  readonly applied: number;
}

/**
 * Follows the delegations of one conversation. A task that can be continued tells how each run ended, and how many follow-ups it knew then;
 * any other one only ends.
 *
 * @param steps  of one incarnation, in order of revision
 * @param tools  names of tools that delegate: one task, or with `tasks` one for each of them
 */
export function delegationsOf(steps: readonly AuditedStep[], tools: readonly string[]): ConversationDelegations {
  const decided: DecidedDelegation[] = [];
  const followUps = new Map<string, number>();
  /** Task → follow-ups that its last news knew. */
  const known = new Map<string, number>();
  for (const { event } of steps) {
    const reply = ModelDone.safeParse(event).data;
    const modelCall = /^xstate\.done\.actor\.model-(\d+)/.exec(event.type)?.[1];
    const names = new Set<string>();
    for (const { callId, name, input } of reply?.output.toolCalls ?? []) {
      const id = freshName(callId, names);
      if (!tools.includes(name)) continue;
      const { resume, tasks } = input ?? {};
      if (resume !== undefined) {
        const runs = (followUps.get(resume) ?? 0) + 1;
        followUps.set(resume, runs);
        decided.push({ task: resume, runs });
      } else if (tasks === undefined) decided.push({ task: `call-${modelCall}-${id}`, runs: 0 });
      else for (const index of tasks.keys()) decided.push({ task: `group-${modelCall}-${id}-${index}`, runs: 0 });
    }
    const ended = /^xstate\.(?:done|error)\.actor\.(.+)$/s.exec(event.type)?.[1];
    if (ended !== undefined) known.set(ended, Number.POSITIVE_INFINITY);
    const report = Report.safeParse(event).data;
    if (report !== undefined) known.set(report.childId, Math.max(known.get(report.childId) ?? 0, report.runs));
  }
  const applied = decided.filter(({ task, runs }) => (known.get(task) ?? -1) >= runs);
  return { decided: decided.length, applied: applied.length };
}

/** A call id as conversations name children by it: in their alphabet, and unlike all others of the reply. */
function freshName(callId: string, taken: Set<string>): string {
  const base = callId.replaceAll(/[^A-Za-z0-9_-]/g, "-").slice(0, 60) || "call";
  let name = base;
  for (let n = 2; taken.has(name); n += 1) name = `${base}-${n}`;
  taken.add(name);
  return name;
}
