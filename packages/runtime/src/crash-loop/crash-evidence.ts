import { ATTEMPTS_REMEMBERED, Suspect, Trial, type StuckAttempt } from "@holdfast/protocol";
import type { BrokerTime } from "../broker-time.ts";
import { Limiter } from "../limiter.ts";
import type { Clock, FleetRegistry, Telemetry } from "../ports/index.ts";

export interface CrashEvidenceOptions {
  /** Where what is stuck is told. */
  readonly bucket: FleetRegistry;
  readonly incarnation: string;
  readonly clock: Clock;
  readonly time: Pick<BrokerTime, "nowMs">;
  readonly telemetry: Telemetry;
}

/** Attempts that lie further back say nothing about a loop, ms. */
const REMEMBERED_MS = 3_600_000;

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/**
 * What nodes died of, as far as it is stored.
 *
 * Owns: the mark of what this node tries alone, the turn to do so. Does not own: who is tried (PartitionTrial), what becomes of the guilty
 * (CellQuarantine).
 *   E1 one thing at a time is tried on a node: what is marked when it dies is what it died of
 *   E2 the mark is stored before the trial begins, and goes when the trial was survived
 *   E3 an attempt is counted by the node that claims the partition after the death
 */
export class CrashEvidence {
  /** E1. */
  readonly turn: Limiter;
  /** Who of those that can wait asks for a turn next. */
  readonly lastTurn: Limiter;
  /** When something that cannot wait was tried last; monotonic. */
  triedAtMs = Number.NEGATIVE_INFINITY;
  readonly #options: CrashEvidenceOptions;

  constructor(options: CrashEvidenceOptions) {
    this.#options = options;
    this.turn = new Limiter({ slots: () => 1, clock: options.clock });
    this.lastTurn = new Limiter({ slots: () => 1, clock: options.clock });
  }

  /** @returns false when nobody knows whether it is stored */
  async mark(key: string, what: string): Promise<boolean> {
    const { bucket, incarnation, time } = this.#options;
    const trial: Trial = { v: 1, node: incarnation, key, what, atMs: time.nowMs() };
    return (await bucket.put(trialKey(incarnation), encode(trial))) !== undefined;
  }

  /** The trial was survived. @throws RuntimeFault HF-4008 when that was not acknowledged */
  unmark(): Promise<void> {
    return this.#options.bucket.remove(trialKey(this.#options.incarnation));
  }

  /** Attempts at something that its nodes did not survive lately, oldest first. */
  async attempts(key: string, what: string): Promise<readonly StuckAttempt[]> {
    return this.#recent((await this.#suspect(key)).trials[what] ?? []);
  }

  /** It was survived, or is dealt with: what was counted against it does not count any more. */
  async acquit(key: string, what: string): Promise<void> {
    const suspect = await this.#suspect(key);
    const left = Object.entries(suspect.trials).filter(([tried]) => tried !== what);
    if (left.length === Object.keys(suspect.trials).length) return;
    if (left.length === 0) await this.#options.bucket.remove(suspectKey(key));
    else await this.#options.bucket.put(suspectKey(key), encode({ ...suspect, trials: Object.fromEntries(left) }));
  }

  /**
   * E3: counts what the former owner of a partition was trying when it died.
   * @returns false when it could not be stored
   */
  async blame(partition: string, former: string): Promise<boolean> {
    const { bucket, telemetry } = this.#options;
    const stored = await bucket.get(trialKey(former));
    const trial = stored === undefined ? undefined : Trial.safeParse(parseJson(stored.bytes)).data;
    if (trial === undefined || !trial.key.startsWith(`${partition}.`)) return true;
    const { key, what } = trial;
    const suspect = await this.#suspect(key);
    const attempt = { atMs: trial.atMs, node: former, code: "HF-3102", reason: `its node ended during ${what}` };
    const attempts = [...this.#recent(suspect.trials[what] ?? []), attempt].slice(-ATTEMPTS_REMEMBERED);
    const next: Suspect = { ...suspect, trials: { ...suspect.trials, [what]: attempts } };
    if ((await bucket.put(suspectKey(key), encode(next))) === undefined) return false;
    telemetry.error("actor.suspected", { key, what, attempts: attempts.length, node: former });
    await bucket.remove(trialKey(former));
    return true;
  }

  async #suspect(key: string): Promise<Suspect> {
    const stored = await this.#options.bucket.get(suspectKey(key));
    const suspect = stored === undefined ? undefined : Suspect.safeParse(parseJson(stored.bytes)).data;
    return suspect ?? { v: 1, key, trials: {} };
  }

  #recent(attempts: readonly StuckAttempt[]): readonly StuckAttempt[] {
    const since = this.#options.time.nowMs() - REMEMBERED_MS;
    return attempts.filter(({ atMs }) => atMs >= since);
  }
}

const trialKey = (incarnation: string): string => `trial.${incarnation.replace(":", ".")}`;
const suspectKey = (key: string): string => `suspect.${key}`;

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined; // the schema then says what is missing
  }
}
