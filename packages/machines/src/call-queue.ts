import { CrashPolicy } from "@holdfast/protocol";
import { z } from "zod";
import type { PlannedCall } from "./call-plan.ts";
import type { ConversationContext, StepCall } from "./conversation-context.ts";

/** A tool call that waits until another one has ended: all that is needed to start it. */
export const QueuedCall = z.object({
  callId: z.string(),
  childId: z.string(),
  name: z.string(),
  input: z.record(z.string(), z.unknown()),
  crashPolicy: CrashPolicy,
});
export type QueuedCall = Readonly<z.infer<typeof QueuedCall>>;

type Queue = Pick<ConversationContext, "agent" | "calls" | "queue">;

/** The calls of a reply that the node's tools carry out, in their order. */
export const toolCallsOf = (planned: readonly PlannedCall[]): readonly QueuedCall[] =>
  planned.flatMap(({ callId, childId, name, input, plan }) =>
    plan.kind === "local" ? [{ callId, childId, name, input, crashPolicy: plan.crashPolicy }] : [],
  );

/** Calls that may start now, oldest first: so many that no more run at once than the agent allows. */
export function startableCalls({ agent, calls, queue = [] }: Queue): readonly QueuedCall[] {
  const waiting = new Set(queue.map(({ childId }) => childId));
  const isRunning = ({ childId, kind, isOpen, doubt }: StepCall): boolean =>
    isOpen && kind === "local" && doubt === undefined && !waiting.has(childId);
  const free = (agent.limits.maxParallelTools ?? Number.POSITIVE_INFINITY) - calls.filter(isRunning).length;
  return queue.slice(0, Math.max(0, free));
}

/** The queue without the calls that have started, or that nobody waits for any more. */
export const queueWithout = ({ queue = [] }: Pick<Queue, "queue">, gone: readonly { readonly childId: string }[]) =>
  queue.filter((call) => !gone.some(({ childId }) => childId === call.childId));
