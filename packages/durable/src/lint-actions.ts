import type { AnyStateMachine, AnyStateNode } from "xstate";
import { transitionsOf, type LintFinding } from "./lint-finding.ts";
import { isPlainObject, listOf } from "./plain-object.ts";

/** Actions and invokes of one state: logic without a name, names without logic, places nobody can look into. */
export function lintActions(machine: AnyStateMachine, node: AnyStateNode): readonly LintFinding[] {
  return [
    ...listOf(node.config.invoke).flatMap((invoke, index) => lintInvoke(machine, node, invoke, index)),
    ...actionsOf(node).flatMap(({ action, path }) => lintAction(machine, action, path)),
  ];
}

function lintInvoke(
  machine: AnyStateMachine,
  node: AnyStateNode,
  invoke: unknown,
  index: number,
): readonly LintFinding[] {
  if (!isPlainObject(invoke) || typeof invoke["src"] === "string") return [];
  const registered = new Set<unknown>(Object.values(machine.implementations.actors ?? {}));
  if (registered.has(invoke["src"])) return [];
  return [
    {
      rule: "inline-invoked-logic",
      path: `${node.id}.invoke[${index}]`,
      message:
        "The invoked logic has no name, so its place in the configuration is its name: another order runs other code after a deploy.",
      fix: "Register it in setup({ actors }) and invoke it by name.",
    },
  ];
}

const actionsOf = (node: AnyStateNode): readonly { readonly action: unknown; readonly path: string }[] => [
  ...listOf(node.config.entry).map((action, index) => ({ action, path: `${node.id}.entry[${index}]` })),
  ...listOf(node.config.exit).map((action, index) => ({ action, path: `${node.id}.exit[${index}]` })),
  ...transitionsOf(node).flatMap(({ on, transition }) =>
    transition.actions.map((action, index) => ({ action, path: `${node.id}.${on}[${index}]` })),
  ),
];

function lintAction(machine: AnyStateMachine, action: unknown, path: string): readonly LintFinding[] {
  if (typeof action !== "function") return lintNamed(machine, action, path);
  const type = "type" in action ? action.type : undefined;
  if (type === "xstate.spawnChild" && "src" in action && typeof action.src !== "string") {
    return [
      {
        rule: "inline-spawned-logic",
        path,
        message:
          "A child is spawned from logic that has no name: unless it is also registered, the actor fails when it gets here.",
        fix: "Register it in setup({ actors }) and spawn it by name.",
      },
    ];
  }
  if (type !== "xstate.enqueueActions") return [];
  return [
    {
      rule: "enqueue-actions-unseen",
      path,
      message:
        "Nobody can see what enqueueActions enqueues: an inline function in it has no name and is not run again after a crash.",
      fix: "Enqueue named actions and built-in ones only.",
    },
  ];
}

function lintNamed(machine: AnyStateMachine, action: unknown, path: string): readonly LintFinding[] {
  const name = isPlainObject(action) ? action["type"] : action;
  if (typeof name !== "string" || Object.hasOwn(machine.implementations.actions ?? {}, name)) return [];
  return [
    {
      rule: "action-without-implementation",
      path,
      message: `The action "${name}" has no implementation; XState does nothing for it, without an error.`,
      fix: "Implement it in setup({ actions }) or with machine.provide({ actions }) before it is registered.",
    },
  ];
}
