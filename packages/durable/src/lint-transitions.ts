import type { AnyStateNode } from "xstate";
import { lineage, transitionsOf, type LintedTransition, type LintFinding } from "./lint-finding.ts";

/**
 * Transitions that restart what runs in sibling regions, and delays that become part of a stored name.
 */
export function lintTransitions(node: AnyStateNode): readonly LintFinding[] {
  return [
    ...transitionsOf(node).flatMap(({ on, transition }) => [
      ...lintReenter(node, on, transition),
      ...lintIntoRegion(node, on, transition),
    ]),
    ...lintDelays(node),
  ];
}

function lintReenter(node: AnyStateNode, on: string, { reenter, target }: LintedTransition): readonly LintFinding[] {
  const region = lineage(node).find(({ parent }) => parent?.type === "parallel");
  if (!reenter || target === undefined || region === undefined) return [];
  return [
    {
      rule: "reenter-in-parallel-region",
      path: `${node.id}.${on}`,
      message: `reenter inside the region "${region.id}" also restarts invokes and timers of its sibling regions.`,
      fix: "Go through another state of the region instead, or leave out reenter.",
    },
  ];
}

function lintIntoRegion(node: AnyStateNode, on: string, { target }: LintedTransition): readonly LintFinding[] {
  return (target ?? []).flatMap((into): readonly LintFinding[] => {
    const above = lineage(into).slice(1);
    const parallel = above.find(({ type }) => type === "parallel");
    if (parallel === undefined || !lineage(parallel).includes(node)) return [];
    return [
      {
        rule: "root-transition-into-region",
        path: `${node.id}.${on}`,
        message: `A transition of "${node.id}" into one region of "${parallel.id}" resets the other regions: their invokes stop and start anew.`,
        fix: "Put the transition into the region it belongs to.",
      },
    ];
  });
}

const lintDelays = (node: AnyStateNode): readonly LintFinding[] =>
  node.after
    .filter(({ delay }) => typeof delay === "number")
    .map(({ delay }) => ({
      rule: "numeric-delay",
      path: `${node.id}.after.${String(delay)}`,
      message:
        "The number is part of the stored timer's name: with another number, actors that wait now need a reconcile to go on.",
      fix: "Name the delay: setup({ delays: { patience: 1000 } }) and after: { patience: … }.",
    }));
