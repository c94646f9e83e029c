import { NamespaceReader } from "@holdfast/client";
import { createCodec } from "@holdfast/codec";
import { actorRefExtension } from "@holdfast/durable";
import { connectNats, openNamespace, renewGenerations, streamPosition, type Link } from "@holdfast/jetstream";
import { createSystemRandom, systemCrc32 } from "@holdfast/process";
import { RuntimeFault, shardOf, subjectsOf } from "@holdfast/protocol";
import { setTimeout as delay } from "node:timers/promises";
import type { NatsOptions } from "./compose.ts";

export interface RenewNamespaceOptions {
  readonly nats: NatsOptions;
  readonly namespace: string;
  readonly replicas?: number;
  /** How long to look for heartbeats, ms; default 3 s. Longer than a heartbeat of any node. */
  readonly watchMs?: number;
}

/**
 * After the broker lost stored data (HF-4006): gives every stream that was created anew, or that ends below what leases had seen of it, a
 * new generation. With all nodes stopped, and the rights of a node.
 *
 * @returns names of the streams with a new generation
 * @throws RuntimeFault HF-4005 when a node is alive, or there is no such namespace; HF-4xxx for NATS
 */
export async function renewNamespace(options: RenewNamespaceOptions): Promise<readonly string[]> {
  const { nats, namespace: ns, replicas } = options;
  const random = createSystemRandom();
  const link = await connectNats({
    servers: nats.servers,
    user: nats.user,
    pass: nats.password,
    inboxPrefix: nats.inboxPrefix,
    timeoutMs: nats.timeoutMs,
    name: "holdfast-renew",
  });
  try {
    await assertNobodyIsAlive(link, ns, options.watchMs ?? 3000);
    const lost = await shortenedStreams(link, ns);
    return await renewGenerations(link, { ns, replicas, newGeneration: () => random.hex(4) }, lost);
  } finally {
    await link.close();
  }
}

async function assertNobodyIsAlive(link: Link, ns: string, watchMs: number): Promise<void> {
  const reader = await readerOf(link, ns);
  const heartbeats = async (): Promise<ReadonlyMap<string, number>> =>
    new Map((await reader.fleet()).nodes.map(({ incarnation, storedAtMs }) => [incarnation, storedAtMs]));
  const before = await heartbeats();
  await delay(watchMs);
  const alive = [...(await heartbeats())].filter(([incarnation, storedAtMs]) => before.get(incarnation) !== storedAtMs);
  if (alive.length === 0) return;
  const names = alive.map(([incarnation]) => incarnation).join(", ");
  throw new RuntimeFault("HF-4005", `Namespace ${ns}: expected no living node, found ${names}. Stop all nodes first.`, {
    facts: { ns },
  });
}

/** Streams of inboxes and records that end below the highest sequence that a lease of the same generation has seen. */
async function shortenedStreams(link: Link, ns: string): Promise<readonly string[]> {
  const subjects = subjectsOf(ns);
  const { manifest, streamCreated } = await openNamespace(link, ns);
  const { leases } = await (await readerOf(link, ns)).fleet();
  const highest = new Map<string, number>();
  const saw = (stream: string, generation: string | undefined, seq: number): void => {
    if (generation === manifest.generations[stream]) highest.set(stream, Math.max(highest.get(stream) ?? 0, seq));
  };
  for (const lease of leases) {
    const shard = shardOf(manifest, lease.partition);
    saw(subjects.inboxStream(shard), lease.generation, lease.highest);
    saw(subjects.actorsStream(shard), lease.records?.generation, lease.records?.highest ?? 0);
  }
  const lost: string[] = [];
  for (const [stream, seen] of highest) {
    const position = await streamPosition(link, stream).catch(asMissing);
    if (position?.created === streamCreated[stream] && position !== undefined && position.lastSeq < seen)
      lost.push(stream);
  }
  return lost;
}

/** One that is missing is created again, which is noticed by its time. */
function asMissing(error: unknown): undefined {
  if (error instanceof RuntimeFault && error.code === "HF-4006") return undefined;
  throw error;
}

async function readerOf(link: Link, ns: string): Promise<NamespaceReader> {
  const { manifest } = await openNamespace(link, ns);
  const codec = createCodec({ ref: actorRefExtension, crc32: systemCrc32 });
  return new NamespaceReader({ link, codec, subjects: subjectsOf(ns), manifest });
}
