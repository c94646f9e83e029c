/** What the queue must know of a job. */
export interface QueuedJob {
  /** Jobs of one kind share their limits. */
  readonly kind: string;
  readonly actorKey: string;
}

/**
 * Jobs that wait for their turn.
 *
 * Owns: their order. Does not own: the limits.
 *   Q1 kinds take turns, and within a kind actors do: neither ten thousand jobs of one kind nor the wide fan-out of one actor holds up another
 *   Q2 jobs of one actor and kind keep their order
 */
export class JobQueue<T extends QueuedJob> {
  /** kind → actor → its jobs; both maps in the order of turns. */
  readonly #kinds = new Map<string, Map<string, T[]>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(job: T): void {
    const actors = this.#kinds.get(job.kind) ?? new Map<string, T[]>();
    this.#kinds.set(job.kind, actors);
    const jobs = actors.get(job.actorKey);
    if (jobs === undefined) actors.set(job.actorKey, [job]);
    else jobs.push(job);
    this.#size += 1;
  }

  /** @returns the job whose turn it is among the kinds that may run; undefined when there is none */
  take(mayRun: (job: T) => boolean): T | undefined {
    for (const [kind, actors] of this.#kinds) {
      const [turn] = actors;
      const job = turn?.[1][0];
      if (turn === undefined || job === undefined || !mayRun(job)) continue;
      this.#kinds.delete(kind);
      this.#kinds.set(kind, actors); // Q1
      this.#takeOut(job);
      const rest = actors.get(job.actorKey);
      if (rest !== undefined) {
        actors.delete(job.actorKey);
        actors.set(job.actorKey, rest); // Q1
      }
      return job;
    }
    return undefined;
  }

  remove(job: T): void {
    this.#takeOut(job);
  }

  #takeOut(job: T): void {
    const actors = this.#kinds.get(job.kind);
    const jobs = actors?.get(job.actorKey);
    const at = jobs?.indexOf(job) ?? -1;
    if (actors === undefined || jobs === undefined || at < 0) return;
    jobs.splice(at, 1);
    this.#size -= 1;
    if (jobs.length === 0) actors.delete(job.actorKey);
    if (actors.size === 0) this.#kinds.delete(job.kind);
  }
}
