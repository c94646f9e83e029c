// EffectWriter: turns the decisions of one step into effects with ids, and into what the node does itself.
//   E1 deterministic  `<rev>#<index>` in the order of writing: same decision, same id
//   E2 dense          every plain send to an actor takes the next counter of its link
//   E4 bounded        what is too large for a record is named by reference, in every effect the same one
//   E3 storable       only what the schema of a record allows is written; anything else becomes a visible log entry, never a stuck record
import {
  BLOB_THRESHOLD_BYTES,
  CHILD_INPUT_LIMIT_BYTES,
  type ActorRecord,
  type BlobFields,
  type Effect,
  type EffectOf,
  type PlainEvent,
} from "@holdfast/protocol";
import { isPlainObject } from "./plain-object.ts";
import type { ChildPlan, StoppedChild } from "./child-plan.ts";
import type { ActionImplementation, CompiledMachine } from "./compile.ts";
import { keepEvent, type KeepOutside } from "./kept-outside.ts";
import { linkKey, type OutgoingLinks } from "./links.ts";
import { DELIVER_EVENT, isReserved, LINK_CLOSED_EVENT, RELAY_EVENT } from "./reserved-events.ts";
import { routeTo, type Route, type Surroundings } from "./routes.ts";
import type { Decision, Spawned } from "./step-scope.ts";
import { SYSTEM_KEY_PREFIX } from "./step-system.ts";
import type { LocalEffect } from "./step-types.ts";
import type { TimerTable } from "./timers.ts";

type DecisionOf<K extends Decision["kind"]> = Extract<Decision, { kind: K }>;
type WithoutId<T> = T extends unknown ? Omit<T, "id"> : never;

export interface EffectWriterOptions {
  readonly compiled: CompiledMachine;
  readonly record: ActorRecord;
  readonly rev: number;
  readonly nowMs: number;
  readonly surroundings: Surroundings;
  readonly plan: ChildPlan;
  readonly links: OutgoingLinks;
  readonly timers: TimerTable;
  readonly outside: KeepOutside | undefined;
  /** Context that is being committed. */
  readonly context: unknown;
}

export class EffectWriter {
  readonly effects: Effect[] = [];
  readonly local: LocalEffect[] = [];
  readonly #options: EffectWriterOptions;

  constructor(options: EffectWriterOptions) {
    this.#options = options;
  }

  start({ kind, key, id, src, sync, input, blobs }: Spawned): void {
    if (kind === "actor") {
      const { record, nowMs } = this.#options;
      const { principal } = record;
      const withInput = blobs !== undefined ? { blobs } : input === undefined ? {} : { input };
      this.#put({ kind: "start", to: key, childId: id, sync, principal, atMs: nowMs, ...withInput });
      return;
    }
    this.local.push({ kind: kind === "job" ? "startJob" : "startHost", childKey: key, childId: id, src, input });
  }

  stop({ key, kind }: StoppedChild): void {
    if (kind === "actor") this.#put({ kind: "stop", to: key });
    else this.local.push({ kind: kind === "job" ? "stopJob" : "stopHost", childKey: key });
  }

  write(decision: Decision): void {
    switch (decision.kind) {
      case "send":
        return this.#send(decision);
      case "schedule":
        return this.#schedule(decision);
      case "cancel":
        return this.#options.timers.cancel(decision.timer);
      case "stop": {
        const child = this.#options.plan.stopping.get(decision.ref);
        return child === undefined ? undefined : this.stop(child);
      }
      case "emit":
        return this.#emit(decision.event);
      case "log":
        return this.#log(typeof decision.label === "string" ? decision.label : undefined, decision.value);
      case "action":
        return this.#action(decision);
    }
  }

  /** A send that the interpreter itself makes; its event may be reserved. */
  sendTo(route: Extract<Route, { kind: "actor" }>, event: PlainEvent): void {
    const { key: to, genesis: toGenesis } = route;
    const n = this.#options.links.next(to, toGenesis); // E2
    this.#put({ kind: "send", to, n, event, ...(toGenesis === undefined ? {} : { toGenesis }) });
  }

  /** Tells every actor that is neither parent nor child that nothing more will come. */
  closeLinks(): void {
    const { record, links, surroundings } = this.#options;
    const kin = new Set<string>([linkKey(record.key, record.genesis)]);
    if (record.parent !== undefined) kin.add(linkKey(record.parent.key, record.parent.genesis));
    for (const child of Object.values(surroundings.before)) kin.add(child.key);
    for (const child of surroundings.spawned) kin.add(child.key);
    for (const link of Object.keys(links.counters)) {
      if (kin.has(link)) continue;
      const [key = "", genesis] = link.split("^");
      this.sendTo({ kind: "actor", key, genesis, relation: "foreign" }, { type: LINK_CLOSED_EVENT });
    }
  }

  /** @param blobs fields of the event that are kept outside */
  settled(event: PlainEvent, blobs: BlobFields | undefined): Effect | undefined {
    const { parent, key } = this.#options.record;
    if (parent === undefined) return undefined;
    return this.#put({
      kind: "settled",
      to: parent.key,
      toGenesis: parent.genesis,
      childId: parent.childId,
      childKey: key,
      event,
      ...(blobs === undefined ? {} : { blobs }),
    });
  }

  /** Always the last one: it names all others. */
  journal(entry: Omit<EffectOf<"journal">, "kind" | "id" | "rev" | "prevRev" | "effects" | "atMs">): void {
    const { record, rev, nowMs } = this.#options;
    const effects = this.effects.map(({ id }) => id);
    this.#put({ kind: "journal", rev, prevRev: record.rev, ...entry, effects, atMs: nowMs });
  }

  #emit(event: unknown): void {
    if (isEvent(event)) this.#put({ kind: "emit", event, atMs: this.#options.nowMs });
    else this.refuse("emit", NOT_AN_EVENT);
  }

  #send({ target, event }: DecisionOf<"send">): void {
    const { to } = target;
    if (typeof to === "object" && to !== null && this.#options.plan.skipped.has(to)) return;
    const type = eventType(event);
    if (!isEvent(event)) return this.refuse("send", NOT_AN_EVENT);
    if (isReserved(type)) return this.refuse("send", `HF-1004: events of type "${type}" cannot be sent`);
    const route = routeTo(to, this.#options.surroundings);
    switch (route.kind) {
      case "actor":
        return this.sendTo(route, event);
      case "host":
        this.local.push({ kind: "tellHost", childKey: route.key, event });
        return;
      case "system":
        return this.relay(route.systemId, event);
      case "nowhere":
        return this.refuse(`send ${type}`, route.reason);
    }
  }

  /** Hands an event for an unknown systemId up to the parent, who may know it. */
  relay(systemId: string, event: PlainEvent): void {
    const { parent } = this.#options.record;
    if (parent === undefined) return this.refuse(`send ${event.type}`, `no actor has the systemId "${systemId}"`);
    const route = { kind: "actor", key: parent.key, genesis: parent.genesis, relation: "parent" } as const;
    this.sendTo(route, { type: RELAY_EVENT, systemId, event });
  }

  #schedule({ timer, gen, delayMs, target, event }: DecisionOf<"schedule">): void {
    const { record, nowMs, surroundings, plan, timers } = this.#options;
    const { to } = target;
    if (typeof to === "object" && to !== null && plan.skipped.has(to)) return;
    const route = routeTo(to, surroundings);
    if (!isEvent(event)) return this.refuse(`timer ${timer}`, NOT_AN_EVENT);
    if (route.kind === "nowhere") return this.refuse(`timer ${timer}`, route.reason);
    const dueAtMs = nowMs + Math.max(0, delayMs);
    if (route.kind === "actor") {
      const { key, genesis } = route;
      return timers.arm(timer, {
        gen,
        dueAtMs,
        to: key,
        event,
        ...(genesis === undefined ? {} : { toGenesis: genesis }),
      });
    }
    // Jobs, hosts and systemIds are no addresses of an inbox: the timer comes back here and is delivered then.
    const deliver = {
      type: DELIVER_EVENT,
      to: route.kind === "host" ? route.key : SYSTEM_KEY_PREFIX + route.systemId,
      event,
    };
    timers.arm(timer, { gen, dueAtMs, to: record.key, toGenesis: record.genesis, event: deliver });
  }

  #action({ name, params, event, context, exec }: DecisionOf<"action">): void {
    const { compiled } = this.#options;
    if (!isEvent(event)) return this.refuse(`action ${name}`, NOT_AN_EVENT);
    const isNamed = typeof exec !== "function" || compiled.actions.has(name);
    const effect = this.#put({
      kind: "action",
      name: isNamed ? name : VOLATILE_PREFIX + name,
      event,
      ...(params === undefined ? {} : { params }),
      ...(context === this.#options.context ? {} : { context }),
    });
    const run: ActionImplementation | undefined = isNamed
      ? undefined
      : (...args) => Reflect.apply(exec, undefined, args);
    compiled.actionMemory.set(effect, { context, ...(run === undefined ? {} : { run }) });
  }

  #log(label: string | undefined, value: unknown): void {
    this.#put({ kind: "log", value, ...(label === undefined ? {} : { label }) });
  }

  /** A visible note that something was asked for and not done. */
  refuse(what: string, reason: string): void {
    this.#log("holdfast.refused", { what, reason });
  }

  #put(effect: WithoutId<Effect>): Effect {
    const stored: Effect = { id: `${this.#options.rev}#${this.effects.length}`, ...this.#bounded(effect) }; // E1
    this.effects.push(stored);
    return stored;
  }

  /** E4. */
  #bounded(effect: WithoutId<Effect>): WithoutId<Effect> {
    const { outside, record } = this.#options;
    if (outside === undefined) return effect;
    switch (effect.kind) {
      case "start": // its input is the child's (withInputsOutside)
      case "stop":
        return effect;
      case "log": {
        const blobs = outside({ value: effect.value }, BLOB_THRESHOLD_BYTES);
        return blobs === undefined ? effect : { ...effect, value: undefined, blobs };
      }
      case "action": {
        const { event, params } = effect;
        const blobs = outside({ event, params }, BLOB_THRESHOLD_BYTES);
        if (blobs === undefined) return effect;
        return {
          ...effect,
          event: blobs["event"] === undefined ? event : { type: event.type },
          params: blobs["params"] === undefined ? params : undefined,
          blobs,
        };
      }
      case "send":
      case "settled":
      case "emit":
        return this.#withBoundedEvent(effect, BLOB_THRESHOLD_BYTES);
      case "journal": {
        const isChildInput = effect.cause.kind === "start" && record.parent !== undefined;
        return this.#withBoundedEvent(effect, isChildInput ? CHILD_INPUT_LIMIT_BYTES : BLOB_THRESHOLD_BYTES);
      }
    }
  }

  #withBoundedEvent<T extends { readonly event: PlainEvent; readonly blobs?: BlobFields | undefined }>(
    effect: T,
    limitBytes: number,
  ): T {
    const { rest, blobs } = keepEvent(effect.event, this.#options.outside, limitBytes);
    return blobs === undefined ? effect : { ...effect, event: rest, blobs: { ...effect.blobs, ...blobs } };
  }
}

/** Begins the name of an action that was enqueued as an inline function and is lost with the process. */
export const VOLATILE_PREFIX = "volatile:";
const MAX_EVENT_TYPE = 256;
const NOT_AN_EVENT = "it is not an event: expected an object with a `type` of 1 to 256 characters";

const eventType = (event: unknown): string =>
  isPlainObject(event) && typeof event["type"] === "string" ? event["type"] : "";

function isEvent(event: unknown): event is PlainEvent {
  const { length } = eventType(event);
  return length > 0 && length <= MAX_EVENT_TYPE;
}
