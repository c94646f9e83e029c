import { publishStored, type Link, type OpenNamespace } from "@holdfast/jetstream";
import { composeNatsPorts, type NatsPorts } from "@holdfast/nats";
import { RuntimeFault, subjectsOf, type Subjects } from "@holdfast/protocol";
import type { InboxMessage, InboxSubscription } from "@holdfast/runtime/ports";
import { SeededRandom } from "@holdfast/runtime/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { askApi, bytesOf, newToken, startBroker, textOf, tokenOf, type BrokerFixture } from "./jetstream-fixture.ts";
import type { Proxy } from "./jetstream-proxy.ts";

/** Partitions of one shard: the fixture's namespaces have two shards. */
const SHARERS = ["d-0", "d-2", "d-4", "d-6"];

let broker: BrokerFixture;
beforeAll(async () => {
  broker = await startBroker();
});
afterAll(() => broker.close());

const soon = (): AbortSignal => AbortSignal.timeout(20_000);
const Consumers = z.object({
  consumers: z.array(z.object({ config: z.object({ opt_start_seq: z.number().default(1) }) })).default([]),
});

interface Listening {
  readonly subscription: InboxSubscription;
  readonly received: InboxMessage[];
}

/** A node's log over a namespace of its own, read and written by the test. */
class Shard {
  readonly link: Link;
  readonly ports: NatsPorts;
  readonly subjects: Subjects;
  readonly stream: string;
  readonly proxy: Proxy;
  readonly faults: RuntimeFault[] = [];

  private constructor(link: Link, far: Link, proxy: Proxy, namespace: OpenNamespace) {
    this.link = link;
    this.proxy = proxy;
    this.subjects = subjectsOf(namespace.manifest.ns);
    this.stream = this.subjects.inboxStream(0);
    this.ports = composeNatsPorts(far, namespace, { tokenOf, onFault: (fault) => this.faults.push(fault) });
  }

  static async make(): Promise<Shard> {
    const link = await broker.connect();
    const proxy = await broker.proxy();
    return new Shard(link, await broker.connect({ via: proxy }), proxy, await broker.namespace(link));
  }

  async publish(partition: string, text: string): Promise<number> {
    const subject = this.subjects.inbox(`${partition}.probe.a`);
    const outcome = await publishStored(this.link, { subject, bytes: bytesOf(text), messageId: newToken() });
    return outcome.kind === "accepted" ? outcome.seq : expect.fail(`publish: ${outcome.kind}`);
  }

  async listen(partition: string, fromSeq = 1, deliver?: () => void): Promise<Listening> {
    const received: InboxMessage[] = [];
    const subscription = await this.ports.log.subscribe(partition, fromSeq, (message) => {
      received.push(message);
      deliver?.();
    });
    return { subscription, received };
  }

  async consumers(): Promise<z.infer<typeof Consumers>["consumers"]> {
    return Consumers.parse(JSON.parse((await askApi(this.link, `CONSUMER.LIST.${this.stream}`)).text)).consumers;
  }

  /** One reader for all of these, who were read through. */
  async shared(partitions: readonly string[] = SHARERS): Promise<readonly Listening[]> {
    const all = await Promise.all(partitions.map((partition) => this.listen(partition)));
    await Promise.all(all.map(({ subscription }) => subscription.readThrough(soon())));
    await waitUntil("they share a reader", async () => (await this.consumers()).length === 1);
    return all;
  }
}

const texts = ({ received }: Listening): readonly (string | undefined)[] => received.map(({ bytes }) => textOf(bytes));

describe("ShardInbox", () => {
  test("S2: partitions of a shard that were read through share one consumer; each gets its own messages, once; the last to leave takes it along", async () => {
    const shard = await Shard.make();
    for (const partition of SHARERS) await shard.publish(partition, `${partition} before`);
    const all = await shard.shared();
    for (const partition of SHARERS) await shard.publish(partition, `${partition} after`);
    await Promise.all(all.map(({ subscription }) => subscription.readThrough(soon())));
    expect(all.map(texts)).toEqual(SHARERS.map((partition) => [`${partition} before`, `${partition} after`]));
    await Promise.all(all.map(({ subscription }) => subscription.stop()));
    await waitUntil("no consumer is left", async () => (await shard.consumers()).length === 0);
  });

  test("S2: who comes is taken in without reading again what was handed over; who leaves is left out", async () => {
    const shard = await Shard.make();
    const quiet = await shard.publish("d-0", "long ago");
    for (let n = 0; n < 50; n += 1) await shard.publish("d-2", `${n}`);
    const [, , ...gone] = await shard.shared();
    const [first] = await shard.consumers();
    expect(first?.config.opt_start_seq).toBeGreaterThan(quiet + 50);
    await Promise.all(gone.map(({ subscription }) => subscription.stop()));
    await shard.publish("d-4", "while nobody listens");
    const back = await shard.listen("d-4");
    await back.subscription.readThrough(soon());
    await waitUntil("it shares again", async () => (await shard.consumers()).length === 1);
    await shard.publish("d-4", "shared");
    await back.subscription.readThrough(soon());
    expect(texts(back)).toEqual(["while nobody listens", "shared"]);
    expect(gone.map(texts)).toEqual([[], []]);
  });

  test("S3: while partitions come and go under load, and connections break, each gets every message once, in order", async () => {
    const seed = 20;
    const random = new SeededRandom(`shard-inbox/${seed}`);
    const shard = await Shard.make();
    const stored = new Map(SHARERS.map((partition): [string, number[]] => [partition, []]));
    const over = new AbortController();
    const writers = SHARERS.map(async (partition) => {
      while (!over.signal.aborted) stored.get(partition)?.push(await shard.publish(partition, "x"));
    });
    const seen: { readonly partition: string; readonly fromSeq: number; readonly listening: Listening }[] = [];
    const come = async (partition: string, fromSeq: number): Promise<Listening> => {
      const listening = await shard.listen(partition, fromSeq);
      seen.push({ partition, fromSeq, listening });
      await listening.subscription.readThrough(soon());
      return listening;
    };
    const life = async (partition: string): Promise<void> => {
      let next = 1;
      for (let round = 0; round < 4; round += 1) {
        const listening = await come(partition, next);
        const enough = listening.received.length + 20 + random.below(200);
        await waitUntil("some more came", () => listening.received.length >= enough, { timeoutMs: 30_000 });
        await listening.subscription.stop();
        next = (listening.received.at(-1)?.seq ?? 0) + 1;
      }
    };
    let areOver = false;
    const lives = Promise.all(SHARERS.map(life)).finally(() => (areOver = true));
    const cuts = (async () => {
      // When they come and go too fast to share, the cut meets readers of their own; after the last has left there is nothing to cut.
      for (let n = 0; n < 2; n += 1) {
        await waitUntil("they share", async () => areOver || (await shard.consumers()).length === 1, {
          timeoutMs: 30_000,
        });
        shard.proxy.cut();
      }
    })();
    await Promise.all([lives, cuts]);
    over.abort();
    await Promise.all(writers);
    for (const { partition, fromSeq, listening } of seen) {
      const last = listening.received.at(-1)?.seq ?? 0;
      const expected = stored.get(partition)?.filter((seq) => seq >= fromSeq && seq <= last);
      expect(
        listening.received.map(({ seq }) => seq),
        `${partition} from ${fromSeq}, seed ${seed}`,
      ).toEqual(expected);
    }
    expect(shard.faults).toEqual([]);
  });

  test("S3: a broken connection leaves no gap for those who share, and repeats nothing", async () => {
    const shard = await Shard.make();
    const all = await shard.shared();
    for (const partition of SHARERS) await shard.publish(partition, "before");
    shard.proxy.cut();
    for (const partition of SHARERS) await shard.publish(partition, "meanwhile");
    await waitUntil("what came meanwhile was read", () => all.every(({ received }) => received.length === 2));
    await Promise.all(all.map(({ subscription }) => subscription.readThrough(soon())));
    expect(all.map(texts)).toEqual(SHARERS.map(() => ["before", "meanwhile"]));
  });

  test("S3: what the network lost on its way to a reader of one partition is not lost when that gives way to a shared one", async () => {
    const shard = await Shard.make();
    const first = await shard.listen("d-0");
    await first.subscription.readThrough(soon());
    shard.proxy.swallowAnswers(true);
    await shard.publish("d-0", "swallowed");
    await waitUntil("its delivery was lost", () => shard.proxy.swallowed().includes("swallowed"));
    shard.proxy.swallowAnswers(false);
    const second = await shard.listen("d-2");
    await second.subscription.readThrough(soon());
    await waitUntil("they share a reader", async () => (await shard.consumers()).length === 1);
    await first.subscription.readThrough(soon());
    expect(texts(first)).toEqual(["swallowed"]);
  });

  test("S4: lost data is told to every partition that shares the reader, and to the notices once", async () => {
    const shard = await Shard.make();
    const all = await shard.shared();
    await askApi(shard.link, `STREAM.DELETE.${shard.stream}`);
    await waitUntil("everybody was told", () => all.every(({ subscription }) => subscription.failed.aborted));
    const reasons: readonly unknown[] = all.map(({ subscription }) => subscription.failed.reason);
    for (const reason of reasons) expect(reason).toMatchObject({ code: "HF-4006" });
    for (const { subscription } of all)
      await expect(subscription.readThrough(soon())).rejects.toMatchObject({ code: "HF-3008" });
    expect(shard.faults.map(({ code }) => code)).toEqual(["HF-4006"]);
  });

  test("S4: a receiver that throws ends its own partition, which is told, and nobody else's", async () => {
    const shard = await Shard.make();
    const broken = await shard.listen("d-0", 1, () => {
      throw new TypeError("receiver");
    });
    const other = await shard.listen("d-2");
    for (const { subscription } of [broken, other]) await subscription.readThrough(soon());
    await waitUntil("they share a reader", async () => (await shard.consumers()).length === 1);
    await shard.publish("d-0", "1");
    await shard.publish("d-2", "2");
    await waitUntil("it was told", () => broken.subscription.failed.aborted);
    await other.subscription.readThrough(soon());
    expect(broken.subscription.failed.reason).toMatchObject({ code: "HF-4001", cause: new TypeError("receiver") });
    expect(other.subscription.failed.aborted).toBe(false);
    expect(texts(other)).toEqual(["2"]);
  });

  test("B4: stop is no failure", async () => {
    const shard = await Shard.make();
    const all = await shard.shared();
    await Promise.all(all.map(({ subscription }) => subscription.stop()));
    expect(all.map(({ subscription }) => subscription.failed.aborted)).toEqual(SHARERS.map(() => false));
  });
});
