import { startVolatileHost, type LocalEffect, type VolatileHost } from "@holdfast/durable";
import { RuntimeFault, type ActorRecord, type ChildEntry, type CrashPolicy, type PlainEvent } from "@holdfast/protocol";
import type { AnyActorLogic } from "xstate";
import type { CellHost, JobTurn, NodeServices, ServedType } from "./cell-host.ts";
import { jobAlone } from "./crash-loop/try-alone.ts";
import type { JobAttempt } from "./job-table.ts";
import { machineOfRecord } from "./write-switch.ts";

export interface CellChildrenOptions {
  readonly services: NodeServices;
  readonly host: CellHost;
  readonly served: ServedType;
  readonly key: string;
  /** The record as last committed. */
  readonly record: () => ActorRecord | undefined;
  readonly whenJournaled: (rev: number) => Promise<void>;
  /** Stores the mark of an attempt. @returns false when it could not be stored */
  readonly mark: (childId: string, attempt: number) => Promise<boolean>;
  readonly fromHost: (childKey: string, event: PlainEvent) => void;
  /** Settles a job whose outcome nobody can know. */
  readonly settleAmbiguous: (childId: string, entry: ChildEntry) => void;
  /** Settles a job that cannot run. */
  readonly settleFailed: (childId: string, entry: ChildEntry, fault: RuntimeFault) => void;
}

/**
 * Jobs and volatile hosts of one actor on this node.
 *
 * Owns: which of the record's active jobs were handed to the job table. Does not own: the table, the record.
 *   K1 a job starts only after the journal entry of its commit is stored (F26)
 *   K2 `dedupeKey` and `unsafe` attempts start only after their mark is stored; a marked `unsafe` attempt of another runner never runs again (F21)
 *   K3 a recovered job starts only once the mailbox was read up to the claim: its outcome may already lie there
 *   K4 an input that is kept outside is fetched before anything is marked; a job without its input does not run
 *   K6 a recovered job waits until overdue timers have fired: the deadline that ends it may be among them
 *   K5 an attempt whose mark was stored runs here also when the partition is given away meanwhile: nobody else could tell that it did not
 */
export class CellChildren {
  readonly #options: CellChildrenOptions;
  readonly #starting = new Set<string>();
  readonly #hosts = new Map<string, VolatileHost>();

  constructor(options: CellChildrenOptions) {
    this.#options = options;
  }

  get isBusy(): boolean {
    return this.#starting.size > 0 || this.#hosts.size > 0;
  }

  /** Carries out what a committed macrostep decided for this process. */
  apply(effects: readonly LocalEffect[]): void {
    const { host, key, services } = this.#options;
    for (const effect of effects) {
      switch (effect.kind) {
        case "schedule":
          host.timers.arm({ key, timer: effect.timer, gen: effect.gen, dueAtMs: effect.dueAtMs });
          break;
        case "cancel":
          host.timers.cancel(key, effect.timer);
          break;
        case "startJob":
          this.#start(effect.childId, false);
          break;
        case "stopJob":
          services.jobs.stop(effect.childKey, "stopped by its actor");
          break;
        case "startHost":
          void this.#startHost(effect);
          break;
        case "stopHost":
          this.#hosts.get(effect.childKey)?.stop();
          this.#hosts.delete(effect.childKey);
          break;
        case "tellHost":
          this.#hosts.get(effect.childKey)?.send(effect.event);
          break;
      }
    }
  }

  /** Starts every active job of the record that runs nowhere. Called after rehydration, and again while something held it up. */
  ensureJobs(): void {
    const record = this.#options.record();
    if (record === undefined || !this.#options.host.isCaughtUp) return; // K3
    const { host, key, services } = this.#options;
    host.resolved(key, "custody");
    const nowMs = services.time.nowMs();
    if (Object.values(record.timers).some(({ dueAtMs }) => dueAtMs <= nowMs)) {
      host.recheckLater(key); // K6
      return;
    }
    for (const [childId, entry] of Object.entries(record.snapshot.children)) {
      if (entry.kind === "job" && entry.status === "active") this.#start(childId, true);
    }
  }

  /** Whether the record has an active job that nobody here waits for or runs: something held it up. */
  get hasIdleJobs(): boolean {
    const children = Object.values(this.#options.record()?.snapshot.children ?? {});
    const { jobs } = this.#options.services;
    return children.some(({ kind, status, key }) => kind === "job" && status === "active" && !jobs.has(key));
  }

  /** Whether the record has an active job that was neither handed to the table here nor is on its way there. */
  get hasCutOffJobs(): boolean {
    const children = Object.values(this.#options.record()?.snapshot.children ?? {});
    const { jobs } = this.#options.services;
    return children.some(
      ({ kind, status, key }) => kind === "job" && status === "active" && !jobs.has(key) && !this.#starting.has(key),
    );
  }

  /** Volatile hosts end with the copy in memory; jobs go on, their outcome comes through the inbox. */
  stop(): void {
    for (const hosted of this.#hosts.values()) hosted.stop();
    this.#hosts.clear();
  }

  #entry(childId: string): ChildEntry | undefined {
    const entry = this.#options.record()?.snapshot.children[childId];
    return entry?.kind === "job" && entry.status === "active" ? entry : undefined;
  }

  #start(childId: string, isRecovered: boolean): void {
    const { host, services, key } = this.#options;
    const entry = this.#entry(childId);
    const record = this.#options.record();
    if (entry === undefined || record === undefined || this.#starting.has(entry.key)) return;
    if (services.jobs.has(entry.key)) {
      if (isRecovered) host.count("adopted");
      return;
    }
    if (isRecovered) {
      if (host.isRunElsewhere(entry.key, entry.runner)) {
        host.report(key, {
          kind: "custody",
          why: `job ${childId} still runs on the node that gave the partition away`,
        });
        host.recheckLater(key);
        return;
      }
      if (this.#policyOf(entry) === "unsafe" && entry.attempt !== undefined) {
        host.report(key, {
          kind: "ambiguous",
          why: `job ${childId} may have run: attempt ${entry.attempt} was started and its runner is gone`,
        });
        this.#options.settleAmbiguous(childId, entry); // K2
        return;
      }
      host.count("reissued");
    }
    this.#starting.add(entry.key);
    void this.#launch(childId, entry, record).finally(() => this.#starting.delete(entry.key));
  }

  async #launch(childId: string, entry: ChildEntry, { rev }: ActorRecord): Promise<void> {
    const { host, services, served, key } = this.#options;
    await this.#options.whenJournaled(rev); // K1
    if (host.signal.aborted || this.#entry(childId)?.key !== entry.key) return;
    const { settings } = services;
    const { definition } = served;
    const job = definition.jobs?.[entry.src];
    services.jobs.start({
      key: entry.key,
      childId,
      src: entry.src,
      actorKey: key,
      partition: host.partition,
      definition: job,
      share: {
        kind: `${definition.type}/${entry.src}`,
        type: definition.type,
        provider: job?.provider,
        kindLimit: job?.concurrency ?? settings.jobConcurrency,
        typeLimit: definition.limits?.jobs ?? Number.POSITIVE_INFINITY,
      },
      begin: () => host.beginJob(key, { childId, jobKey: entry.key, rev }),
      declined: () => host.recheckLater(key),
    });
  }

  /** Whether an attempt of this job must be marked in the record before it starts (K2). */
  needsMark(childId: string): boolean {
    return this.#policyOf(this.#entry(childId)) !== "idempotent";
  }

  /** The attempt of a job whose turn has come. @returns undefined when it is no longer wanted, or not now: then it is asked for again */
  async prepare({ childId, jobKey, rev }: JobTurn): Promise<JobAttempt | undefined> {
    const { host, services, served, key } = this.#options;
    const [record, entry] = [this.#options.record(), this.#entry(childId)];
    if (record === undefined || entry?.key !== jobKey || host.signal.aborted) return undefined;
    const given = entry.blobs === undefined ? { input: entry.input } : await this.#fetchInput(childId, entry); // K4
    if (given === undefined || host.signal.aborted || this.#entry(childId)?.key !== jobKey) return undefined;
    const { input } = given;
    const attempt = (entry.attempt ?? 0) + 1;
    const isMarked = this.needsMark(childId);
    if (!host.mayStartEffects() || (isMarked && !(await this.#options.mark(childId, attempt)))) {
      host.recheckLater(key); // K2
      return undefined;
    }
    const child = machineOfRecord(served, record).children.get(entry.src);
    return {
      input,
      inputBytes: input === undefined ? 0 : services.codec.encodeValue(input).length,
      genesis: record.genesis,
      rev,
      attempt,
      ...(host.trial !== undefined && { guard: jobAlone(host.trial, key, jobKey) }),
      runLogic: (signal) => runLogic(child?.logic, childId, entry.src, input, signal),
      // Without a copy in memory nothing has changed: what ends a job stops it in the table.
      mayStart: () =>
        (isMarked ? host.isLeaseFresh() : host.mayStartEffects()) && // K5
        (this.#options.record() === undefined || this.#entry(childId)?.key === jobKey),
    };
  }

  #policyOf(entry: ChildEntry | undefined): CrashPolicy {
    return this.#options.served.definition.jobs?.[entry?.src ?? ""]?.crashPolicy ?? "idempotent";
  }

  /** @returns undefined when there is none to be had: the child was settled with the reason. @throws when nobody answered */
  async #inputOf(childId: string, entry: ChildEntry): Promise<{ readonly input: unknown } | undefined> {
    if (entry.blobs === undefined) return { input: entry.input };
    const { services, key } = this.#options;
    try {
      return { input: (await services.payloads.fetch(entry.blobs))["input"] };
    } catch (error) {
      if (!(error instanceof RuntimeFault) || error.code !== "HF-3007") throw error;
      services.telemetry.error("child.no-input", { key, childId, code: error.code, reason: error.message });
      this.#options.settleFailed(childId, entry, error);
      return undefined;
    }
  }

  async #fetchInput(childId: string, entry: ChildEntry): Promise<{ readonly input: unknown } | undefined> {
    try {
      return await this.#inputOf(childId, entry);
    } catch {
      this.#options.host.recheckLater(this.#options.key); // nobody answered
      return undefined;
    }
  }

  /** A host of a loaded record gets its input from where it is kept; while nobody answers it is tried again. */
  async #startHost(effect: StartChild): Promise<void> {
    const { host, services } = this.#options;
    if (effect.blobs === undefined) return this.#runHost(effect, effect.input);
    const wanted = (): ChildEntry | undefined => {
      const entry = this.#options.record()?.snapshot.children[effect.childId];
      return entry?.key === effect.childKey && entry.status === "active" && !host.signal.aborted ? entry : undefined;
    };
    const entry = wanted();
    if (entry === undefined) return;
    try {
      const given = await this.#inputOf(effect.childId, entry);
      if (given !== undefined && wanted() !== undefined) this.#runHost(effect, given.input);
    } catch {
      services.clock.schedule(services.settings.heartbeatMs, () => void this.#startHost(effect));
    }
  }

  #runHost({ childId, childKey, src }: StartChild, input: unknown): void {
    const { served, fromHost } = this.#options;
    const record = this.#options.record();
    const machine = record === undefined ? served.compiled : machineOfRecord(served, record);
    const logic = machine.children.get(src)?.logic;
    if (logic === undefined || this.#hosts.has(childKey)) return;
    this.#hosts.set(
      childKey,
      startVolatileHost(logic, {
        id: childId,
        src,
        input,
        sync: this.#options.record()?.snapshot.children[childId]?.sync ?? false,
        deliver: (event) => fromHost(childKey, event),
      }),
    );
  }
}

type StartChild = Extract<LocalEffect, { kind: "startJob" | "startHost" }>;

/** Runs promise logic of the machine itself as a job. */
function runLogic(
  logic: AnyActorLogic | undefined,
  childId: string,
  src: string,
  input: unknown,
  signal: AbortSignal,
): Promise<unknown> {
  if (logic === undefined) {
    return Promise.reject(
      new RuntimeFault(
        "HF-3003",
        `Job ${src}: this build registers no implementation. Deploy a build that does, or add it to the definition's jobs.`,
      ),
    );
  }
  return new Promise((resolve, reject) => {
    const hosted = startVolatileHost(logic, {
      id: childId,
      src,
      input,
      sync: false,
      deliver: (event) => {
        if (event.type === `xstate.done.actor.${childId}`) resolve(event["output"]);
        else if (event.type === `xstate.error.actor.${childId}`) reject(event["error"]);
      },
    });
    signal.addEventListener("abort", () => hosted.stop(), { once: true });
  });
}
