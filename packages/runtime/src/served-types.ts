import { compile } from "@holdfast/durable";
import { DEFAULT_POOL } from "@holdfast/protocol";
import type { ActorDefinition } from "./actor-definition.ts";
import type { ServedType } from "./cell-host.ts";

/**
 * Compiles every actor type of a node.
 * @throws RuntimeFault HF-1003 when a machine cannot be made durable; the message names the machine and the fix
 */
export function compileTypes(definitions: readonly ActorDefinition[]): ReadonlyMap<string, ServedType> {
  const pools = new Map(definitions.map((definition) => [definition.type, definition.pool ?? DEFAULT_POOL]));
  const types = new Map<string, ServedType>();
  for (const definition of definitions) {
    const compiled = compile(definition.machine, {
      type: definition.type,
      pool: definition.pool ?? DEFAULT_POOL,
      childActor: (src) => {
        const child = definition.childActors?.[src];
        if (child === undefined) return undefined;
        return {
          type: child.type,
          pool: pools.get(child.type) ?? DEFAULT_POOL,
          ...(child.closePolicy !== undefined && { closePolicy: child.closePolicy }),
        };
      },
    });
    types.set(definition.type, { definition, compiled });
  }
  return types;
}
