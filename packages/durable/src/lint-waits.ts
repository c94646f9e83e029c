import { IDLE_TAG } from "@holdfast/protocol";
import type { AnyStateNode } from "xstate";
import { lineage, transitionsOf, type LintFinding } from "./lint-finding.ts";

/** Built-in actions after which something may come back by itself; what `assign` and `enqueueActions` do inside is not seen. */
const MAY_WAKE = new Set([
  "xstate.spawnChild",
  "xstate.raise",
  "xstate.sendTo",
  "xstate.assign",
  "xstate.enqueueActions",
]);

/** States in which an actor can wait with nothing that would ever wake it, without its author saying that this is meant. */
export function lintWaits(node: AnyStateNode): readonly LintFinding[] {
  if (node.type !== "atomic") return [];
  const line = lineage(node);
  if (line.some(({ tags }) => tags.includes(IDLE_TAG))) return [];
  if (line.some((state) => state.invoke.length > 0 || state.after.length > 0 || state.entry.some(mayWake))) return [];
  const hasExit = line.some((state) => transitionsOf(state).length > 0);
  return [
    {
      rule: "wait-without-wake",
      path: node.id,
      message: hasExit
        ? "The state waits for a message and nothing else: if that message never comes, the actor is stuck and nobody is told."
        : "The state has no way out and is not final.",
      fix: hasExit
        ? `Give it an expiry (after), invoke what it waits for, or tag it "${IDLE_TAG}" if it may rest for ever.`
        : `Make it final, give it a transition, or tag it "${IDLE_TAG}".`,
    },
  ];
}

const mayWake = (action: unknown): boolean =>
  typeof action === "function" && "type" in action && typeof action.type === "string" && MAY_WAKE.has(action.type);
