import type { JobContext, JobDefinition } from "./actor-definition.ts";

/** One attempt of a job, as the actor that decided it asks for it. */
export interface JobRequest {
  readonly key: string;
  readonly childId: string;
  readonly src: string;
  readonly input: unknown;
  readonly actorKey: string;
  readonly genesis: string;
  readonly rev: number;
  readonly attempt: number;
  readonly partition: string;
  readonly definition: JobDefinition | undefined;
  /** Runs the promise logic registered in the machine. */
  readonly runLogic: (signal: AbortSignal) => Promise<unknown>;
  /** Checked right before the work starts; false sends it back to its owner. */
  readonly mayStart: () => boolean;
  /** Called when `mayStart` said no. */
  readonly declined: () => void;
}

export type JobOutcome =
  | { readonly ok: true; readonly output: unknown }
  | { readonly ok: false; readonly error: unknown };

interface RunningJob {
  readonly request: JobRequest;
  readonly controller: AbortController;
  state: "queued" | "running" | "publishing";
}

export interface JobTableOptions {
  readonly node: string;
  readonly defaultConcurrency: number;
  /** Publishes the outcome to the owner's inbox until it is stored, lease or not (I11, F20). */
  readonly publish: (request: JobRequest, outcome: JobOutcome) => Promise<void>;
  readonly reach: (point: "before-job" | "job-done" | "outcome-published", key: string) => void | Promise<void>;
  readonly changed: () => void;
  readonly monotonicMs: () => number;
}

const PUBLISHED_MEMORY_MS = 60_000;

/**
 * Jobs of this process.
 *
 * Owns: running attempts and their concurrency. Does not own: whether a job is wanted (the record is).
 *   J1 one table per process, keyed by job key: an actor that comes back adopts its running job (F40)
 *   J2 an outcome is published by whoever ran it (I11)
 *   J3 a stopped job publishes nothing
 *   J4 a job whose outcome is stored counts as known for a while: its message may still be on the way to its owner
 */
export class JobTable {
  readonly #options: JobTableOptions;
  readonly #jobs = new Map<string, RunningJob>();
  readonly #running = new Map<string, number>();
  /** J4: key → when its outcome was stored. */
  readonly #published = new Map<string, number>();

  constructor(options: JobTableOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#jobs.size;
  }

  /** Whether this process runs the job, or has just stored its outcome (J4). */
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

  /** @returns `adopted` when the job already runs here (J1) */
  start(request: JobRequest): "started" | "adopted" {
    if (this.#jobs.has(request.key)) return "adopted";
    this.#jobs.set(request.key, { request, controller: new AbortController(), state: "queued" });
    this.#pump(request.src);
    return "started";
  }

  /** J3. */
  stop(key: string, reason: string): void {
    const job = this.#jobs.get(key);
    if (job === undefined || job.state === "publishing") return;
    this.#jobs.delete(key);
    job.controller.abort(new DOMException(reason, "AbortError"));
    if (job.state === "running") this.#leave(job);
  }

  /** A greater epoch was seen: the new owner decides what happens to the jobs of this partition. */
  stopPartition(partition: string, reason: string): void {
    for (const [key, job] of this.#jobs) if (job.request.partition === partition) this.stop(key, reason);
  }

  #remember(key: string): void {
    const now = this.#options.monotonicMs();
    this.#published.set(key, now);
    for (const [old, at] of this.#published) {
      if (now - at < PUBLISHED_MEMORY_MS) break; // in order of publishing
      this.#published.delete(old);
    }
  }

  #pump(src: string): void {
    for (const job of this.#jobs.values()) {
      if (job.state !== "queued" || job.request.src !== src) continue;
      const limit = job.request.definition?.concurrency ?? this.#options.defaultConcurrency;
      const running = this.#running.get(src) ?? 0;
      if (running >= limit) return;
      this.#running.set(src, running + 1);
      job.state = "running";
      void this.#run(job);
    }
  }

  #leave(job: RunningJob): void {
    const src = job.request.src;
    this.#running.set(src, Math.max(0, (this.#running.get(src) ?? 1) - 1));
    this.#options.changed();
    this.#pump(src);
  }

  async #run(job: RunningJob): Promise<void> {
    const { request, controller } = job;
    await this.#options.reach("before-job", request.key);
    if (!request.mayStart()) {
      if (this.#jobs.get(request.key) === job) {
        this.#jobs.delete(request.key);
        this.#leave(job);
        request.declined();
      }
      return;
    }
    const outcome = await this.#execute(request, controller.signal);
    if (this.#jobs.get(request.key) !== job) return; // J3
    await this.#options.reach("job-done", request.key);
    job.state = "publishing";
    await this.#options.publish(request, outcome);
    await this.#options.reach("outcome-published", request.key);
    this.#remember(request.key);
    this.#jobs.delete(request.key);
    this.#leave(job);
  }

  async #execute(request: JobRequest, signal: AbortSignal): Promise<JobOutcome> {
    const context: JobContext = {
      key: request.key,
      actorKey: request.actorKey,
      genesis: request.genesis,
      rev: request.rev,
      attempt: request.attempt,
      node: this.#options.node,
      signal,
    };
    try {
      const run = request.definition?.run;
      const output = await (run === undefined ? request.runLogic(signal) : run(request.input, context));
      return { ok: true, output };
    } catch (error) {
      return { ok: false, error };
    }
  }
}
