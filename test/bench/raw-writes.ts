import { compareAndSet, type Link } from "@holdfast/jetstream";
import { subjectsOf } from "@holdfast/protocol";
import { createSystemRandom } from "@holdfast/process";
import { NAMESPACE } from "./bench-world.ts";

const VALUE_BYTES = 1024;
const TOKEN_HEX = 16;

/**
 * Bare compare-and-sets of 1 KiB values: what the store alone can do for this process. The same buckets as the actors' records, keys beside
 * those of the actors.
 *
 * @param set names the keys; one that was not used before
 * @param shards shard of each key
 * @returns one operation per key, each of which writes the next value of its key; it rejects when that was not committed
 */
export function rawWrites(link: Link, set: string, shards: readonly number[]): readonly (() => Promise<void>)[] {
  const subjects = subjectsOf(NAMESPACE);
  const random = createSystemRandom();
  const template = Buffer.from(random.hex(VALUE_BYTES / 2), "latin1");
  const tokenOf = (bytes: Uint8Array): string => Buffer.from(bytes.subarray(0, TOKEN_HEX)).toString("latin1");
  return shards.map((shard, n) => {
    const stream = subjects.actorsStream(shard);
    const subject = subjects.actorSubject(shard, `raw.${set}.k${n}`);
    let expectedSeq = 0;
    return async () => {
      const token = random.hex(TOKEN_HEX / 2);
      const bytes = Buffer.from(template);
      bytes.latin1Write(token);
      const outcome = await compareAndSet(link, { stream, subject, bytes, expectedSeq, token, tokenOf });
      if (outcome.kind !== "committed") throw new Error(`compare-and-set of ${subject}: ${JSON.stringify(outcome)}`);
      expectedSeq = outcome.seq;
    };
  });
}
