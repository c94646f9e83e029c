import type { AnyEventObject } from "xstate";

/** What a scenario machine calls so that the order of what ran can be compared. */
export type Label = (label: string) => void;

/** Types of a scenario machine: its context, any event, any input. */
export interface ScenarioTypes<C> {
  readonly context?: C;
  readonly events?: AnyEventObject;
  readonly input?: Record<string, unknown>;
}

export const typesOf = <C>(types: ScenarioTypes<C>): ScenarioTypes<C> => types;
