import { createCodec } from "@holdfast/codec";
import { actorRefExtension } from "@holdfast/durable";
import { OrderedReader, streamPosition, watchBucket, type Link } from "@holdfast/jetstream";
import { systemCrc32 } from "@holdfast/process";
import { Lease, shardOf, subjectsOf, type Manifest } from "@holdfast/protocol";
import { waitUntil } from "../harness/wait-until.ts";

/**
 * What the store says of one takeover, in broker time: who claimed what when, and when each live actor's next commit was stored.
 *
 * Owns: its readers. Does not own: what a node says of itself.
 */
export class TakeoverWatch implements AsyncDisposable {
  /** Partition → Unix ms at which its claim by the survivor was stored. */
  readonly claims = new Map<string, number>();
  /** Actor → Unix ms of its first commit by the survivor. */
  readonly commits = new Map<string, number>();
  /** Actor → number of its writes by the victim: one that made it, one when everything it had decided was sent. */
  readonly #written = new Map<string, number>();
  readonly #live: ReadonlySet<string>;
  readonly #beats = new Map<string, () => void>();
  readonly #readers: { stop(): Promise<void> }[] = [];

  private constructor(live: ReadonlySet<string>) {
    this.#live = live;
  }

  /** Begins behind everything stored so far. */
  static async start(
    link: Link,
    manifest: Manifest,
    live: ReadonlySet<string>,
    claim: { readonly by: string; readonly partitions: readonly string[] },
  ): Promise<TakeoverWatch> {
    const watch = new TakeoverWatch(live);
    const subjects = subjectsOf(manifest.ns);
    const codec = createCodec({ ref: actorRefExtension, crc32: systemCrc32 });
    const fail = (fault: Error): never => {
      throw fault;
    };
    for (const shard of new Set([...live].map((key) => shardOf(manifest, key.slice(0, key.indexOf(".")))))) {
      const stream = subjects.actorsStream(shard);
      const { lastSeq } = await streamPosition(link, stream);
      const prefix = subjects.actorSubject(shard, "");
      const reader = await OrderedReader.start(link, {
        stream,
        filters: [`${prefix}>`],
        fromSeq: lastSeq + 1,
        deliver: ({ subject, storedAtMs, bytes }) => {
          const key = subject.slice(prefix.length);
          if (!live.has(key)) return;
          if (codec.decodeHeader(bytes).writer !== claim.by)
            watch.#written.set(key, (watch.#written.get(key) ?? 0) + 1);
          else if (!watch.commits.has(key)) watch.commits.set(key, storedAtMs);
        },
        onFault: fail,
      });
      watch.#readers.push(reader);
    }
    let isCurrent = false;
    const fleet = await watchBucket(link, {
      bucket: subjects.fleetBucket,
      deliver: ({ key, bytes, storedAtMs }) => {
        if (!isCurrent || bytes.length === 0) return;
        if (key.startsWith("node.")) watch.#beats.get(key.slice("node.".length))?.();
        if (!key.startsWith("lease.")) return;
        const lease = Lease.parse(JSON.parse(new TextDecoder().decode(bytes)));
        const isClaim = lease.holder === claim.by && claim.partitions.includes(lease.partition);
        if (isClaim && !watch.claims.has(lease.partition)) watch.claims.set(lease.partition, storedAtMs);
      },
      onFault: fail,
    });
    watch.#readers.push(fleet);
    isCurrent = true;
    return watch;
  }

  /** Resolves when nothing of a live actor is on its way any more but its job. */
  async allAtWork(timeoutMs: number, dump: () => unknown): Promise<void> {
    const atWork = (): number => [...this.#written.values()].filter((writes) => writes === 2).length;
    await waitUntil(`${this.#live.size} live actors are at work`, () => atWork() === this.#live.size, {
      timeoutMs,
      tickMs: 100,
      dump: () => ({ atWork: atWork(), log: dump() }),
    });
  }

  /** Resolves at the next heartbeat of a node: whoever is killed right after it is found dead as late as can be. */
  heartbeat(node: string): Promise<void> {
    return new Promise((resolve) => this.#beats.set(node, resolve));
  }

  /** Resolves when every live actor has committed again. */
  async allCommitted(timeoutMs: number, dump: () => unknown): Promise<void> {
    await waitUntil(
      `${this.#live.size} live actors have committed again`,
      () => this.commits.size === this.#live.size,
      { timeoutMs, dump: () => ({ committed: this.commits.size, claims: this.claims.size, log: dump() }) },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.stop()));
  }
}
