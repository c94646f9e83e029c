import type { JobContext, JobDefinition } from "./actor-definition.ts";
import type { JobLimits, JobShare } from "./job-limits.ts";
import { JobQueue } from "./job-queue.ts";

/** A job, as the actor that decided it asks for it. Holds no input: thousands may wait. */
export interface JobRequest {
  readonly key: string;
  readonly childId: string;
  readonly src: string;
  readonly actorKey: string;
  readonly partition: string;
  readonly definition: JobDefinition | undefined;
  readonly share: JobShare;
  /** Prepares the attempt when its turn has come: input, stored mark. @returns undefined when it is not to run here (now) */
  readonly begin: () => Promise<JobAttempt | undefined>;
  /** Its turn came and it does not run: whoever looked meanwhile took it for adopted, and looks again by the record. */
  readonly declined: () => void;
}

/** One attempt, ready to run. */
export interface JobAttempt {
  readonly input: unknown;
  /** What the input takes in memory, bytes. */
  readonly inputBytes: number;
  readonly genesis: string;
  readonly rev: number;
  readonly attempt: number;
  /** Runs the promise logic registered in the machine. */
  readonly runLogic: (signal: AbortSignal) => Promise<unknown>;
  /** Present when it is to run alone. @throws when it is not to run at all: that is its outcome */
  readonly guard?: <T>(work: () => Promise<T>) => Promise<T>;
  /** Checked right before the work starts; false sends it back to its owner. */
  readonly mayStart: () => boolean;
}

export type JobOutcome =
  | { readonly ok: true; readonly output: unknown }
  | { readonly ok: false; readonly error: unknown };

/** Whose outcome is to be published. */
export interface SettledJob
  extends Pick<JobRequest, "key" | "childId" | "actorKey">, Pick<JobAttempt, "genesis" | "attempt"> {}

interface KnownJob {
  readonly request: JobRequest;
  readonly kind: string;
  readonly actorKey: string;
  readonly controller: AbortController;
  state: "queued" | "beginning" | "running" | "publishing";
  /** Resolved when it is decided whether its attempt runs. */
  readonly begun: PromiseWithResolvers<void>;
}

export interface JobTableOptions {
  readonly node: string;
  readonly limits: JobLimits;
  /** Publishes the outcome to the owner's inbox until it is stored, lease or not (I11, F20). */
  readonly publish: (job: SettledJob, outcome: JobOutcome) => Promise<void>;
  readonly reach: (point: "before-job" | "job-done" | "outcome-published", key: string) => void | Promise<void>;
  /** Beginning an attempt, or telling its outcome, ended in an error nobody expected. */
  readonly failed: (key: string, error: unknown) => void;
  /** Bytes of inputs that running jobs hold; negative when they let go of them. */
  readonly held: (bytes: number) => void;
  readonly monotonicMs: () => number;
}

const PUBLISHED_MEMORY_MS = 60_000;

/**
 * Jobs of this process.
 *
 * Owns: waiting and running attempts. Does not own: whether a job is wanted (the record is), the limits.
 *   J1 one table per process, keyed by job key: an actor that comes back adopts its running job (F40)
 *   J2 an outcome is published by whoever ran it (I11)
 *   J3 a stopped job publishes nothing
 *   J4 a job whose outcome is stored counts as known for a while: its message may still be on the way to its owner
 *   J6 an attempt is prepared, and marked as started, only when its turn has come: a job that waited for a node that died had not started
 *   J7 what cannot be prepared is looked at again, and holds up neither its place nor who waits for `begun`
 */
export class JobTable {
  readonly #options: JobTableOptions;
  readonly #jobs = new Map<string, KnownJob>();
  readonly #queue = new JobQueue<KnownJob>();
  /** J4: key → when its outcome was stored. */
  readonly #published = new Map<string, number>();

  constructor(options: JobTableOptions) {
    this.#options = options;
  }

  /** Jobs that wait or run here. */
  get size(): number {
    return this.#jobs.size;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** Most that ever ran at the same time. */
  get highest(): number {
    return this.#options.limits.highest;
  }

  /** Whether this process runs the job or will, or has just stored its outcome (J4). */
  has(key: string): boolean {
    return this.#jobs.has(key) || this.#published.has(key);
  }

  keys(): readonly string[] {
    return [...this.#jobs.keys()];
  }

  /** Jobs whose actors this node does not own (any more). */
  keysOutside(owned: ReadonlySet<string>): readonly string[] {
    return [...this.#jobs.values()]
      .filter(({ request }) => !owned.has(request.partition))
      .map(({ request }) => request.key);
  }

  /** @returns `adopted` when the job is already here (J1) */
  start(request: JobRequest): "queued" | "adopted" {
    if (this.#jobs.has(request.key)) return "adopted";
    const { actorKey, share } = request;
    const job: KnownJob = {
      request,
      kind: share.kind,
      actorKey,
      controller: new AbortController(),
      state: "queued",
      begun: Promise.withResolvers(),
    };
    this.#jobs.set(request.key, job);
    this.#queue.add(job);
    this.#pump();
    return "queued";
  }

  /** J3. */
  stop(key: string, reason: string): void {
    const job = this.#jobs.get(key);
    if (job === undefined || job.state === "publishing") return;
    this.#jobs.delete(key);
    job.controller.abort(new DOMException(reason, "AbortError"));
    job.begun.resolve();
    if (job.state === "queued") this.#queue.remove(job);
    else this.#leave(job);
  }

  /** A greater epoch was seen: the new owner decides what happens to the jobs of this partition. */
  stopPartition(partition: string, reason: string): void {
    for (const [key, job] of this.#jobs) if (job.request.partition === partition) this.stop(key, reason);
  }

  /** The partition is given away: what waits is the new owner's, what runs stays (F22); what is being prepared is decided by `begun`. */
  forgetWaiting(partition: string): void {
    for (const [key, job] of this.#jobs) {
      if (job.request.partition === partition && job.state === "queued") this.stop(key, "the partition moved");
    }
  }

  /** Resolves when no attempt of this partition is being prepared any more: each runs, or will not run here. */
  async begun(partition: string): Promise<void> {
    const beginning = [...this.#jobs.values()].filter(
      ({ request, state }) => state === "beginning" && request.partition === partition,
    );
    await Promise.all(beginning.map(({ begun }) => begun.promise));
  }

  #remember(key: string): void {
    const now = this.#options.monotonicMs();
    this.#published.set(key, now);
    for (const [old, at] of this.#published) {
      if (now - at < PUBLISHED_MEMORY_MS) break; // in order of publishing
      this.#published.delete(old);
    }
  }

  #pump(): void {
    const { limits } = this.#options;
    while (!limits.isFull()) {
      const job = this.#queue.take(({ request }) => limits.mayRun(request.share));
      if (job === undefined) return;
      limits.entered(job.request.share);
      job.state = "beginning";
      void this.#run(job);
    }
  }

  #leave(job: KnownJob): void {
    this.#options.limits.left(job.request.share);
    this.#pump();
  }

  async #run(job: KnownJob): Promise<void> {
    try {
      await this.#attempt(job);
    } catch (error) {
      this.#options.failed(job.request.key, error);
      this.#decline(job); // J7
    }
  }

  /** Gives the place of a job back that does not go on here. */
  #decline(job: KnownJob): void {
    const { key, declined } = job.request;
    if (this.#jobs.get(key) !== job) return;
    this.#jobs.delete(key);
    job.begun.resolve();
    this.#leave(job);
    declined();
  }

  async #attempt(job: KnownJob): Promise<void> {
    const { request, controller } = job;
    const isCurrent = (): boolean => this.#jobs.get(request.key) === job;
    const attempt = await request.begin(); // J6
    if (attempt !== undefined && isCurrent()) await this.#options.reach("before-job", request.key);
    if (!isCurrent()) return; // J3
    if (attempt === undefined || !attempt.mayStart()) {
      this.#decline(job);
      return;
    }
    job.state = "running";
    job.begun.resolve();
    this.#options.held(attempt.inputBytes);
    const outcome = await this.#execute(request, attempt, controller.signal);
    this.#options.held(-attempt.inputBytes);
    if (!isCurrent()) return; // J3
    await this.#options.reach("job-done", request.key);
    job.state = "publishing";
    const { key, childId, actorKey } = request;
    await this.#options.publish(
      { key, childId, actorKey, genesis: attempt.genesis, attempt: attempt.attempt },
      outcome,
    );
    await this.#options.reach("outcome-published", request.key);
    this.#remember(request.key);
    this.#jobs.delete(request.key);
    this.#leave(job);
  }

  async #execute(request: JobRequest, attempt: JobAttempt, signal: AbortSignal): Promise<JobOutcome> {
    const context: JobContext = {
      key: request.key,
      actorKey: request.actorKey,
      genesis: attempt.genesis,
      rev: attempt.rev,
      attempt: attempt.attempt,
      node: this.#options.node,
      signal,
    };
    try {
      const run = request.definition?.run;
      const call = async (): Promise<unknown> =>
        run === undefined ? attempt.runLogic(signal) : run(attempt.input, context);
      const output = await (attempt.guard === undefined ? call() : attempt.guard(call));
      return { ok: true, output };
    } catch (error) {
      return { ok: false, error };
    }
  }
}
