import { ActorType, Pool, RuntimeFault, type MachineStamp, type PlainEvent } from "@holdfast/protocol";
import { StateMachine, type AnyActorLogic, type AnyStateMachine } from "xstate";
import { childSource, type ChildActor, type ChildSource } from "./child-sources.ts";
import { childStub } from "./child-stub.ts";
import type { Engine } from "./engine.ts";
import { LiveCache } from "./live-cache.ts";
import { machineEngine } from "./machine-engine.ts";
import { machineHash, transitionHash } from "./machine-hash.ts";
import { rewriteConfig } from "./rewrite-config.ts";
import { stateNodes } from "./state-nodes.ts";
import { transitionEngine } from "./transition-engine.ts";

/** Microsteps after which an `always` or `raise` loop counts as endless; a machine's own `options.maxIterations` wins. */
const MAX_ITERATIONS = 1000;

export interface CompileOptions {
  /** Actor type under which the logic is registered. */
  readonly type: string;
  readonly pool: string;
  /** Which child sources are actors with a record of their own. */
  childActor?(src: string): ChildActor | undefined;
  /** Context of an ended actor with what it notes of an event from outside; undefined when that is nothing. Pure. */
  readonly afterEnd?: AfterEnd | undefined;
}

export type AfterEnd = (context: unknown, event: PlainEvent) => unknown;

export type ActionImplementation = (...args: readonly unknown[]) => unknown;

/** What the process that took a step remembers of a custom action: more than its effect says. */
export interface ActionMemory {
  readonly context: unknown;
  /** Only of a function that was enqueued inline, to which no name leads back. */
  readonly run?: ActionImplementation;
}

/** Logic made ready for `step`. Immutable but for its two caches, which only ever hold what could be computed again or is lost by nature. */
export interface CompiledMachine {
  readonly type: string;
  readonly pool: string;
  readonly stamp: MachineStamp;
  readonly source: AnyActorLogic;
  readonly children: ReadonlyMap<string, ChildSource>;
  /** Implementations by the name that an `action` effect carries. */
  readonly actions: ReadonlyMap<string, ActionImplementation>;
  /** Name of logic that is passed around as an object. */
  readonly names: ReadonlyMap<unknown, string>;
  readonly engine: Engine;
  readonly afterEnd?: AfterEnd | undefined;
  /** Stored snapshot → what it was made from: a hot record is stepped without being restored. */
  readonly live: LiveCache;
  /** Action effect → what it was decided with. */
  readonly actionMemory: WeakMap<object, ActionMemory>;
}

/**
 * Makes ordinary XState v5 logic durable: a machine, or transition logic.
 * @throws RuntimeFault HF-1003 when a child source cannot survive a crash; the message names it and the fix
 */
export function compile(source: AnyActorLogic, options: CompileOptions): CompiledMachine {
  const { type, pool } = options;
  if (!ActorType.safeParse(type).success || !Pool.safeParse(pool).success) {
    throw new RuntimeFault(
      "HF-1003",
      `Actor type "${type}" in pool "${pool}": a type is a word of letters and digits, a pool a word of at most 8. Choose other names.`,
    );
  }
  if (source instanceof StateMachine) return compileMachine(source, options);
  if (source.start !== undefined) {
    throw new RuntimeFault(
      "HF-1003",
      `Actor type "${type}": expected a machine or transition logic, found logic that runs by itself. Invoke it from a machine as a child.`,
    );
  }
  return {
    ...emptyCompiled(type, pool, source),
    afterEnd: options.afterEnd,
    stamp: { id: type, version: "0", hash: transitionHash(type) },
    children: new Map(),
    actions: new Map(),
    names: new Map(),
    engine: transitionEngine(source),
  };
}

function compileMachine(machine: AnyStateMachine, options: CompileOptions): CompiledMachine {
  const rewritten = rewriteConfig(machine);
  const { implementations } = machine;
  const logic = new Map([...registeredLogic(machine), ...rewritten.logic]);
  const children = new Map<string, ChildSource>();
  for (const src of new Set([...logic.keys(), ...rewritten.mentioned])) {
    children.set(src, childSource(machine.id, src, logic.get(src), options.childActor?.(src)));
  }
  const actions = { ...functionsOf(implementations.actions), ...Object.fromEntries(rewritten.actions) };
  const config = { ...rewritten.config, options: { maxIterations: MAX_ITERATIONS, ...machine.config.options } };
  const stubs = Object.fromEntries([...children.keys()].map((src) => [src, childStub]));
  checkIds(machine);
  const twin = new StateMachine(config, { ...implementations, actions, actors: stubs });
  return {
    ...emptyCompiled(options.type, options.pool, machine),
    afterEnd: options.afterEnd,
    stamp: { id: machine.id, version: machine.version ?? "0", hash: machineHash(twin) },
    children,
    actions: new Map(Object.entries(actions)),
    names: new Map([...logic].map(([name, child]) => [child, name])),
    engine: machineEngine(twin),
  };
}

/** Child logic of a machine by name. XState also allows `{ src, input }` there, an old form that `setup` does not make. */
function registeredLogic(machine: AnyStateMachine): readonly (readonly [string, AnyActorLogic])[] {
  return Object.entries(machine.implementations.actors ?? {}).map(([name, actor]) => [
    name,
    "transition" in actor ? actor : actor.src,
  ]);
}

/** The members of a record that are functions. An action implementation is never anything else. */
const functionsOf = (implementations: object | undefined): Readonly<Record<string, ActionImplementation>> =>
  Object.fromEntries(
    Object.entries(implementations ?? {}).filter(
      (entry): entry is [string, ActionImplementation] => typeof entry[1] === "function",
    ),
  );

/** Event types are made of state and invoke ids, and an event type has at most 256 characters. */
const MAX_ID = 200;

function checkIds(machine: AnyStateMachine): void {
  for (const { id } of stateNodes(machine)) {
    if (id.length <= MAX_ID) continue;
    throw new RuntimeFault(
      "HF-1003",
      `Machine "${machine.id}": state id "${id}" is longer than ${MAX_ID} characters. Give the state a shorter id.`,
    );
  }
}

const emptyCompiled = (
  type: string,
  pool: string,
  source: AnyActorLogic,
): Pick<CompiledMachine, "type" | "pool" | "source" | "live" | "actionMemory"> => ({
  type,
  pool,
  source,
  live: new LiveCache(),
  actionMemory: new WeakMap(),
});
