import { toPlainFault, type StuckAttempt } from "@holdfast/protocol";
import { pause } from "../abortable-pause.ts";
import type { NodeServices } from "../cell-host.ts";
import type { Limiter } from "../limiter.ts";

/** `condemned`: it has taken down as many nodes as it may; it was not tried. */
export type Judged<T> =
  | { readonly kind: "survived"; readonly value: T }
  | { readonly kind: "condemned"; readonly attempts: readonly StuckAttempt[] };

/**
 * Claims of a partition in a row after deaths of its owner from which on everything of it is tried alone. Two in a row happen to every fleet
 * (a host that goes, and the next one it took with it), and a trial is slow.
 */
export const CRASHES_UNTIL_TRIAL = 3;
/** Nothing else was tried for so long: the next item of an actor comes right after the one before it. */
const CALM_MS = 50;
/** How long something that can wait lets others go first. */
const PATIENCE_MS = 5000;

/**
 * A partition whose last owners have died one after the other: whatever one of its actors does is tried alone, under a stored mark.
 *
 * Owns: who waits for its turn. Does not own: the marks (CrashEvidence), what becomes of the guilty.
 *   T1 nothing is tried without a mark, as long as the partition is ours and the trial is not over
 *   T2 healthy partitions have none of this: not one write, not one read
 *   T3 what is watched for a while (a job) lets go first, for a time, whatever else has to be tried: many jobs do not keep actors from
 *      coming back
 */
export class PartitionTrial {
  readonly #services: NodeServices;
  readonly #signal: AbortSignal;
  readonly #waiting = new Set<{ readonly sinceMs: number }>();
  #isOver = false;

  constructor(services: NodeServices, signal: AbortSignal) {
    this.#services = services;
    this.#signal = signal;
  }

  /** Whether everything that waited `ms` ago has had its turn. */
  isThrough(ms: number): boolean {
    const [oldest] = this.#waiting;
    return oldest === undefined || this.#services.clock.monotonicMs() - oldest.sinceMs < ms;
  }

  /** The partition has taken nobody down for a while. */
  end(): void {
    this.#isOver = true;
  }

  /**
   * Does something of an actor when nothing else of this node is tried.
   * @param key  of the actor
   * @param what  what is done
   * @param watchedMs  after this time it goes on beside others, and counts as survived
   */
  async run<T>(
    key: string,
    what: string,
    work: () => Promise<T>,
    watchedMs = Number.POSITIVE_INFINITY,
  ): Promise<Judged<T>> {
    const { evidence, settings, clock } = this.#services;
    const name = what.slice(0, 300);
    const waiting = { sinceMs: clock.monotonicMs() };
    this.#waiting.add(waiting);
    const canWait = watchedMs !== Number.POSITIVE_INFINITY;
    const hasTurn = await (canWait ? this.#enterLast() : this.#enter(evidence.turn));
    let working: Promise<T>;
    try {
      const attempts = (await this.#patiently(() => evidence.attempts(key, name))) ?? [];
      if (attempts.length >= settings.maxAttempts) return { kind: "condemned", attempts };
      await this.#patiently(async () => (await evidence.mark(key, name)) || undefined); // T1
      working = work();
      await this.#watch(working, watchedMs);
      await this.#patiently(() => evidence.unmark().then(() => true));
      if (attempts.length > 0) await this.acquit(key, name);
    } finally {
      if (!canWait) evidence.triedAtMs = clock.monotonicMs();
      if (hasTurn) evidence.turn.leave();
      this.#waiting.delete(waiting);
    }
    return { kind: "survived", value: await working }; // beside others from here on
  }

  /** What was counted against it does not count any more. */
  async acquit(key: string, what: string): Promise<void> {
    await this.#patiently(() => this.#services.evidence.acquit(key, what.slice(0, 300)).then(() => true));
  }

  /** T3; for PATIENCE_MS only, since work that never stops coming must not keep a job away for ever. @returns as #enter */
  async #enterLast(): Promise<boolean> {
    const { evidence, clock } = this.#services;
    const { turn, lastTurn } = evidence;
    if (!(await this.#enter(lastTurn))) return false;
    const sinceMs = clock.monotonicMs();
    try {
      while (await this.#enter(turn)) {
        const nowMs = clock.monotonicMs();
        const isCalm = turn.waiting === 0 && nowMs - evidence.triedAtMs >= CALM_MS;
        if (isCalm || this.#isOver || nowMs - sinceMs >= PATIENCE_MS) return true;
        turn.leave();
        await pause(clock, CALM_MS, this.#signal).catch(() => undefined);
      }
      return false;
    } finally {
      lastTurn.leave();
    }
  }

  /** @returns false when the partition was given away before its turn came */
  #enter(turn: Limiter): Promise<boolean> {
    if (this.#signal.aborted) return Promise.resolve(false);
    const entered = turn.enter();
    return new Promise((resolve) => {
      const aborted = (): void => {
        void entered.then(() => turn.leave());
        resolve(false);
      };
      const hasTurn = (): void => {
        this.#signal.removeEventListener("abort", aborted);
        resolve(true);
      };
      this.#signal.addEventListener("abort", aborted, { once: true });
      void entered.then(hasTurn);
    });
  }

  async #watch(working: Promise<unknown>, watchedMs: number): Promise<void> {
    const ended = working.then(
      () => undefined,
      () => undefined, // whoever asked for it hears of it
    );
    if (watchedMs === Number.POSITIVE_INFINITY) return ended;
    await Promise.race([ended, pause(this.#services.clock, watchedMs, this.#signal).catch(() => undefined)]);
  }

  /** Asks until there is an answer. @returns undefined when the trial is over, or the partition not ours any more */
  async #patiently<T>(ask: () => Promise<T | undefined>): Promise<T | undefined> {
    const { clock, telemetry } = this.#services;
    for (let tries = 0; !this.#isOver && !this.#signal.aborted; tries += 1) {
      try {
        const answer = await ask();
        if (answer !== undefined) return answer;
      } catch (error) {
        if (tries === 3) telemetry.warn("trial.no-evidence", { reason: toPlainFault(error, "HF-4008").message });
      }
      await pause(clock, Math.min(2000, 50 * 2 ** Math.min(tries, 6)), this.#signal).catch(() => undefined);
    }
    return undefined;
  }
}
