import { createCodec } from "@holdfast/codec";
import { actorRefExtension } from "@holdfast/durable";
import { headerBlock, publishStored, readLast, type Link } from "@holdfast/jetstream";
import { systemCrc32 } from "@holdfast/process";
import { actorKey, parseActorKey, shardOf, subjectsOf, type Manifest } from "@holdfast/protocol";

/** Every so many messages of a shard one is acknowledged: the server drops what it cannot buffer. */
const ACKED_EVERY = 1000;
const YIELD_EVERY = 500;

/**
 * Stores `count` actors that sleep: the record of one that a node has written, under other keys, by the node's own codec.
 *
 * @param pattern  key of the actor whose record is copied
 * @throws Error when the server did not store one of them
 */
export async function storeSleepers(link: Link, manifest: Manifest, pattern: string, count: number): Promise<void> {
  const codec = createCodec({ ref: actorRefExtension, crc32: systemCrc32 });
  const subjects = subjectsOf(manifest.ns);
  const subjectOf = (key: string): string =>
    subjects.actorSubject(shardOf(manifest, parseActorKey(key).partition), key);
  const shardOfKey = (key: string): number => shardOf(manifest, parseActorKey(key).partition);
  const stored = await readLast(link, subjects.actorsStream(shardOfKey(pattern)), subjectOf(pattern));
  if (stored === undefined) throw new Error(`${pattern} is not stored`);
  const { header, record } = codec.decodeRecord(stored.bytes);
  if (header.needsWork) throw new Error(`${pattern} does not sleep`);
  const asleep = headerBlock({ "Hf-Work": "0" });

  const sent = Array.from({ length: manifest.shards }, () => 0);
  const acks = Array.from({ length: manifest.shards }, (): Promise<unknown> => Promise.resolve());
  for (let n = 0; n < count; n += 1) {
    const id = `s${n}`;
    const key = actorKey(manifest, "d", record.type, id);
    const shard = shardOfKey(key);
    const bytes = codec.encodeRecord({ ...record, key, id }, { ...header, key });
    const isAcked = (sent[shard] = (sent[shard] ?? 0) + 1) % ACKED_EVERY === 0;
    if (isAcked) {
      await acks[shard]; // two windows in flight
      acks[shard] = acked(link, subjectOf(key), bytes);
    } else link.nc.publish(subjectOf(key), bytes, { headers: asleep });
    if (n % YIELD_EVERY === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(acks);
}

async function acked(link: Link, subject: string, bytes: Uint8Array): Promise<void> {
  const outcome = await publishStored(link, { subject, bytes, headers: { "Hf-Work": "0" } });
  if (outcome.kind !== "accepted") throw new Error(`${subject} was not stored: ${outcome.reason}`);
}
