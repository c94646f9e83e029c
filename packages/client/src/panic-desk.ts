import { compareAndSet, readLast, serverTimeMs, type Link } from "@holdfast/jetstream";
import {
  NEVER_RAISED,
  PANIC_KEY,
  PanicFlag,
  parsePanic,
  principalToken,
  RuntimeFault,
  type PanicState,
  type Principal,
  type Subjects,
} from "@holdfast/protocol";
import { setTimeout as delay } from "node:timers/promises";
import { fleetOverview, type NodeOverview } from "./fleet-overview.ts";
import type { NamespaceReader } from "./namespace-reader.ts";

export interface PanicDeskOptions {
  readonly link: Link;
  readonly subjects: Subjects;
  readonly principal: Principal;
  readonly randomHex: (bytes: number) => string;
  readonly read: Pick<NamespaceReader, "fleet">;
}

/** Who has stopped, and who has not said so. */
export interface PanicAnswers {
  readonly revision: number;
  /** Nodes whose heartbeat carries the revision: they run nothing. */
  readonly stopped: readonly string[];
  /** Live nodes that have not answered in time. */
  readonly unanswered: readonly string[];
  /** Nodes that have not been heard of for a while, and have not left: each stops when it wakes. */
  readonly silent: readonly string[];
}

const LOOK_MS = 50;
/** A node that is silent for longer than this is dead for whoever asks. */
const FORGOTTEN_MS = 600_000;

/**
 * The stop flag of a namespace, as an operator uses it.
 *
 *   P1 raising it twice is raising it once; only `clear` lifts it
 *   P2 of two who write at the same time one is told that the other was faster
 */
export class PanicDesk {
  readonly #options: PanicDeskOptions;

  constructor(options: PanicDeskOptions) {
    this.#options = options;
  }

  async state(): Promise<PanicState> {
    return (await readPanic(this.#options.link, this.#options.subjects)) ?? NEVER_RAISED;
  }

  /**
   * Stops the whole fleet: no intake, no job, no model call.
   * @returns the flag as it is stored, whoever raised it (P1)
   * @throws RuntimeFault HF-3105 (P2), HF-4007 without the right, HF-4008 when nobody knows whether it was stored
   */
  raise(reason: string): Promise<PanicState> {
    const by = principalToken(this.#options.principal);
    return this.#write(() => ({ state: "raised", by, reason: reason.slice(0, 400) }));
  }

  /** Lifts it. What it cut off stays held until an operator lets it go on. @returns the flag as it is stored @throws as `raise` */
  clear(): Promise<PanicState> {
    const clearedBy = principalToken(this.#options.principal);
    return this.#write(({ by, reason }) => ({ state: "cleared", by, reason, clearedBy }));
  }

  /** Waits until every live node has said that it obeys a revision, or the time is over. */
  async answers(revision: number, timeoutMs: number): Promise<PanicAnswers> {
    for (const endMs = performance.now() + timeoutMs; ; await delay(LOOK_MS)) {
      const nodes = await this.#present();
      const named = (wanted: (node: NodeOverview) => boolean): readonly string[] =>
        nodes.filter(wanted).map(({ name }) => name);
      const obeys = ({ stopRevision = 0 }: NodeOverview): boolean => stopRevision >= revision;
      const answers: PanicAnswers = {
        revision,
        stopped: named(obeys),
        unanswered: named((node) => !obeys(node) && node.state !== "silent"),
        silent: named((node) => !obeys(node) && node.state === "silent"),
      };
      if (answers.unanswered.length === 0 || performance.now() >= endMs) return answers;
    }
  }

  async #present(): Promise<readonly NodeOverview[]> {
    const { link, subjects, read } = this.#options;
    const fleet = await read.fleet();
    const nowMs = (await serverTimeMs(link, `KV_${subjects.fleetBucket}`)) ?? Date.now();
    const { nodes } = fleetOverview({ pools: {}, shards: 1 }, fleet, nowMs);
    return nodes.filter(({ state, silentMs }) => state !== "left" && silentMs < FORGOTTEN_MS);
  }

  async #write(make: (before: PanicState) => Omit<PanicFlag, "v" | "token">): Promise<PanicState> {
    const { link, subjects, randomHex } = this.#options;
    const before = await this.state();
    const flag: PanicFlag = { v: 1, ...make(before), token: randomHex(12) };
    if (before.isRaised === (flag.state === "raised")) return before; // P1
    const outcome = await compareAndSet(link, {
      stream: `KV_${subjects.fleetBucket}`,
      subject: `$KV.${subjects.fleetBucket}.${PANIC_KEY}`,
      bytes: new TextEncoder().encode(JSON.stringify(flag)),
      expectedSeq: before.revision,
      token: flag.token,
      tokenOf: (bytes) => PanicFlag.safeParse(parseJson(bytes)).data?.token,
    });
    if (outcome.kind === "committed") return parsePanic(flag, outcome.seq);
    if (outcome.kind === "stale")
      throw new RuntimeFault("HF-3105", "Stop flag: somebody else has just written it. Look at it, then try again."); // P2
    throw new RuntimeFault("HF-4008", `Stop flag: ${outcome.reason}. Try again; doing so twice changes nothing more.`);
  }
}

/** @returns undefined when there never was one */
export async function readPanic(link: Link, subjects: Subjects): Promise<PanicState | undefined> {
  const subject = `$KV.${subjects.fleetBucket}.${PANIC_KEY}`;
  const stored = await readLast(link, `KV_${subjects.fleetBucket}`, subject);
  return stored === undefined ? undefined : parsePanic(parseJson(stored.bytes), stored.seq);
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined; // counts as raised
  }
}
