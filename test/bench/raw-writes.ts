import { jetstream } from "@nats-io/jetstream";
import { compareAndSet, type Link } from "@holdfast/jetstream";
import { subjectsOf } from "@holdfast/protocol";
import { createSystemRandom } from "@holdfast/process";
import { NAMESPACE } from "./bench-world.ts";

const VALUE_BYTES = 1024;
const TOKEN_HEX = 16;

/** Replaces the value of one key, once. @returns sequence of the new value */
type Write = (
  stream: string,
  subject: string,
  bytes: Uint8Array,
  expectedSeq: number,
  token: string,
) => Promise<number>;

/**
 * Bare compare-and-sets of 1 KiB values by the NATS client's own publish with an expectation: what the store alone can do for a program
 * that uses the client as its documentation says. The measure of the targets.
 */
export function rawWrites(link: Link, set: string, shards: readonly number[]): Load {
  const js = jetstream(link.nc, { timeout: 10_000 });
  return writes(set, shards, async (_stream, subject, bytes, expectedSeq) => {
    const { seq } = await js.publish(subject, bytes, { expect: { lastSubjectSequence: expectedSeq } });
    return seq;
  });
}

/** The same by this project's own primitive, which is faster than the client's. Printed beside it, measured against nothing. */
export function ownWrites(link: Link, set: string, shards: readonly number[]): Load {
  const tokenOf = (bytes: Uint8Array): string => Buffer.from(bytes.subarray(0, TOKEN_HEX)).toString("latin1");
  return writes(set, shards, async (stream, subject, bytes, expectedSeq, token) => {
    const outcome = await compareAndSet(link, { stream, subject, bytes, expectedSeq, token, tokenOf });
    if (outcome.kind !== "committed") throw new Error(`compare-and-set of ${subject}: ${JSON.stringify(outcome)}`);
    return outcome.seq;
  });
}

/** One operation per key, each of which writes the next value of its key; it rejects when that was not committed. */
export type Load = readonly (() => Promise<void>)[];

/**
 * Keys beside those of the actors, in the same buckets.
 *
 * @param set names the keys; one that was not used before
 * @param shards shard of each key
 */
function writes(set: string, shards: readonly number[], write: Write): Load {
  const subjects = subjectsOf(NAMESPACE);
  const random = createSystemRandom();
  const template = Buffer.from(random.hex(VALUE_BYTES / 2), "latin1");
  return shards.map((shard, n) => {
    const stream = subjects.actorsStream(shard);
    const subject = subjects.actorSubject(shard, `raw.${set}.k${n}`);
    let expectedSeq = 0;
    return async () => {
      const token = random.hex(TOKEN_HEX / 2);
      const bytes = Buffer.from(template);
      bytes.write(token, "latin1");
      expectedSeq = await write(stream, subject, bytes, expectedSeq, token);
    };
  });
}
