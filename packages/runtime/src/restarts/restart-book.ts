import {
  exitKey,
  ExitReport,
  judgeAcknowledgement,
  nodeOf,
  proofOf,
  Restart,
  restartKey,
  type AcknowledgementVerdict,
  type Lease,
  type RestartNote,
} from "@holdfast/protocol";
import type { FleetView } from "../fleet-view.ts";
import type { HoldOrder } from "../holds/hold-after-end.ts";
import type { Clock, FleetRegistry, FleetValue, Random, Telemetry } from "../ports/index.ts";
import type { RuntimeSettings } from "../settings.ts";

export interface RestartBookOptions {
  readonly incarnation: string;
  readonly fleet: Pick<FleetRegistry, "get" | "compareAndSet">;
  readonly view: FleetView;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  readonly settings: Pick<RuntimeSettings, "restartWaitMs">;
  /** One-shot token of the restart that this process is the successor of. */
  readonly successorToken: string | undefined;
  /** Whether another node lives that takes partitions of a pool. */
  readonly isServedElsewhere: (partition: string) => boolean;
}

interface StoredRestart {
  readonly restart: Restart;
  readonly seq: number;
}

/**
 * Planned restarts, as this node knows them.
 *
 * Owns: what was seen of them, the restart of this node once it is prepared. Does not own: leaving, claiming, setting aside.
 *   E1 whoever says that a restart is acknowledged is believed only for what it shows: the secret of the supervisor, or the one-shot token
 *   E2 a partition that was released while no other node lived waits for the acknowledgement, and no longer than `restartWaitMs` after the
 *      process was last known to live: without one it is claimed all the same, and what is to be held then is held
 *   E3 a restart is over when no lease tells of it any more; every node may say so, whoever is first does
 */
export class RestartBook {
  readonly #options: RestartBookOptions;
  readonly #restarts = new Map<string, StoredRestart>();
  readonly #exits = new Map<string, ExitReport>();
  /** Id of a restart → our clock when its process was first not known to live. */
  readonly #goneSinceMs = new Map<string, number>();
  #own: Restart | undefined;

  constructor(options: RestartBookOptions) {
    this.#options = options;
  }

  /** This node has stored that it is to come back. */
  prepared(restart: Restart): void {
    this.#own = restart;
  }

  /** Takes a value of the watched bucket, whatever its key. */
  take({ key, bytes, seq }: FleetValue): void {
    const [kind, node = ""] = key.split(".");
    if (kind === "restart") {
      const restart = Restart.safeParse(parseJson(bytes)).data;
      if (restart === undefined) this.#restarts.delete(node);
      else if ((this.#restarts.get(node)?.seq ?? 0) < seq) this.#restarts.set(node, { restart, seq });
    } else if (kind === "exit") {
      const exit = ExitReport.safeParse(parseJson(bytes)).data;
      if (exit === undefined) this.#exits.delete(node);
      else this.#exits.set(node, exit);
    }
  }

  /** What the lease of a partition says when it is released now. */
  noteFor(partition: string): RestartNote | undefined {
    if (this.#own === undefined) return undefined;
    const { id, node, generation, resume } = this.#own;
    const isWaiting = !this.#options.isServedElsewhere(partition);
    return { id, node, incarnation: generation.incarnation, isWaiting, resume };
  }

  /** E2. */
  isAwaited(partition: string): boolean {
    const { view, clock, settings } = this.#options;
    const lease = view.leases.get(partition)?.lease;
    const note = lease?.restart;
    if (lease?.state !== "released" || note?.isWaiting !== true) return false;
    if (this.#isLiving(note) || this.#verdictOf(note).kind === "acknowledged") return false;
    const sinceMs = this.#goneSinceMs.get(note.id) ?? clock.monotonicMs();
    this.#goneSinceMs.set(note.id, sinceMs);
    return clock.monotonicMs() - sinceMs < settings.restartWaitMs;
  }

  /**
   * Who of a partition that was just claimed is to be set aside for how its former owner ended. Asks the leader when it matters.
   * @throws RuntimeFault HF-4001, HF-4008 when the broker does not answer
   */
  async holdFor({ crash, restart: note }: Lease): Promise<HoldOrder | undefined> {
    if (note?.resume === false)
      return { reason: `restart ${note.id} of ${note.node} was prepared without resume`, isForAll: true };
    if (crash !== undefined) return { reason: `its node ${crash.holder} ended without having left`, isForAll: false };
    if (note?.isWaiting !== true || this.#isLiving(note)) return undefined;
    const verdict = await this.#readVerdict(note);
    if (verdict.kind === "acknowledged") return undefined;
    this.#options.telemetry.warn("restart.unacknowledged", { id: note.id, node: note.node, reason: verdict.why });
    return { reason: `restart ${note.id} of ${note.node}: ${verdict.why}`, isForAll: false };
  }

  /** Takes note of acknowledgements, shows the token of this process, ends what is over (E3). Called with every heartbeat. */
  async tick(): Promise<void> {
    for (const [node, { restart }] of this.#restarts) {
      if (restart.state === "consumed" || restart.state === "abandoned") continue;
      const next = this.#nextOf(restart, this.#exits.get(node));
      if (next !== undefined) await this.#write(node, next);
    }
  }

  #nextOf(restart: Restart, exit: ExitReport | undefined): Restart | undefined {
    const shown = this.#shown(restart);
    const verdict = judgeAcknowledgement(shown, exit);
    if (restart.state === "prepared" && verdict.kind === "acknowledged")
      return { ...restart, state: "acknowledged", acknowledgement: verdict.acknowledgement };
    if (!this.#isOver(restart, verdict.kind === "acknowledged")) return undefined;
    const isAbandoned = verdict.kind === "unacknowledged" && restart.partitions.waiting.length > 0;
    return { ...restart, state: isAbandoned ? "abandoned" : "consumed", settledBy: this.#options.incarnation };
  }

  /** The restart with the token that this process has, if it is the one. */
  #shown(restart: Restart): Restart {
    const { successorToken, incarnation } = this.#options;
    if (restart.acknowledgement !== undefined || successorToken === undefined || this.#isLiving(restart))
      return restart;
    if (restart.generation.incarnation === incarnation || proofOf(successorToken) !== restart.tokenProof)
      return restart;
    return { ...restart, acknowledgement: { source: "successor", incarnation, token: successorToken } };
  }

  #isOver(restart: Restart, isAcknowledged: boolean): boolean {
    const { view, clock, settings } = this.#options;
    const { id, generation, partitions } = restart;
    if (this.#isLiving(restart)) return false;
    const isOpen = (partition: string): boolean => {
      const lease = view.leases.get(partition)?.lease;
      return lease?.restart?.id === id || lease?.holder === generation.incarnation;
    };
    if ([...partitions.moving, ...partitions.waiting].some(isOpen)) return false;
    if (isAcknowledged || partitions.waiting.length > 0) return true;
    const sinceMs = this.#goneSinceMs.get(id) ?? clock.monotonicMs();
    this.#goneSinceMs.set(id, sinceMs);
    return clock.monotonicMs() - sinceMs >= settings.restartWaitMs; // its supervisor may still have a word
  }

  /** Its process has sent a heartbeat since we look. */
  #isLiving({
    incarnation,
    generation,
  }: {
    readonly incarnation?: string;
    readonly generation?: { incarnation: string };
  }) {
    const former = incarnation ?? generation?.incarnation ?? "";
    const { view } = this.#options;
    return view.isIncarnationAlive(former) && (view.nodes.get(nodeOf(former))?.ourBeats ?? 0) > 0;
  }

  #verdictOf(note: RestartNote): AcknowledgementVerdict {
    return this.#judge(note, this.#restarts.get(note.node)?.restart, this.#exits.get(note.node));
  }

  async #readVerdict(note: RestartNote): Promise<AcknowledgementVerdict> {
    const { fleet } = this.#options;
    const [restart, exit] = await Promise.all([fleet.get(restartKey(note.node)), fleet.get(exitKey(note.node))]);
    for (const value of [restart, exit]) if (value !== undefined) this.take(value);
    return this.#verdictOf(note);
  }

  /** E1. */
  #judge(note: RestartNote, restart: Restart | undefined, exit: ExitReport | undefined): AcknowledgementVerdict {
    if (restart?.id !== note.id || restart.generation.incarnation !== note.incarnation)
      return { kind: "unacknowledged", why: "nothing is stored of it" };
    return judgeAcknowledgement(restart, exit);
  }

  async #write(node: string, restart: Restart): Promise<void> {
    const { fleet, random, telemetry } = this.#options;
    const stored = this.#restarts.get(node);
    const next = { ...restart, token: random.hex(8) };
    const bytes = new TextEncoder().encode(JSON.stringify(next));
    const outcome = await fleet.compareAndSet(restartKey(node), bytes, stored?.seq ?? 0, next.token);
    if (outcome.kind !== "committed") return; // somebody was faster, or the next heartbeat tries again
    this.take({ key: restartKey(node), bytes, seq: outcome.seq, storedAtMs: 0 });
    telemetry.info(`restart.${next.state}`, { id: next.id, node });
  }
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined; // the schema then says what is missing
  }
}
