import { connectNats, watchBucket, type Link } from "@holdfast/jetstream";
import { Lease, subjectsOf } from "@holdfast/protocol";
import { z } from "zod";

const Beat = z.object({ incarnation: z.string() });

/** What an observer sees of nodes and leases, by the clock of the broker. */
export class FleetWatch {
  /** Incarnation → longest time between two heartbeats of it, ms. */
  readonly longestGapMs = new Map<string, number>();
  /** Partition → its lease. */
  readonly leases = new Map<string, Lease>();
  /** Leases that were claimed, as `<partition>@<epoch>`. */
  readonly claims: string[] = [];
  readonly #lastBeatMs = new Map<string, number>();
  readonly #link: Link;

  private constructor(link: Link) {
    this.#link = link;
  }

  static async start(
    nats: { readonly url: string; readonly user: string; readonly password: string },
    namespace: string,
  ): Promise<FleetWatch> {
    const link = await connectNats({
      servers: [nats.url],
      user: nats.user,
      pass: nats.password,
      name: "fleet-watch",
    });
    const watch = new FleetWatch(link);
    await watchBucket(link, {
      bucket: subjectsOf(namespace).fleetBucket,
      onFault: () => undefined,
      deliver: ({ key, bytes, removed, storedAtMs }) => {
        if (removed) return;
        if (key.startsWith("node.")) watch.#beat(bytes, storedAtMs);
        else if (key.startsWith("lease.")) watch.#lease(bytes);
      },
    });
    return watch;
  }

  /** Partitions that an incarnation holds. */
  heldBy(incarnation: string): number {
    return [...this.leases.values()].filter(({ holder, state }) => holder === incarnation && state === "held").length;
  }

  stop(): Promise<void> {
    return this.#link.close();
  }

  #beat(bytes: Uint8Array, storedAtMs: number): void {
    const { incarnation } = Beat.parse(parse(bytes));
    const last = this.#lastBeatMs.get(incarnation);
    this.#lastBeatMs.set(incarnation, storedAtMs);
    if (last === undefined) return;
    this.longestGapMs.set(incarnation, Math.max(this.longestGapMs.get(incarnation) ?? 0, storedAtMs - last));
  }

  #lease(bytes: Uint8Array): void {
    const lease = Lease.parse(parse(bytes));
    if (this.leases.get(lease.partition)?.epoch !== lease.epoch) this.claims.push(`${lease.partition}@${lease.epoch}`);
    this.leases.set(lease.partition, lease);
  }
}

const parse = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes));
