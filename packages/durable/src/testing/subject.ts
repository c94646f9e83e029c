import type {
  ActorRecord,
  ChildEntry,
  Effect,
  JournalEntry,
  ParentLink,
  PlainEvent,
  Principal,
} from "@holdfast/protocol";
import type { AnyActorLogic } from "xstate";
import {
  compile,
  doneActorEvent,
  errorActorEvent,
  journalEntryOf,
  step,
  type ChildActor,
  type CompiledMachine,
  type EventMessage,
  type AfterEnd,
  type LocalEffect,
  type StepEnv,
  type StepMessage,
  type StepResult,
} from "../index.ts";
import { deepFreeze } from "./deep-freeze.ts";
import { roundTrip } from "./round-trip.ts";

export const SCHEME = { pools: { d: 1, gpu: 1 }, shards: 1 };
export const PERSON: Principal = { kind: "person", id: "ann", roles: [] };
export const KEY = "d-0.subject.one";
export const GENESIS = "g:1";
export const PARENT: ParentLink = { key: "d-0.boss.b", genesis: "g:9", childId: "kid", sync: false };

export interface SubjectOptions {
  /** Child sources that are actors. */
  readonly actors?: Readonly<Record<string, Partial<ChildActor>>>;
  readonly parent?: ParentLink;
  /** Every step starts from bytes. */
  readonly cold?: boolean;
  readonly limits?: StepEnv["hardLimits"];
  readonly afterEnd?: AfterEnd;
}

/** One actor, stepped by hand. What is stepped is committed, frozen, with its outbox considered sent. */
export class Subject {
  readonly compiled: CompiledMachine;
  nowMs = 1000;
  /** What the last step did besides the record. */
  local: readonly LocalEffect[] = [];
  /** Its journal. */
  readonly entries: JournalEntry[] = [];
  #record: ActorRecord | undefined;
  #messages = 0;
  readonly #options: SubjectOptions;

  constructor(logic: AnyActorLogic, options: SubjectOptions = {}) {
    this.#options = options;
    this.compiled = compile(logic, {
      type: "subject",
      pool: "d",
      afterEnd: options.afterEnd,
      childActor: (src) => {
        const actor = options.actors?.[src];
        return actor === undefined ? undefined : { type: src, pool: "d", ...actor };
      },
    });
  }

  /** The committed record. @throws when the actor was not started */
  get record(): ActorRecord {
    if (this.#record === undefined) throw new Error("the subject was not started");
    return this.#record;
  }

  set record(record: ActorRecord) {
    this.#record = record;
  }

  get effects(): readonly Effect[] {
    return this.record.outbox;
  }

  get env(): StepEnv {
    const { limits } = this.#options;
    return {
      nowMs: this.nowMs,
      scheme: SCHEME,
      carriedOutbox: [],
      ...(limits === undefined ? {} : { hardLimits: limits }),
    };
  }

  start(input?: unknown): this {
    const { parent } = this.#options;
    const more = parent === undefined ? {} : { parent };
    const identity = { key: KEY, genesis: GENESIS, principal: PERSON, generation: "g" };
    this.apply({ kind: "start", id: "start-1", ...identity, ...more, ...(input === undefined ? {} : { input }) });
    return this;
  }

  /** Steps without committing. */
  try(message: StepMessage, env: StepEnv = this.env): StepResult {
    return step(this.compiled, this.#record, message, env);
  }

  apply(message: StepMessage, env: StepEnv = this.env): StepResult {
    const result = this.try(message, env);
    if (result.kind === "stepped") this.commit(result);
    return result;
  }

  commit(result: Extract<StepResult, { kind: "stepped" }>): void {
    this.#record = deepFreeze(this.#options.cold === true ? roundTrip(result.record) : result.record);
    this.local = result.local;
    const last = result.record.outbox.at(-1);
    if (last?.kind === "journal") this.entries.push(journalEntryOf(result.record, last, "test"));
  }

  /** From outside. */
  send(event: PlainEvent | string, id = `m-${++this.#messages}`): StepResult {
    return this.apply({ kind: "event", id, event: eventOf(event), external: true, principal: PERSON });
  }

  /** From another actor. */
  hear(
    from: NonNullable<EventMessage["from"]>,
    event: PlainEvent | string,
    more: Partial<EventMessage> = {},
  ): StepResult {
    return this.apply({
      kind: "event",
      id: `${from.key}-${from.n}`,
      event: eventOf(event),
      from,
      external: false,
      ...more,
    });
  }

  settle(childId: string, output: unknown, childKey: string = this.child(childId).key): StepResult {
    const event = doneActorEvent(childId, output);
    return this.apply({ kind: "settled", id: `${childKey}:settled`, childId, childKey, event, toGenesis: GENESIS });
  }

  fail(childId: string, error: unknown, childKey: string = this.child(childId).key): StepResult {
    const event = errorActorEvent(childId, error);
    return this.apply({ kind: "settled", id: `${childKey}:settled`, childId, childKey, event, toGenesis: GENESIS });
  }

  fire(timer: string, gen = this.record.timers[timer]?.gen ?? "none"): StepResult {
    return this.apply({ kind: "timer", timer, gen });
  }

  stop(): StepResult {
    return this.apply({ kind: "stop", id: "stop-1" });
  }

  child(id: string): ChildEntry {
    const child = this.record.snapshot.children[id];
    if (child === undefined) throw new Error(`no child ${id}`);
    return child;
  }

  effectsOf<K extends Effect["kind"]>(kind: K): readonly Extract<Effect, { kind: K }>[] {
    return this.effects.filter((effect): effect is Extract<Effect, { kind: K }> => effect.kind === kind);
  }

  /** Kinds of the last step's effects in order, e.g. `start stop journal`. */
  get kinds(): string {
    return this.effects.map(({ kind }) => kind).join(" ");
  }
}

const eventOf = (event: PlainEvent | string): PlainEvent => (typeof event === "string" ? { type: event } : event);
