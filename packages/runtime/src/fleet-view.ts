import { Heartbeat, Lease, Want } from "@holdfast/protocol";
import type { Clock, FleetValue, Telemetry } from "./ports/index.ts";

export interface SeenNode {
  readonly heartbeat: Heartbeat;
  /** Our monotonic clock when its heartbeat last moved. */
  readonly movedAtMs: number;
  /** How many of our own heartbeats were seen by then. */
  readonly ourBeats: number;
}

export interface SeenLease {
  readonly lease: Lease;
  readonly seq: number;
  /** Our monotonic clock when this lease last changed. */
  readonly changedAtMs: number;
}

/**
 * What this node knows of the fleet, from the watched bucket.
 *
 * Owns: the last seen heartbeats, leases and wants. Does not own: decisions about them (`planPlacement`).
 *   V1 a node is dead only when we have seen three of our own heartbeats in the same bucket since its heartbeat last moved, and the TTL
 *      passed on our monotonic clock: an outage of the broker, or of our view of it, stops both, so it kills nobody (F18)
 *   V2 another incarnation of a name is another node (F14)
 */
export class FleetView {
  readonly nodes = new Map<string, SeenNode>();
  readonly leases = new Map<string, SeenLease>();
  readonly wants = new Map<string, Want>();
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #ttlMs: number;
  #ourBeats = 0;
  #lastOwnAtMs: number | undefined;

  constructor(options: { readonly clock: Clock; readonly telemetry: Telemetry; readonly ttlMs: number }) {
    this.#clock = options.clock;
    this.#telemetry = options.telemetry;
    this.#ttlMs = options.ttlMs;
  }

  /** One of our own was seen in the bucket. Several at once, as a planned move makes them, count as one. */
  ownBeatSeen(): void {
    const now = this.#clock.monotonicMs();
    if (this.#lastOwnAtMs !== undefined && now - this.#lastOwnAtMs < this.#ttlMs / 6) return;
    this.#lastOwnAtMs = now;
    this.#ourBeats += 1;
  }

  /** Takes one value of the bucket. Keys that are not about placement are left to others. */
  take(value: FleetValue): void {
    const dot = value.key.indexOf(".");
    const kind = value.key.slice(0, dot);
    if (kind !== "node" && kind !== "lease" && kind !== "want") return;
    const name = value.key.slice(dot + 1);
    if (value.bytes.length === 0) {
      this.#remove(kind, name);
      return;
    }
    const parsed = parseJson(value.bytes);
    if (kind === "node") this.#takeNode(name, Heartbeat.safeParse(parsed).data);
    else if (kind === "lease") this.#takeLease(name, Lease.safeParse(parsed).data, value.seq);
    else {
      const want = Want.safeParse(parsed).data;
      if (want !== undefined) this.wants.set(name, want);
    }
  }

  /** V1. Our own incarnation is never dead to ourselves. */
  isDead(node: SeenNode): boolean {
    return this.#ourBeats - node.ourBeats >= 3 && this.#clock.monotonicMs() - node.movedAtMs >= this.#ttlMs;
  }

  /** Ms until the next of the living nodes will have been silent for a TTL, unless it is heard of before; Infinity when there is none. */
  get msUntilSilence(): number {
    const now = this.#clock.monotonicMs();
    const left = this.liveNodes().map(({ movedAtMs }) => movedAtMs + this.#ttlMs - now);
    return Math.min(...left.filter((ms) => ms > 0));
  }

  isIncarnationAlive(incarnation: string): boolean {
    const node = this.nodes.get(incarnation.slice(0, incarnation.lastIndexOf(":")));
    return (
      node !== undefined &&
      node.heartbeat.incarnation === incarnation &&
      node.heartbeat.state !== "left" &&
      !this.isDead(node)
    );
  }

  /** Live nodes in any state but `left`. */
  liveNodes(): readonly SeenNode[] {
    return [...this.nodes.values()].filter((node) => node.heartbeat.state !== "left" && !this.isDead(node));
  }

  /** Whether a live node says that it still runs this job. */
  inCustody(jobKey: string, except: string): boolean {
    return this.liveNodes().some(
      (node) => node.heartbeat.incarnation !== except && node.heartbeat.custody.includes(jobKey),
    );
  }

  #takeNode(name: string, heartbeat: Heartbeat | undefined): void {
    if (heartbeat === undefined) {
      this.#telemetry.warn("fleet.heartbeat-unreadable", { node: name });
      return;
    }
    this.nodes.set(name, { heartbeat, movedAtMs: this.#clock.monotonicMs(), ourBeats: this.#ourBeats });
  }

  #takeLease(partition: string, lease: Lease | undefined, seq: number): void {
    if (lease === undefined) {
      this.#telemetry.error("fleet.lease-unreadable", { partition });
      return;
    }
    const known = this.leases.get(partition);
    if (known !== undefined && known.seq >= seq) return;
    this.leases.set(partition, { lease, seq, changedAtMs: this.#clock.monotonicMs() });
  }

  #remove(kind: "node" | "lease" | "want", name: string): void {
    if (kind === "node") this.nodes.delete(name);
    else if (kind === "lease") this.leases.delete(name);
    else this.wants.delete(name);
  }
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined; // the schema then says what is missing
  }
}
