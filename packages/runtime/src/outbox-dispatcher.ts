import type { Effect } from "@holdfast/protocol";
import type { PublishOutcome } from "./ports/index.ts";

/** Sends one lane's next entry (or several journal entries at once). `dropped`: never to be sent, the caller has seen to it. */
export type SendEffects = (effects: readonly Effect[]) => Promise<PublishOutcome | { readonly kind: "dropped" }>;

export interface OutboxDispatcherOptions {
  readonly send: SendEffects;
  /** @returns a promise that resolves after the delay, or rejects when the dispatcher was stopped */
  readonly pause: (ms: number) => Promise<void>;
  readonly acked: () => void;
  /** Calls back after the time that a journal entry may wait for others. @returns cancels it. Absent: it does not wait */
  readonly linger?: (flush: () => void) => () => void;
  readonly failing: (effect: Effect, reason: string, tries: number) => void;
}

interface Entry {
  readonly effect: Effect;
  readonly lane: string;
}

const MAX_JOURNAL_BATCH = 32;
/** Journal entries that leave without waiting for more: while they wait, every commit stores them again. */
const FULL_JOURNAL_BATCH = 3;

/**
 * Sends the outbox of one actor.
 *
 * Owns: which entries are unacknowledged, and their order. Does not own: the record (the next commit stores `unacked`).
 *   O1 per target one entry in flight, in order, cleared as a prefix (F3)
 *   O2 `start` entries are acknowledged before any other entry of their commit or of later ones leaves (F17)
 *   O3 an entry stays until it is acknowledged; the next commit carries it (F4)
 *   O4 waiting journal entries share one message
 *   O5 a journal entry lingers for others only while nothing else waits and nobody waits for it
 */
export class OutboxDispatcher {
  readonly #options: OutboxDispatcherOptions;
  #entries: Entry[] = [];
  readonly #busyLanes = new Set<string>();
  #stopped = false;
  #life = 0;
  #cancelLinger: (() => void) | undefined;
  #lingered = false;
  #waiters: { readonly rev: number; readonly resolve: () => void }[] = [];

  constructor(options: OutboxDispatcherOptions) {
    this.#options = options;
  }

  /** What the next commit must carry, oldest first (O3). */
  get unacked(): readonly Effect[] {
    return this.#entries.length === 0 ? NONE : this.#entries.map((entry) => entry.effect);
  }

  get size(): number {
    return this.#entries.length;
  }

  /** Takes the new effects of a commit, or the whole outbox of a loaded record. */
  add(effects: readonly Effect[]): void {
    for (const effect of effects) this.#entries.push({ effect, lane: laneOf(effect) });
    this.#pump();
  }

  /** Everything decided up to `rev` is in the journal; jobs of that commit may start. */
  whenJournaled(rev: number): Promise<void> {
    if (!this.#hasJournalUpTo(rev)) return Promise.resolve();
    const journaled = new Promise<void>((resolve) => this.#waiters.push({ rev, resolve }));
    this.#pump();
    return journaled;
  }

  /** Forgets everything: the copy in memory was dropped. What is on its way is on its way; its receivers dedupe. */
  reset(): void {
    this.#life += 1;
    this.#entries = [];
    this.#endLinger();
    this.#busyLanes.clear();
    for (const waiter of this.#waiters.splice(0)) waiter.resolve();
  }

  stop(): void {
    this.#stopped = true;
    this.reset();
  }

  #hasJournalUpTo(rev: number): boolean {
    return this.#entries.some(({ effect }) => effect.kind === "journal" && effect.rev <= rev);
  }

  #pump(): void {
    if (this.#stopped) return;
    let startsPending = false;
    for (const entry of this.#entries) {
      const isStart = entry.effect.kind === "start";
      if (startsPending && !isStart) return; // O2
      if (isStart) startsPending = true;
      if (this.#busyLanes.has(entry.lane)) continue; // O1: the first of a lane makes it busy at once
      if (entry.lane === JOURNAL_LANE && this.#mayLinger()) this.#startLinger();
      else void this.#run(entry);
    }
  }

  /** O5: nobody waits for these entries, and the next macrostep may be on its way. */
  #mayLinger(): boolean {
    if (this.#options.linger === undefined || this.#lingered || this.#waiters.length > 0) return false;
    return this.#entries.length < FULL_JOURNAL_BATCH && this.#entries.every(({ lane }) => lane === JOURNAL_LANE);
  }

  #startLinger(): void {
    this.#cancelLinger ??= this.#options.linger?.(() => {
      this.#cancelLinger = undefined;
      this.#lingered = true;
      this.#pump();
      this.#lingered = false;
    });
  }

  #endLinger(): void {
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
  }

  async #run(first: Entry): Promise<void> {
    const batch = this.#batchFrom(first);
    if (first.lane === JOURNAL_LANE) this.#endLinger();
    this.#busyLanes.add(first.lane);
    const effects = batch.map((entry) => entry.effect);
    const life = this.#life;
    for (let tries = 1; !this.#stopped; tries += 1) {
      const outcome = await this.#options.send(effects);
      if (this.#life !== life) return;
      if (outcome.kind === "accepted" || outcome.kind === "dropped") {
        this.#ack(batch);
        return;
      }
      this.#options.failing(first.effect, outcome.reason, tries);
      try {
        await this.#options.pause(Math.min(2000, 25 * 2 ** Math.min(tries, 7)));
      } catch {
        return; // stopped while waiting; the record still has the entry
      }
    }
  }

  /** O4; a journal batch never reaches over an entry that must go first. */
  #batchFrom(first: Entry): readonly Entry[] {
    if (first.effect.kind !== "journal") return [first];
    const batch: Entry[] = [];
    for (const entry of this.#entries) {
      if (entry.effect.kind === "start") break;
      if (entry.effect.kind === "journal") batch.push(entry);
      if (batch.length === MAX_JOURNAL_BATCH) break;
    }
    return batch.length === 0 ? [first] : batch;
  }

  #ack(batch: readonly Entry[]): void {
    const first = batch[0];
    if (first === undefined) return;
    this.#busyLanes.delete(first.lane);
    const done = batch.length === this.#entries.length ? undefined : new Set(batch);
    this.#entries = done === undefined ? [] : this.#entries.filter((entry) => !done.has(entry));
    this.#waiters = this.#waiters.filter((waiter) => {
      if (this.#hasJournalUpTo(waiter.rev)) return true;
      waiter.resolve();
      return false;
    });
    this.#pump();
    this.#options.acked();
  }
}

const JOURNAL_LANE = "#journal";
const NONE: readonly Effect[] = [];

function laneOf(effect: Effect): string {
  switch (effect.kind) {
    case "start":
    case "send":
    case "settled":
    case "stop":
      return effect.to;
    case "journal":
      return JOURNAL_LANE;
    case "emit":
      return "#emit";
    case "action":
    case "log":
      return "#local";
  }
}
