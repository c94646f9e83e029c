import { NEVER_RAISED, PANIC_KEY, parsePanic, type PanicState } from "@holdfast/protocol";
import type { FleetRegistry, FleetValue, Telemetry } from "../ports/index.ts";

export interface StopFlagOptions {
  readonly fleet: Pick<FleetRegistry, "get">;
  readonly telemetry: Telemetry;
  /** The fleet was stopped, or is no longer: called with every change, before anything else is done about it. */
  readonly changed: () => void;
}

/**
 * Whether the fleet is stopped, as this node knows it.
 *
 * Owns: the newest flag it has seen. Does not own: what a node does about it.
 *   S1 a flag that cannot be read counts as raised; one that was removed stays what it was: only a cleared flag lifts anything
 *   S2 a flag that was raised and cleared unseen has another revision than before, and counts as seen raised
 *   S3 a claim is followed by a leader read: the flag and the leases lie in one stream, so a flag from before the claim is seen (F34)
 */
export class StopFlag {
  readonly #options: StopFlagOptions;
  #state: PanicState = NEVER_RAISED;

  constructor(options: StopFlagOptions) {
    this.#options = options;
  }

  get state(): PanicState {
    return this.#state;
  }

  get isRaised(): boolean {
    return this.#state.isRaised;
  }

  /** Takes a value of the watched bucket, whatever its key. */
  take({ key, bytes, seq }: FleetValue): void {
    if (key !== PANIC_KEY || bytes.length === 0 || seq <= this.#state.revision) return; // S1
    this.#state = parsePanic(parseJson(bytes), seq);
    const { isRaised, by, reason } = this.#state;
    this.#options.telemetry.warn(isRaised ? "fleet.stopped" : "fleet.stop-lifted", { revision: seq, by, reason });
    this.#options.changed();
  }

  /** S3. @throws RuntimeFault HF-4001, HF-4008 when the broker does not answer */
  async read(): Promise<PanicState> {
    const stored = await this.#options.fleet.get(PANIC_KEY);
    if (stored !== undefined) this.take(stored);
    return this.#state;
  }
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined; // S1
  }
}
