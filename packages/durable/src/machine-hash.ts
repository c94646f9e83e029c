import { sha256Hex } from "@holdfast/protocol";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import type { AnyStateMachine, AnyStateNode } from "xstate";
import { canonicalJson } from "./canonical-json.ts";
import { isPlainObject } from "./plain-object.ts";

/**
 * SHA-256 of what decides whether a stored state fits: states, transitions, and the names of guards, actions, delays and child sources.
 * Functions are left out, so a new build of the same machine has the same hash.
 */
export function machineHash(machine: AnyStateMachine): string {
  return sha256Hex(utf8ToBytes(canonicalJson(nodeShape(machine.root))));
}

/** Hash of logic without structure: its type is all there is. */
export const transitionHash = (type: string): string => sha256Hex(utf8ToBytes(canonicalJson({ transition: type })));

function nodeShape(node: AnyStateNode): unknown {
  return {
    id: node.id,
    type: node.type,
    history: node.history,
    tags: node.tags,
    initial: node.type === "compound" ? transitionShape(node.initial) : undefined,
    entry: node.entry.map(actionName),
    exit: node.exit.map(actionName),
    on: Object.fromEntries([...node.transitions].map(([event, list]) => [event, list.map(transitionShape)])),
    always: node.always?.map(transitionShape),
    after: node.after.map(({ delay }) => nameOr(delay, String(delay))),
    invoke: node.invoke.map(({ id, src, systemId, onSnapshot }) => ({
      id,
      src,
      systemId,
      sync: onSnapshot !== undefined,
    })),
    states: Object.fromEntries(
      Object.entries<AnyStateNode>(node.states).map(([key, state]) => [key, nodeShape(state)]),
    ),
  };
}

interface Transition {
  readonly target?: readonly AnyStateNode[] | undefined;
  readonly actions: readonly unknown[];
  readonly guard?: unknown;
  readonly reenter?: boolean;
}

function transitionShape({ target, actions, guard, reenter }: Transition): unknown {
  return {
    target: target?.map(({ id }) => id),
    actions: actions.map(actionName),
    guard: guard === undefined ? undefined : guardName(guard),
    reenter: reenter === true,
  };
}

function actionName(action: unknown): string {
  if (typeof action === "function" && "type" in action && typeof action.type === "string") return action.type;
  return nameOr(action, "inline");
}

function guardName(guard: unknown): string {
  if (typeof guard !== "function") return nameOr(guard, "inline");
  const parts: unknown = "guards" in guard ? guard.guards : undefined;
  return Array.isArray(parts) ? `(${parts.map(guardName).join()})` : "inline";
}

function nameOr(value: unknown, otherwise: string): string {
  if (typeof value === "string") return value;
  return isPlainObject(value) && typeof value["type"] === "string" ? value["type"] : otherwise;
}
