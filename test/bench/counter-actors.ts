import { readLast, type Link } from "@holdfast/jetstream";
import { shardOf, subjectsOf } from "@holdfast/protocol";
import type { Client } from "holdfast";
import { z } from "zod";
import { counterInput } from "./counter-input.ts";

type HoldfastClient = Client["holdfast"];

const CounterContext = z.object({ count: z.number() });
/** Records read, actors started at a time. */
const AT_ONCE = 32;

/**
 * Counters that were started, spread evenly over the shards, and what they were told.
 *
 * Owns: how many sends each of them answered with `applied`. Does not own: the client.
 */
export class CounterActors {
  readonly #client: HoldfastClient;
  readonly #keys: readonly string[];
  readonly #applied: number[];

  private constructor(client: HoldfastClient, keys: readonly string[]) {
    this.#client = client;
    this.#keys = keys;
    this.#applied = keys.map(() => 0);
  }

  /** @throws Error when one of them did not start */
  static async start(client: HoldfastClient, number: number): Promise<CounterActors> {
    const ids = Array.from({ length: number }, (_, n) => idOnShard(client, n));
    await inGroups(ids, async (id) => {
      const started = await client.start("counter", id, counterInput(id), { timeoutMs: 30_000 });
      if (started.kind !== "applied") throw new Error(`start of counter ${id}: answer ${JSON.stringify(started)}`);
    });
    const keys = ids.map((id) => client.key("counter", id));
    return new CounterActors(client, keys);
  }

  /** Shard of each of the first `number` actors. */
  shards(number: number): readonly number[] {
    return this.#keys.slice(0, number).map((key) => shardOfKey(this.#client, key));
  }

  /** One operation per actor: a small event, done when the actor's answer after its commit came. It rejects on any other answer. */
  sends(number: number): readonly (() => Promise<void>)[] {
    return this.#keys.slice(0, number).map((key, n) => async () => {
      const outcome = await this.#client.send(key, { type: "ADD", amount: 1 });
      if (outcome.kind !== "applied") throw new Error(`send to ${key}: answer ${JSON.stringify(outcome)}`);
      this.#applied[n] = (this.#applied[n] ?? 0) + 1;
    });
  }

  /**
   * Compares every record with what was answered.
   *
   * @throws Error that names an actor that lost a message or took one twice
   */
  async verify(number: number): Promise<void> {
    await inGroups(this.#keys.slice(0, number), async (key, n) => {
      const stored = await this.#client.read.actor(key);
      const { count } = CounterContext.parse(stored?.record.snapshot.context);
      const answered = this.#applied[n] ?? 0;
      if (count === answered) return;
      const what = count < answered ? "lost messages" : "applied messages twice";
      throw new Error(`${key} ${what}: its record counts ${count}, ${answered} sends were answered applied`);
    });
  }

  /** Size of one stored record, bytes. */
  async recordBytes(link: Link): Promise<number> {
    const key = this.#keys[0] ?? "";
    const subjects = subjectsOf(this.#client.manifest.ns);
    const shard = shardOfKey(this.#client, key);
    const stored = await readLast(link, subjects.actorsStream(shard), subjects.actorSubject(shard, key));
    return stored?.bytes.length ?? 0;
  }
}

/** Partitions are hashes of ids, which would pile up on some shards: the first id of a series that lies on the wanted one. */
function idOnShard(client: HoldfastClient, n: number): string {
  for (let k = 0; ; k += 1) {
    const id = `c${n}-${k}`;
    if (shardOfKey(client, client.key("counter", id)) === n % client.manifest.shards) return id;
  }
}

const shardOfKey = ({ manifest }: HoldfastClient, key: string): number =>
  shardOf(manifest, key.slice(0, key.indexOf(".")));

async function inGroups<T>(items: readonly T[], work: (item: T, index: number) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) {
    await Promise.all(items.slice(at, at + AT_ONCE).map((item, offset) => work(item, at + offset)));
  }
}
