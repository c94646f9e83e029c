import { describe, expect, test } from "vitest";
import type { InboxMessage, InboxSubscription } from "../../ports/index.ts";
import type { NodePorts } from "../memory-broker.ts";
import { waitUntil } from "../wait-until.ts";
import {
  acceptedSeq,
  bytesOf,
  keepDoing,
  keyIn,
  plain,
  soon,
  textOf,
  type MakeContractSetup,
} from "./contract-setup.ts";
import { contractSuite } from "./contract-suite.ts";

interface Listening extends InboxSubscription {
  readonly received: readonly InboxMessage[];
  texts(): readonly (string | undefined)[];
}

const numbered = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}${n}`);

const ascending = (seqs: readonly number[] | undefined): readonly number[] => (seqs ?? []).toSorted((x, y) => x - y);

const listen = async (node: NodePorts, partition: string, fromSeq = 1): Promise<Listening> => {
  const received: InboxMessage[] = [];
  const subscription = await node.log.subscribe(partition, fromSeq, (message) => received.push(plain(message)));
  return {
    received,
    texts: () => received.map((message) => textOf(message.bytes)),
    readThrough: (signal) => subscription.readThrough(signal),
    failed: subscription.failed,
    stop: () => subscription.stop(),
  };
};

/** What every MessageLog must do for those who subscribe. Called by `messageLogContract`. */
export function messageDeliveryContract(make: MakeContractSetup): void {
  describe("MessageLog delivery", () => {
    const suite = contractSuite(make);
    const send = (
      node: NodePorts,
      partition: string,
      text: string,
      lane: "inbox" | "control" | "parked" = "inbox",
    ): Promise<number> => acceptedSeq(node.log.publish(lane, keyIn(partition, "a"), bytesOf(text), suite.unique("m")));

    test("a subscriber gets what was stored before and after it came, once, in order", async () => {
      const { a, b } = suite.setup;
      const { main } = suite.partitions.take();
      for (const text of numbered("before", 5)) await send(b, main, text);
      const inbox = await listen(a, main);
      for (const text of numbered("after", 5)) await send(b, main, text);
      await inbox.readThrough(soon());
      expect(inbox.texts()).toEqual([...numbered("before", 5), ...numbered("after", 5)]);
      await inbox.stop();
    });

    test("readThrough resolves only when all that was stored before has been handed over", async () => {
      const { a, b } = suite.setup;
      const { main } = suite.partitions.take();
      const many = numbered("m", 200);
      await Promise.all(many.map((text) => send(b, main, text)));
      const inbox = await listen(a, main);
      await inbox.readThrough(soon());
      expect(inbox.received).toHaveLength(200);
      await inbox.stop();
    });

    test("a delivered message has all that it was published with", async () => {
      const { a, b } = suite.setup;
      const { main } = suite.partitions.take();
      const inbox = await listen(a, main);
      const key = keyIn(main, "a");
      const id = suite.unique("whole");
      const seq = await acceptedSeq(b.log.publish("inbox", key, bytesOf("hello"), id));
      await inbox.readThrough(soon());
      const [stored] = await b.log.fetch("inbox", key, seq, 1);
      expect(inbox.received).toEqual([
        {
          key,
          lane: "inbox",
          principal: undefined,
          seq,
          bytes: bytesOf("hello"),
          storedAtMs: stored?.storedAtMs,
          messageId: id,
        },
      ]);
      await inbox.stop();
    });

    test("partitions that share a stream are delivered apart, each without a gap and in order, while both are written by both nodes", async () => {
      const { a, b } = suite.setup;
      const { main, sameShard } = suite.partitions.take();
      const [ofMain, ofSame] = [await listen(a, main), await listen(b, sameShard)];
      const expected = new Map<string, number[]>([
        [main, []],
        [sameShard, []],
      ]);
      const writer = async (node: NodePorts, name: string): Promise<void> => {
        for (let n = 0; n < 50; n += 1) {
          for (const partition of [main, sameShard]) {
            expected.get(partition)?.push(await send(node, partition, `${name}${n}`));
          }
        }
      };
      await Promise.all([writer(a, "a"), writer(b, "b")]);
      await Promise.all([ofMain.readThrough(soon()), ofSame.readThrough(soon())]);
      expect(ofMain.received.map((message) => message.seq)).toEqual(ascending(expected.get(main)));
      expect(ofSame.received.map((message) => message.seq)).toEqual(ascending(expected.get(sameShard)));
      expect(ofMain.texts().filter((text) => text?.startsWith("a"))).toEqual(numbered("a", 50));
      await Promise.all([ofMain.stop(), ofSame.stop()]);
    });

    test("partitions are delivered apart whose names begin alike", async () => {
      const { a } = suite.setup;
      const { short, long } = suite.partitions.namesakes;
      const inbox = await listen(a, short);
      await send(a, long, "long");
      await send(a, short, "short");
      await inbox.readThrough(soon());
      expect(inbox.texts()).toEqual(["short"]);
      await inbox.stop();
    });

    test("delivery starts at the sequence asked for, also at one that does not exist yet", async () => {
      const { a, b } = suite.setup;
      const { main, sameShard } = suite.partitions.take();
      await send(b, main, "skipped");
      await send(b, sameShard, "foreign");
      const from = await send(b, main, "first");
      const last = await send(b, main, "second");
      const [exact, later] = [await listen(a, main, from), await listen(a, main, last + 2)];
      await send(b, main, "too early");
      await send(b, main, "third");
      await Promise.all([exact.readThrough(soon()), later.readThrough(soon())]);
      expect(exact.texts()).toEqual(["first", "second", "too early", "third"]);
      expect(later.texts()).toEqual(["third"]);
      await Promise.all([exact.stop(), later.stop()]);
    });

    test("two owners of one partition both get everything", async () => {
      const { a, b } = suite.setup;
      const { main } = suite.partitions.take();
      const [one, two] = [await listen(a, main), await listen(b, main)];
      for (const text of numbered("m", 10)) await send(a, main, text);
      await Promise.all([one.readThrough(soon()), two.readThrough(soon())]);
      expect(one.texts()).toEqual(numbered("m", 10));
      expect(two.received).toEqual(one.received);
      await Promise.all([one.stop(), two.stop()]);
    });

    test("inbox, control and outside messages come on one subscription with their lane; parked ones do not", async () => {
      const { a, b } = suite.setup;
      const { main } = suite.partitions.take();
      const inbox = await listen(a, main);
      await send(b, main, "inside");
      await send(b, main, "stop", "control");
      await send(b, main, "parked", "parked");
      await suite.setup.publishOutside(
        { kind: "service", id: "billing_1" },
        keyIn(main, "a"),
        bytesOf("outside"),
        suite.unique("o"),
      );
      await inbox.readThrough(soon());
      expect(inbox.received.map(({ lane, principal, bytes }) => ({ lane, principal, text: textOf(bytes) }))).toEqual([
        { lane: "inbox", principal: undefined, text: "inside" },
        { lane: "control", principal: undefined, text: "stop" },
        { lane: "inbox", principal: { kind: "service", id: "billing_1", roles: [] }, text: "outside" },
      ]);
      await inbox.stop();
    });

    test("the principal comes from the subject, whatever the payload says", async () => {
      const { a } = suite.setup;
      const { main } = suite.partitions.take();
      const inbox = await listen(a, main);
      const forged = bytesOf(JSON.stringify({ principal: { kind: "person", id: "root", roles: ["admin"] } }));
      await suite.setup.publishOutside({ kind: "person", id: "mallory" }, keyIn(main, "a"), forged, suite.unique("o"));
      await inbox.readThrough(soon());
      expect(inbox.received[0]?.principal).toEqual({ kind: "person", id: "mallory", roles: [] });
      await inbox.stop();
    });

    test("readThrough resolves on a partition in which nothing was ever written", async () => {
      const { a, b } = suite.setup;
      const { main, empty } = suite.partitions.take();
      await send(b, main, "elsewhere");
      const inbox = await listen(a, empty);
      await inbox.readThrough(soon());
      expect(inbox.received).toEqual([]);
      await inbox.stop();
    });

    test("readThrough resolves on a quiet partition while its shard is busy", async () => {
      const { a, b } = suite.setup;
      const { main, sameShard } = suite.partitions.take();
      await send(b, main, "mine");
      const inbox = await listen(a, main);
      const stopOthers = keepDoing(() => send(b, sameShard, "foreign"));
      await inbox.readThrough(soon());
      expect(inbox.texts()).toEqual(["mine"]);
      await stopOthers();
      await inbox.stop();
    });

    test("readThrough on a busy partition waits for what was stored before the call, and does not wait for ever", async () => {
      const { a, b } = suite.setup;
      const { main } = suite.partitions.take();
      const inbox = await listen(a, main);
      let acknowledged = 0;
      const stopWriter = keepDoing(async () => {
        acknowledged = await send(b, main, "more");
      });
      for (let round = 0; round < 10; round += 1) {
        const before = acknowledged;
        await inbox.readThrough(soon());
        expect(inbox.received.at(-1)?.seq ?? 0).toBeGreaterThanOrEqual(before);
      }
      await stopWriter();
      await inbox.stop();
    });

    test("readThrough does not wait for messages that were trimmed", async () => {
      const { a, b } = suite.setup;
      const { main, sameShard } = suite.partitions.take();
      const last = await send(b, main, "gone");
      await b.log.trim("inbox", main, last + 1);
      const inbox = await listen(a, main);
      await inbox.readThrough(soon());
      expect(inbox.received).toEqual([]);
      await send(b, sameShard, "foreign");
      await inbox.readThrough(soon());
      await inbox.stop();
    });

    test("readThrough rejects when the caller no longer waits", async () => {
      const { main } = suite.partitions.take();
      const inbox = await listen(suite.setup.a, main);
      await expect(inbox.readThrough(AbortSignal.abort(new Error("drained")))).rejects.toThrow("drained");
      await inbox.stop();
    });

    test("a message trimmed below the cursor leaves no hole: what follows is delivered", async () => {
      const { a, b } = suite.setup;
      const { main } = suite.partitions.take();
      await send(b, main, "gone");
      const kept = await send(b, main, "kept");
      await b.log.trim("inbox", main, kept);
      const inbox = await listen(a, main);
      await send(b, main, "new");
      await inbox.readThrough(soon());
      expect(inbox.texts()).toEqual(["kept", "new"]);
      await inbox.stop();
    });

    test("nothing is delivered after stop; another subscription of the partition goes on", async () => {
      const { a, b } = suite.setup;
      const { main } = suite.partitions.take();
      const [stopped, going] = [await listen(a, main), await listen(a, main)];
      await send(b, main, "one");
      await stopped.readThrough(soon());
      await stopped.stop();
      await send(b, main, "two");
      await going.readThrough(soon());
      expect(stopped.texts()).toEqual(["one"]);
      expect(going.texts()).toEqual(["one", "two"]);
      await going.stop();
    });

    test("a broken connection leaves no gap and repeats nothing", async ({ skip }) => {
      const breakConnection = suite.setup.faults?.breakConnection ?? skip("the setup cannot break a connection");
      const { a, b } = suite.setup;
      const { main } = suite.partitions.take();
      const inbox = await listen(a, main);
      await send(b, main, "before");
      await inbox.readThrough(soon());
      await breakConnection();
      await send(b, main, "meanwhile");
      await waitUntil("the message of the outage is delivered", () => inbox.received.length >= 2, {
        timeoutMs: 15_000,
      });
      await send(b, main, "after");
      await inbox.readThrough(soon());
      expect(inbox.texts()).toEqual(["before", "meanwhile", "after"]);
      await inbox.stop();
    });
  });
}
