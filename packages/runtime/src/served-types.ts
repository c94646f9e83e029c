import { compile, lint, type CompiledMachine } from "@holdfast/durable";
import { DEFAULT_POOL } from "@holdfast/protocol";
import type { ActorDefinition } from "./actor-definition.ts";
import { StateMachine, type AnyActorLogic } from "xstate";
import type { ServedType } from "./cell-host.ts";
import type { Telemetry } from "./ports/index.ts";

/**
 * Compiles every actor type of a node.
 * @param homes  pools of the types that other nodes serve
 * @throws RuntimeFault HF-1003 when a machine cannot be made durable; the message names the machine and the fix
 */
export function compileTypes(
  definitions: readonly ActorDefinition[],
  homes: ReadonlyMap<string, string> = new Map(),
): ReadonlyMap<string, ServedType> {
  const own = definitions.map(({ type, pool }) => [type, pool ?? DEFAULT_POOL] as const);
  const pools = new Map([...homes, ...own]);
  const types = new Map<string, ServedType>();
  for (const definition of definitions) {
    const compileVersion = (machine: AnyActorLogic): CompiledMachine =>
      compile(machine, {
        type: definition.type,
        pool: definition.pool ?? DEFAULT_POOL,
        afterEnd: definition.afterEnd,
        childActor: (src) => {
          const child = definition.childActors?.[src];
          if (child === undefined) return undefined;
          return {
            type: child.type,
            pool: child.pool ?? pools.get(child.type) ?? DEFAULT_POOL,
            ...(child.closePolicy !== undefined && { closePolicy: child.closePolicy }),
          };
        },
      });
    const compiled = compileVersion(definition.machine);
    const versions = [...(definition.formerMachines ?? []).map(compileVersion), compiled];
    types.set(definition.type, { definition, compiled, versions });
  }
  return types;
}

/** Says what in the machines of a node tends to go wrong in a durable actor. Debug: some findings are meant as they are. */
export function reportLint(types: ReadonlyMap<string, ServedType>, telemetry: Telemetry): void {
  for (const [type, { definition }] of types) {
    if (!(definition.machine instanceof StateMachine)) continue;
    for (const { rule, path, fix } of lint(definition.machine))
      telemetry.debug("machine.lint", { type, rule, path, fix });
  }
}
