import { StateMachine, type AnyActorLogic, type AnyStateMachine, type AnyStateNode } from "xstate";
import { lintActions } from "./lint-actions.ts";
import { lintContext } from "./lint-context.ts";
import type { LintFinding } from "./lint-finding.ts";
import { lintTransitions } from "./lint-transitions.ts";
import { lintWaits } from "./lint-waits.ts";
import { stateNodes } from "./state-nodes.ts";

export type { LintFinding, LintRule } from "./lint-finding.ts";

/**
 * What in a machine will hurt once its actors live long, crash, or are deployed over. Findings are advice: `compile` alone refuses.
 * Not seen: what happens inside functions, such as `spawn(logic)` in an assign, or time and randomness in an expression.
 *
 * @returns findings in the order of the states; empty for transition logic
 */
export function lint(machine: AnyActorLogic): readonly LintFinding[] {
  if (!(machine instanceof StateMachine)) return [];
  return [...lintContext(machine), ...stateNodes(machine).flatMap((node) => lintNode(machine, node))];
}

const lintNode = (machine: AnyStateMachine, node: AnyStateNode): readonly LintFinding[] => [
  ...lintActions(machine, node),
  ...lintTransitions(node),
  ...lintWaits(node),
];
