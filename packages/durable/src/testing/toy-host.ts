// ToyHost: the smallest thing that can run actors: one macrostep per commit, in order, in one process.
//
// Owns: delivery, dispatch, clock, jobs, and the ways in which they go wrong.  Does not own: anything durable; that is all in the ToyDb.
//   T1 commit before effect   nothing of a step happens before its record is in the db
//   T2 receivers dedupe       messages carry no dedupe of their own: duplicates reach `step`
import {
  actorKey,
  parseActorKey,
  type ActorRecord,
  type Effect,
  type PlainEvent,
  type Principal,
} from "@holdfast/protocol";
import type { AnyActorLogic } from "xstate";
import {
  doneActorEvent,
  errorActorEvent,
  journalEntryOf,
  localEffectsOf,
  resolveAction,
  startVolatileHost,
  step,
  type CompiledMachine,
  type LocalEffect,
  type StepMessage,
  type VolatileHost,
} from "../index.ts";
import { allMicrotasks } from "./all-microtasks.ts";
import type { Label } from "./scenario-types.ts";
import type { Posted, ToyDb } from "./toy-db.ts";
import { compileAll } from "./toy-types.ts";

export type CrashPoint = "after-commit" | "mid-dispatch";

/** The process died; make a new host on the same db. */
export class ToyCrash extends Error {}

export interface ToyHostOptions {
  /** Makes the logic of all actor types by name; gets called once per host. */
  readonly machines: (label: Label) => Readonly<Record<string, AnyActorLogic>>;
  /** What a commit does to a record before it is kept. */
  readonly store?: (record: ActorRecord) => ActorRecord;
  readonly crashAt?: CrashPoint;
  /** Copies of every message between actors that are delivered. */
  readonly copies?: number;
  /** The second of two messages on one link is delivered first. */
  readonly swaps?: boolean;
}

export const TOY_SCHEME = { pools: { d: 4 }, shards: 2 };
const TOY_WRITER = { incarnation: "toy:00000001", epoch: 1 };
export const TOY_PRINCIPAL: Principal = { kind: "person", id: "tester", roles: [] };
export const rootKey = (type: string): string => actorKey(TOY_SCHEME, "d", type, "root");

interface Task {
  readonly owner: string;
  readonly childId: string;
  readonly src: string;
  readonly input: unknown;
}

export class ToyHost {
  readonly db: ToyDb;
  readonly #options: ToyHostOptions;
  readonly #types: ReadonlyMap<string, CompiledMachine>;
  readonly #unacked = new Map<string, readonly Effect[]>();
  readonly #timers = new Map<
    string,
    { readonly key: string; readonly timer: string; readonly gen: string; readonly dueAtMs: number }
  >();
  readonly #tasks = new Map<string, Task>();
  readonly #running = new Map<string, VolatileHost>();

  /** Takes over whatever is in the db: sends outboxes again, arms timers, has jobs to run. */
  constructor(db: ToyDb, options: ToyHostOptions) {
    this.db = db;
    this.#options = options;
    this.#types = compileAll(options.machines((label) => void db.journal.push(label)));
    for (const record of Object.values(db.records)) {
      this.#applyLocal(record, localEffectsOf(record));
      this.#dispatch(record.key, record.outbox);
    }
  }

  create(type: string, input: unknown): void {
    const key = rootKey(type);
    const genesis = this.#genesis();
    const message = {
      kind: "start",
      id: `${key}:start`,
      key,
      genesis,
      input,
      principal: TOY_PRINCIPAL,
      generation: "toy",
    } as const;
    this.db.inbox.push({ to: key, message });
  }

  /** An event from outside. */
  send(type: string, event: PlainEvent): void {
    const id = `outside-${this.db.nextSeq++}`;
    this.db.inbox.push({
      to: rootKey(type),
      message: { kind: "event", id, event, external: true, principal: TOY_PRINCIPAL },
    });
  }

  /** Delivers one message. @returns false when there is none */
  processOne(): boolean {
    const posted = this.db.inbox.shift();
    if (posted === undefined) return false;
    const { to, message } = posted;
    const compiled = this.#typeOf(to);
    const record = this.db.records[to];
    const result = step(compiled, record, message, {
      nowMs: this.db.nowMs,
      scheme: TOY_SCHEME,
      writer: TOY_WRITER,
      ...(record === undefined ? {} : { carriedOutbox: this.#unacked.get(to) ?? [] }),
    });
    if (result.kind === "dropped") {
      this.db.drops.push({ to, kind: message.kind, reason: result.reason });
      if (result.reason === "gap") this.db.inbox.push(posted); // comes again, as after a resend
      return true;
    }
    if (result.kind === "ignored") return true;
    const stored = this.#store(result.record);
    this.db.records[to] = stored; // T1
    if (this.#options.crashAt === "after-commit") throw new ToyCrash();
    this.#applyLocal(stored, result.local);
    this.#dispatch(to, stored.outbox);
    return true;
  }

  /** Runs jobs and hosts until nothing moves any more. */
  async drain(): Promise<void> {
    do {
      while (this.processOne());
    } while (await this.settleTasks());
  }

  /** Lets everything that runs in this process come to rest. @returns whether it said something */
  async settleTasks(): Promise<boolean> {
    for (const childKey of this.#tasks.keys()) this.#run(childKey);
    await allMicrotasks();
    return this.db.inbox.length > 0;
  }

  async advance(ms: number): Promise<void> {
    const endMs = this.db.nowMs + ms;
    for (let due = this.nextTimer(endMs); due !== undefined; due = this.nextTimer(endMs)) {
      this.db.nowMs = Math.max(this.db.nowMs, due.dueAtMs);
      this.fire(due);
      await this.drain();
    }
    this.db.nowMs = endMs;
  }

  nextTimer(
    endMs: number,
  ): { readonly key: string; readonly timer: string; readonly gen: string; readonly dueAtMs: number } | undefined {
    return [...this.#timers.values()]
      .filter(({ dueAtMs }) => dueAtMs <= endMs)
      .toSorted((a, b) => a.dueAtMs - b.dueAtMs)[0];
  }

  fire({ key, timer, gen }: { readonly key: string; readonly timer: string; readonly gen: string }): void {
    this.#timers.delete(`${key}|${timer}`);
    const posted: Posted = { to: key, message: { kind: "timer", timer, gen } };
    this.db.history.push(posted);
    for (let copy = 0; copy < (this.#options.copies ?? 1); copy += 1) this.db.inbox.push(posted);
  }

  /** The process ends here; its volatile children go with it. */
  die(): void {
    for (const running of this.#running.values()) running.stop();
    this.#running.clear();
  }

  #post(to: string, message: StepMessage): void {
    const posted = { to, message };
    this.db.history.push(posted);
    const { inbox } = this.db;
    const last = inbox.at(-1);
    const at =
      this.#options.swaps === true && last !== undefined && isSameLink(last, posted) ? inbox.length - 1 : inbox.length;
    for (let copy = 0; copy < (this.#options.copies ?? 1); copy += 1) inbox.splice(at, 0, posted);
  }

  #dispatch(key: string, effects: readonly Effect[]): void {
    effects.forEach((effect, index) => {
      this.#unacked.set(key, effects.slice(index));
      const id = `${key}@${effect.id}`;
      if (this.#options.crashAt === "mid-dispatch" && index > 0 && this.db.seen[`crash:${id}`] === undefined) {
        this.db.seen[`crash:${id}`] = true;
        throw new ToyCrash();
      }
      this.#apply(key, id, effect);
    });
    this.#unacked.set(key, []);
    // The extra write that clears an outbox when nothing else is to be stored. Without it every new host would send it all again.
    const record = this.db.records[key];
    if (record !== undefined && effects.length > 0) this.db.records[key] = this.#store({ ...record, outbox: [] });
  }

  #apply(key: string, id: string, effect: Effect): void {
    const record = this.db.records[key];
    if (record === undefined) return;
    const { genesis, principal } = record;
    switch (effect.kind) {
      case "start": {
        const { to, childId, sync, input } = effect;
        const parent = { key, genesis, childId, sync };
        const message = {
          kind: "start",
          id,
          key: to,
          genesis: this.#genesis(),
          parent,
          input,
          principal,
          generation: "toy",
        } as const;
        return this.#post(to, message);
      }
      case "send": {
        const { to, toGenesis, n, event } = effect;
        const more = toGenesis === undefined ? {} : { toGenesis };
        return this.#post(to, { kind: "event", id, event, from: { key, genesis, n }, external: false, ...more });
      }
      case "settled": {
        const { to, toGenesis, childId, childKey, event } = effect;
        return this.#post(to, { kind: "settled", id: `${childKey}:settled`, childId, childKey, event, toGenesis });
      }
      case "stop":
        return this.#post(effect.to, { kind: "stop", id });
      case "emit":
        if (this.#once(id) && record.parent === undefined) this.db.emitted.push(effect.event);
        return;
      case "action":
        if (this.#once(id)) resolveAction(this.#typeOf(key), record, effect)();
        return;
      case "journal":
        this.db.entries.push(journalEntryOf(record, effect, "toy"));
        if (this.#once(id)) this.db.revisions.push(`${key}@${effect.rev}`);
        return;
      case "log":
    }
  }

  #applyLocal({ key }: ActorRecord, local: readonly LocalEffect[]): void {
    for (const effect of local) {
      switch (effect.kind) {
        case "startJob":
        case "startHost":
          this.#tasks.set(effect.childKey, {
            owner: key,
            childId: effect.childId,
            src: effect.src,
            input: effect.input,
          });
          break;
        case "stopJob":
        case "stopHost":
          this.#running.get(effect.childKey)?.stop();
          this.#running.delete(effect.childKey);
          this.#tasks.delete(effect.childKey);
          break;
        case "tellHost":
          this.#run(effect.childKey)?.send(effect.event);
          break;
        case "schedule":
          this.#timers.set(`${key}|${effect.timer}`, { key, ...effect });
          break;
        case "cancel":
          this.#timers.delete(`${key}|${effect.timer}`);
      }
    }
  }

  #run(childKey: string): VolatileHost | undefined {
    const task = this.#tasks.get(childKey);
    const known = this.#running.get(childKey);
    if (task === undefined || known !== undefined) return known;
    const { owner, childId, src, input } = task;
    const record = this.db.records[owner];
    const logic = this.#typeOf(owner).children.get(src)?.logic;
    if (record === undefined || logic === undefined) return undefined;
    const deliver = (event: PlainEvent): void => {
      const { type } = event;
      if (type !== doneActorEvent(childId, 0).type && type !== errorActorEvent(childId, 0).type) {
        const id = `${childKey}-${this.db.nextSeq++}`;
        this.db.inbox.push({ to: owner, message: { kind: "event", id, event, fromHost: childKey, external: false } });
        return;
      }
      this.#tasks.delete(childKey);
      const toGenesis = record.genesis;
      this.#post(owner, { kind: "settled", id: `${childKey}:settled`, childId, childKey, event, toGenesis });
    };
    const running = startVolatileHost(logic, { id: childId, src, input, sync: false, deliver });
    this.#running.set(childKey, running);
    return running;
  }

  #store(record: ActorRecord): ActorRecord {
    return this.#options.store === undefined ? record : this.#options.store(record);
  }

  #once(id: string): boolean {
    if (this.db.seen[id] !== undefined) return false;
    this.db.seen[id] = true;
    return true;
  }

  #genesis(): string {
    return `toy:${this.db.nextSeq++}`;
  }

  #typeOf(key: string): CompiledMachine {
    const { type } = parseActorKey(key);
    const compiled = this.#types.get(type);
    if (compiled === undefined) throw new Error(`no actor type ${type}`);
    return compiled;
  }
}

function isSameLink(one: Posted, other: Posted): boolean {
  if (one.to !== other.to || one.message.kind !== "event" || other.message.kind !== "event") return false;
  return one.message.from !== undefined && one.message.from.key === other.message.from?.key;
}
