import type { AnyStateNode } from "xstate";

export type LintRule =
  | "inline-spawned-logic"
  | "inline-invoked-logic"
  | "function-in-context"
  | "reenter-in-parallel-region"
  | "root-transition-into-region"
  | "wait-without-wake"
  | "numeric-delay"
  | "enqueue-actions-unseen"
  | "action-without-implementation";

export interface LintFinding {
  readonly rule: LintRule;
  /** Place in the machine: state id, then what is in it. */
  readonly path: string;
  readonly message: string;
  readonly fix: string;
}

/** Node and all above it, nearest first. */
export function lineage(node: AnyStateNode): readonly AnyStateNode[] {
  const line: AnyStateNode[] = [];
  for (let at: AnyStateNode | undefined = node; at !== undefined; at = at.parent) line.push(at);
  return line;
}

/** Transitions of a node with the event that takes them. */
export const transitionsOf = (
  node: AnyStateNode,
): readonly { readonly on: string; readonly transition: LintedTransition }[] => [
  ...[...node.transitions].flatMap(([on, list]) => list.map((transition) => ({ on, transition }))),
  ...(node.always ?? []).map((transition) => ({ on: "always", transition })),
];

export interface LintedTransition {
  readonly target?: readonly AnyStateNode[] | undefined;
  readonly actions: readonly unknown[];
  readonly reenter: boolean;
}
