import { StateMachine, type AnyActorLogic } from "xstate";
import { compile, type CompiledMachine } from "../index.ts";

/** Every machine and every transition logic becomes an actor type of its name. */
export function compileAll(machines: Readonly<Record<string, AnyActorLogic>>): ReadonlyMap<string, CompiledMachine> {
  const childActor = (src: string) => (needsRecord(machines[src]) ? { type: src, pool: "d" } : undefined);
  return new Map(
    Object.entries(machines)
      .filter(([, logic]) => needsRecord(logic))
      .map(([type, logic]) => [type, compile(logic, { type, pool: "d", childActor })]),
  );
}

const needsRecord = (logic: AnyActorLogic | undefined): boolean =>
  logic !== undefined && (logic instanceof StateMachine || logic.start === undefined);
