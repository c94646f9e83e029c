import type { AnyStateMachine, AnyStateNode } from "xstate";

/** All states of a machine in document order, the root first. */
export function stateNodes(machine: AnyStateMachine): readonly AnyStateNode[] {
  const nodes: AnyStateNode[] = [];
  const visit = (node: AnyStateNode): void => {
    nodes.push(node);
    for (const state of Object.values<AnyStateNode>(node.states)) visit(state);
  };
  visit(machine.root);
  return nodes;
}
