import { MAX_CHECKPOINT_LIVE } from "@holdfast/protocol";

/** A commit on its way. `sinceSeq`: newest acknowledged sequence when it was issued; where it is stored lies beyond. */
export interface IssuedCommit {
  readonly key: string;
  readonly sinceSeq: number;
}

/** What a checkpoint says of the work of a partition. */
export interface WorkSummary {
  readonly seq: number;
  readonly live: readonly (readonly [key: string, seq: number])[];
  readonly unlisted: number;
}

/**
 * Which records of one partition have work, as far as its owner knows.
 *
 * Owns: the newest sequence known of every record with work, the commits in flight. Does not own: storing that (`writeCheckpoint`).
 *   W1 every record whose newest value lies at or before `summary().seq` and needs work is in its list
 *   W2 that sequence is never beyond the newest acknowledgement known when a commit that is still in flight, or whose outcome nobody knows,
 *      was issued; acknowledgements of different actors come in any order (F8)
 *   W3 nor beyond the last barrier up to which everything was looked at: a former owner's late write may lie there (F5)
 *   W4 a list that is too long is cut at its newest end, and the sequence goes down to where it was cut
 */
export class KnownWork {
  readonly #live = new Map<string, number>();
  /** Own commits since the last barrier: what a scan delivers later may be older than they are. */
  readonly #acked = new Map<string, number>();
  readonly #inFlight = new Set<IssuedCommit>();
  #ambiguous: readonly IssuedCommit[] = [];
  #newestAck = 0;
  #barrierSeq = 0;
  /** Sequence of the newest own commit that was acknowledged; 0 before the first. */
  newestCommit = 0;

  issued(key: string): IssuedCommit {
    const commit = { key, sinceSeq: this.#newestAck };
    this.#inFlight.add(commit);
    return commit;
  }

  committed(commit: IssuedCommit, seq: number, needsWork: boolean): void {
    this.#inFlight.delete(commit);
    this.#newestAck = Math.max(this.#newestAck, seq);
    this.newestCommit = Math.max(this.newestCommit, seq);
    this.#acked.set(commit.key, seq);
    this.#set(commit.key, seq, needsWork);
  }

  /** @param isAmbiguous  it may be stored, now or later */
  notStored(commit: IssuedCommit, isAmbiguous: boolean): void {
    this.#inFlight.delete(commit);
    if (isAmbiguous) this.#ambiguous = [...this.#ambiguous, commit];
  }

  /** A value of a record was read. */
  seen(key: string, seq: number, needsWork: boolean): void {
    if ((this.#acked.get(key) ?? 0) <= seq) this.#set(key, seq, needsWork);
  }

  /** Everything before a barrier was looked at, and told with `seen`. */
  scanned(barrierSeq: number): void {
    this.#barrierSeq = barrierSeq;
    this.#newestAck = Math.max(this.#newestAck, barrierSeq);
    for (const [key, seq] of this.#acked) if (seq < barrierSeq) this.#acked.delete(key);
    // By now it was seen, or it will be stored beyond the barrier.
    this.#ambiguous = this.#ambiguous.filter(({ sinceSeq }) => sinceSeq >= barrierSeq);
  }

  summary(limit = MAX_CHECKPOINT_LIVE): WorkSummary {
    let seq = this.#barrierSeq; // W3
    const live = new Map(this.#live);
    for (const commit of [...this.#inFlight, ...this.#ambiguous]) {
      seq = Math.min(seq, commit.sinceSeq); // W2
      if (!live.has(commit.key)) live.set(commit.key, commit.sinceSeq + 1);
    }
    const sorted = [...live].toSorted(([, a], [, b]) => a - b);
    const firstUnlisted = sorted[limit];
    if (firstUnlisted !== undefined) seq = Math.min(seq, firstUnlisted[1] - 1); // W4
    return { seq, live: sorted.slice(0, limit), unlisted: Math.max(0, sorted.length - limit) };
  }

  /** Actors whose newest known record has work. */
  keys(): IterableIterator<string> {
    return this.#live.keys();
  }

  #set(key: string, seq: number, needsWork: boolean): void {
    if ((this.#live.get(key) ?? 0) > seq) return;
    if (needsWork) this.#live.set(key, seq);
    else this.#live.delete(key);
  }
}
