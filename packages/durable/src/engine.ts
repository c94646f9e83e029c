import type { PlainEvent, StoredSnapshot } from "@holdfast/protocol";
import type { AnyActorScope } from "xstate";
import type { ActorAddress } from "./actor-address.ts";

/** A snapshot as the engine that made it can go on from. Never changed once a step has returned it. */
export interface LiveSnapshot {
  readonly status: "active" | "done" | "error" | "stopped";
  readonly value: unknown;
  readonly context: unknown;
  readonly output?: unknown;
  readonly error?: unknown;
  readonly historyValue: Readonly<Record<string, readonly { readonly id: string }[]>>;
  readonly children: Readonly<Record<string, ActorAddress>>;
}

/** A child that a state wants to have running. */
export interface ExpectedInvoke {
  readonly id: string;
  readonly src: string;
  readonly systemId: string | undefined;
  readonly sync: boolean;
  readonly input: (context: unknown) => unknown;
}

/** What the active states of a machine rely on, by its own configuration. */
export interface Expectation {
  /** Timer name → delay in ms. */
  readonly timers: ReadonlyMap<string, (context: unknown) => unknown>;
  readonly invokes: readonly ExpectedInvoke[];
  readonly tags: ReadonlySet<string>;
}

/** What runs one kind of logic. Everything that differs between a machine and a reducer is here. */
export interface Engine {
  initial(scope: AnyActorScope, input: unknown): LiveSnapshot;
  transition(previous: LiveSnapshot, event: PlainEvent, scope: AnyActorScope): LiveSnapshot;
  /** @throws whatever the logic throws when the stored state is not one of its own */
  restore(stored: StoredSnapshot, scope: AnyActorScope): LiveSnapshot;
  /** Whether the stored state exists in this version of the logic. */
  fits(stored: StoredSnapshot): boolean;
  /** Of a stored state that fits. */
  expectation(stored: StoredSnapshot): Expectation;
}

/** Snapshot of logic that failed before it had one. */
export const failedSnapshot = (error: unknown): LiveSnapshot => ({
  status: "error",
  value: {},
  context: {},
  output: undefined,
  error,
  historyValue: {},
  children: {},
});
