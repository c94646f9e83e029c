// RowTurns: what happens to the fleet while tests run side by side, one thing after the other.
//
//   T1 a turn begins when every test waits for it or for a later one, or has ended
//   T2 what nobody waits for does not happen, unless the next turn needs it

/** In their order: the names by which a test waits for what happens. */
export const TURNS = [
  /** Everybody else has prepared everything: the last moment before the death. */
  "eve",
  /** The node has been killed, and nobody has taken its place. */
  "absence",
  /** Another node is there. */
  "death",
  /** That one died as well, between storing a step of one conversation and telling it; two others began together and own everything. */
  "crash",
  /** The broker was killed and is back. */
  "outage",
  /** Every node was stopped, and another one owns everything. */
  "standstill",
  /** Those that were stopped go on, and know that they own nothing any more. */
  "return",
] as const;
export type Turn = (typeof TURNS)[number];

export interface TurnAct {
  readonly act: () => Promise<void>;
  /** It happens as soon as anybody waits for it or for a later one. */
  readonly isNeeded?: boolean;
}
/** What happens at each turn; nothing, where there is no act. */
export type TurnActs = Readonly<Partial<Record<Turn, TurnAct>>>;

/** The turns as one test sees them. */
export interface TurnWaiter {
  /** Resolves when the turn has happened. @throws what went wrong while it, or one before it, happened */
  until(turn: Turn): Promise<void>;
  /** The test has ended: nobody waits for it any more. */
  leave(): void;
}

interface Place {
  readonly begun: Promise<void>;
  readonly waiters: Set<number>;
  readonly happened: PromiseWithResolvers<void>;
}

export class RowTurns {
  readonly #arrivals: PromiseWithResolvers<void>[][];
  readonly #places: readonly Place[];

  /** @param tests  how many take part */
  constructor(tests: number) {
    this.#arrivals = Array.from({ length: tests }, () => TURNS.map(() => Promise.withResolvers<void>()));
    this.#places = TURNS.map((_, turn) => {
      const arrivals = this.#arrivals.flatMap((ofTest) => ofTest.slice(turn, turn + 1));
      const begun = Promise.all(arrivals.map(({ promise }) => promise)).then(() => undefined);
      const happened = Promise.withResolvers<void>();
      happened.promise.catch(() => undefined); // there may be nobody who waits for it
      return { begun, waiters: new Set<number>(), happened };
    });
  }

  /** @param test  its number, from 0 */
  waiter(test: number): TurnWaiter {
    const arriveAt = (last: number): void => {
      for (const arrival of this.#arrivals[test]?.slice(0, last + 1) ?? []) arrival.resolve();
    };
    return {
      until: (turn) => {
        const at = TURNS.indexOf(turn);
        this.#places[at]?.waiters.add(test);
        arriveAt(at);
        return this.#places[at]?.happened.promise ?? Promise.resolve();
      },
      leave: () => arriveAt(TURNS.length - 1),
    };
  }

  /** Lets the turns happen, until the last one. Never throws: whoever waits for one that failed is told. */
  async run(acts: TurnActs): Promise<void> {
    for (const [at, { begun, happened }] of this.#places.entries()) {
      await begun; // T1
      const turn = TURNS[at];
      const act = turn === undefined ? undefined : acts[turn];
      try {
        if (act !== undefined && this.#isAwaited(at, act)) await act.act();
        happened.resolve();
      } catch (error) {
        for (const place of this.#places.slice(at)) place.happened.reject(error);
        return;
      }
    }
  }

  /** T2. */
  #isAwaited(at: number, { isNeeded = false }: TurnAct): boolean {
    return this.#places.some(({ waiters }, place) => waiters.size > 0 && (place === at || (isNeeded && place > at)));
  }
}
