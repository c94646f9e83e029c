/**
 * Actors for which messages wait although they were never started, and until when (F17).
 *
 * Owns: when to look at them again. Does not own: the messages (parked stream), what becomes of them (CellQuarantine).
 */
export class OrphanWatch {
  readonly #dueMs = new Map<string, number>();

  /** A message waits for the start of its actor. @param dueMs  broker time at which it has waited long enough */
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
