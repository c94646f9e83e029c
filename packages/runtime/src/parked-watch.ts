/**
 * Actors with messages that were set aside, and when to offer those again although nothing else has happened: a start that never came (F17),
 * a gap in a link (F3).
 *
 * Owns: the times. Does not own: the messages (parked stream), what becomes of them (CellWork).
 */
export class ParkedWatch {
  readonly #dueMs = new Map<string, number>();

  /** @param dueMs  broker time at which a message has waited long enough */
  waits(key: string, dueMs: number): void {
    this.#dueMs.set(key, Math.min(dueMs, this.#dueMs.get(key) ?? Number.POSITIVE_INFINITY));
  }

  /** Those that have waited long enough; whatever still waits of them is to be told again. @param nowMs  broker time */
  takeDue(nowMs: number): readonly string[] {
    const due = [...this.#dueMs].flatMap(([key, dueMs]) => (dueMs <= nowMs ? [key] : []));
    for (const key of due) this.#dueMs.delete(key);
    return due;
  }

  /** Everything of an actor is offered again. */
  forget(key: string): void {
    this.#dueMs.delete(key);
  }
}
