import type { AnyActorLogic, AnyStateMachine } from "xstate";
import { isPlainObject, listOf } from "./plain-object.ts";

type Plain = Readonly<Record<string, unknown>>;
type Named = (...args: readonly unknown[]) => unknown;

/** A machine's configuration in which everything that may have to be found again after a crash has a name. */
export interface RewrittenConfig {
  readonly config: Plain;
  /** Inline actions under their stable positional names. */
  readonly actions: ReadonlyMap<string, Named>;
  /** Inline invoked logic under its stable positional name. */
  readonly logic: ReadonlyMap<string, AnyActorLogic>;
  /** Names of child logic that the configuration mentions. */
  readonly mentioned: ReadonlySet<string>;
}

/**
 * Gives inline actions and inline invoked logic names by their place: `inline:<state path>.<slot>[<index>]`.
 * Functions enqueued inside `enqueueActions` do not appear in a configuration and cannot be named.
 */
export function rewriteConfig(machine: AnyStateMachine): RewrittenConfig {
  const actions = new Map<string, Named>();
  const logic = new Map<string, AnyActorLogic>();
  const mentioned = new Set<string>();
  const registered = new Map<unknown, string>(
    Object.entries(machine.implementations.actors ?? {}).map(([name, actor]) => [actor, name]),
  );

  const action = (candidate: unknown, at: string): unknown => {
    if (typeof candidate !== "function") return candidate;
    if ("resolve" in candidate) {
      // A built-in action. Of those only spawnChild mentions logic by name.
      if ("src" in candidate && typeof candidate.src === "string") mentioned.add(candidate.src);
      return candidate;
    }
    const name = `inline:${at}`;
    actions.set(name, (...args) => Reflect.apply(candidate, undefined, args));
    return name;
  };
  const actionList = (list: unknown, at: string): unknown =>
    list === undefined ? undefined : listOf(list).map((item, index) => action(item, `${at}[${index}]`));

  const transitions = (list: unknown, at: string): unknown => {
    if (list === undefined) return undefined;
    return listOf(list).map((item, index) => {
      if (!isPlainObject(item)) return { target: item };
      return item["actions"] === undefined ? item : { ...item, actions: actionList(item["actions"], `${at}#${index}`) };
    });
  };
  const transitionMap = (map: unknown, at: string): unknown =>
    isPlainObject(map) ? mapValues(map, (list, key) => transitions(list, `${at}.${key}`)) : map;

  const invoke = (candidate: unknown, index: number, at: string): unknown => {
    if (!isPlainObject(candidate)) return candidate;
    const { src, id } = candidate;
    let name = typeof src === "string" ? src : registered.get(src);
    if (name === undefined) {
      name = `inline:${at}.invoke[${typeof id === "string" ? id : index}]`;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- XState's own type of `src`: a name or logic
      logic.set(name, src as AnyActorLogic);
    }
    mentioned.add(name);
    const slot = `${at}.invoke[${index}]`;
    return withoutUndefined({
      ...candidate,
      src: name,
      onDone: transitions(candidate["onDone"], `${slot}.onDone`),
      onError: transitions(candidate["onError"], `${slot}.onError`),
      onSnapshot: transitions(candidate["onSnapshot"], `${slot}.onSnapshot`),
    });
  };

  const node = (config: Plain, at: string): Plain => {
    const { initial, states } = config;
    return withoutUndefined({
      ...config,
      entry: actionList(config["entry"], `${at}.entry`),
      exit: actionList(config["exit"], `${at}.exit`),
      on: transitionMap(config["on"], `${at}.on`),
      after: transitionMap(config["after"], `${at}.after`),
      always: transitions(config["always"], `${at}.always`),
      onDone: transitions(config["onDone"], `${at}.onDone`),
      route: isPlainObject(config["route"]) ? transition(config["route"], `${at}.route`) : config["route"],
      initial: isPlainObject(initial)
        ? { ...initial, actions: actionList(initial["actions"], `${at}.initial`) }
        : initial,
      invoke: listOf(config["invoke"]).map((item, index) => invoke(item, index, at)),
      states: isPlainObject(states)
        ? mapValues(states, (state, key) => (isPlainObject(state) ? node(state, `${at}.${key}`) : state))
        : states,
    });
  };
  const transition = (item: Plain, at: string): unknown =>
    item["actions"] === undefined ? item : { ...item, actions: actionList(item["actions"], at) };

  const config = node(machine.config, machine.id);
  return { config, actions, logic, mentioned };
}

const mapValues = (map: Plain, each: (value: unknown, key: string) => unknown): Plain =>
  Object.fromEntries(Object.entries(map).map(([key, value]) => [key, each(value, key)]));

/** XState reads `key in config` in places, so a missing key must stay missing. A forbidden event (`on: { X: undefined }`) is kept. */
const withoutUndefined = (config: Plain): Plain =>
  Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
