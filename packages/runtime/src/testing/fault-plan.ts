// FaultScript and FaultDice — which request of which node goes wrong, and how.
// Owns: the scripted one-shots, the seeded dice.  Does not own: what a fault does to a request (NodeLink).
//   P1 script first     a scripted fault that fits is taken before the dice are thrown
//   P2 one-shot         a scripted fault hits one request (`refuse` as many as it says), then it is gone
//   P3 repeatable       same seed, same node name, same requests: same faults
import { SeededRandom } from "./seeded-random.ts";

/** What a node asks the broker to change. */
export type WriteOperation =
  | "commit"
  | "claim"
  | "checkpoint"
  | "publish"
  | "append"
  | "event"
  | "fleetPut"
  | "fleetCas"
  | "fleetRemove"
  | "blobPut"
  | "trim";

/**
 * One thing that goes wrong with one request.
 *
 * `lostAck`: done, but its answer never comes. With `hold` the caller notices only after `release()`.
 * `lateWrite`: the caller waits in vain, the bytes arrive afterwards, even if the node was killed meanwhile. With `hold` they arrive at
 * `release()`, else a few turns later.
 * `refuse`: certainly not done, `times` times (default 1).
 * `hang`: neither sent nor answered until `release()`, then as if nothing had been.
 * `giveUp`: the port then stops retrying, so that its caller gets `unknown`.
 */
export type ScriptedFault =
  | { readonly kind: "lostAck" | "lateWrite"; readonly hold?: boolean; readonly giveUp?: boolean }
  | { readonly kind: "refuse"; readonly times?: number; readonly retryable?: boolean; readonly giveUp?: boolean }
  | { readonly kind: "hang" };

/** Which request is meant; every field that is present must fit. */
export interface FaultAim {
  readonly node?: string;
  /** Part of the subject (of an actor's request: its key), fleet key or blob name. */
  readonly about?: string;
}

export interface FaultHandle {
  /** Resolves when the fault has hit its request: stored but not acknowledged, held back, refused for the last time, or hanging. */
  readonly happened: Promise<void>;
  release(): void;
}

/** Seeded misfortune of one node: probabilities from 0 (default) to 1, per request or delivery. */
export interface FaultRates {
  readonly seed?: number;
  /** Done, answer lost. */
  readonly lostAckRate?: number;
  /** Not answered; arrives 1 to 20 turns later. */
  readonly lateWriteRate?: number;
  /** Refused; the next try is rolled for anew. */
  readonly refuseThenAcceptRate?: number;
  /** The connection breaks: every answer on its way is lost, readers resume by themselves after a few turns. */
  readonly disconnectRate?: number;
  /** Reads that reject with a time-out (HF-4008). */
  readonly readFailureRate?: number;
  /** `records.load` and `journal.read` answer as of an earlier moment. More hostile than the port allows `load` to be. */
  readonly staleReadRate?: number;
  /** A message is handed over twice in a row. */
  readonly duplicateDeliveryRate?: number;
  /** A message is stored twice, as if its id had been forgotten between two sends. */
  readonly duplicateStoreRate?: number;
  /** Core messages that vanish. */
  readonly coreLossRate?: number;
  /** Each way takes 1 to `1 + jitterTurns` turns. Requests of one node stay in order, as on one connection. */
  readonly jitterTurns?: number;
}

/** A fault as a request meets it. `released` resolves when the scripted hold ends, at once for faults without one. */
export interface DrawnFault {
  readonly kind: ScriptedFault["kind"] | "disconnect";
  readonly giveUp: boolean;
  readonly retryable: boolean;
  readonly happened: () => void;
  readonly released: Promise<void>;
  /** Turns until a late write arrives after `released`. */
  readonly lateTurns: number;
}

interface Planned {
  readonly operations: readonly WriteOperation[];
  readonly aim: FaultAim;
  left: number;
  readonly drawn: DrawnFault;
}

/** Faults that a test aims at single requests. */
export class FaultScript {
  #planned: readonly Planned[] = [];

  /** The next request of one of `operations` that fits `aim` meets `fault`. Faults for the same request are met in the order given. */
  next(operations: WriteOperation | readonly WriteOperation[], fault: ScriptedFault, aim: FaultAim = {}): FaultHandle {
    const happened = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const holds = fault.kind === "hang" || ("hold" in fault && fault.hold);
    if (!holds) released.resolve();
    const drawn: DrawnFault = {
      kind: fault.kind,
      giveUp: "giveUp" in fault && fault.giveUp,
      retryable: fault.kind !== "refuse" || fault.retryable !== false,
      happened: happened.resolve,
      released: released.promise,
      lateTurns: holds ? 0 : 8,
    };
    const left = fault.kind === "refuse" ? (fault.times ?? 1) : 1;
    this.#planned = [...this.#planned, { operations: [operations].flat(), aim, left, drawn }];
    return { happened: happened.promise, release: released.resolve };
  }

  nextCommit(fault: ScriptedFault, aim: FaultAim = {}): FaultHandle {
    return this.next("commit", fault, aim);
  }

  nextPublish(fault: ScriptedFault, aim: FaultAim = {}): FaultHandle {
    return this.next("publish", fault, aim);
  }

  /** P1, P2. @returns undefined when nothing is planned for this request */
  draw(operation: WriteOperation, node: string, about: string): DrawnFault | undefined {
    const hit = this.#planned.find(
      (planned) =>
        planned.operations.includes(operation) &&
        (planned.aim.node ?? node) === node &&
        about.includes(planned.aim.about ?? ""),
    );
    if (hit === undefined) return undefined;
    hit.left -= 1;
    if (hit.left > 0) return { ...hit.drawn, happened: () => undefined };
    this.#planned = this.#planned.filter((planned) => planned !== hit);
    return hit.drawn;
  }
}

const rolled = (kind: DrawnFault["kind"], lateTurns: number): DrawnFault => ({
  kind,
  giveUp: false,
  retryable: true,
  happened: () => undefined,
  released: Promise.resolve(),
  lateTurns,
});

/** The seeded misfortune of one node (P3). */
export class FaultDice {
  readonly #random: SeededRandom;
  readonly #rates: FaultRates;

  constructor(node: string, rates: FaultRates) {
    this.#rates = rates;
    this.#random = new SeededRandom(`${rates.seed ?? 0}/${node}`);
  }

  rollWrite(): DrawnFault | undefined {
    const rates = this.#rates;
    if (this.#random.chance(rates.disconnectRate ?? 0)) return rolled("disconnect", 0);
    if (this.#random.chance(rates.refuseThenAcceptRate ?? 0)) return rolled("refuse", 0);
    if (this.#random.chance(rates.lostAckRate ?? 0)) return rolled("lostAck", 0);
    if (this.#random.chance(rates.lateWriteRate ?? 0)) return rolled("lateWrite", 1 + this.#random.below(20));
    return undefined;
  }

  /** One throw for a rate that is not about writes. */
  hits(
    rate: "readFailureRate" | "staleReadRate" | "duplicateDeliveryRate" | "duplicateStoreRate" | "coreLossRate",
  ): boolean {
    return this.#random.chance(this.#rates[rate] ?? 0);
  }

  /** Turns that one way takes. */
  way(): number {
    const jitter = this.#rates.jitterTurns ?? 0;
    return jitter === 0 ? 1 : 1 + this.#random.below(jitter + 1);
  }
}
