import type { ActorKey } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import type { InboxMessage, PublishOutcome } from "../../ports/index.ts";
import { acceptedSeq, bytesOf, keyIn, plain, textOf, type MakeContractSetup } from "./contract-setup.ts";
import { contractSuite } from "./contract-suite.ts";
import { messageDeliveryContract } from "./message-delivery.contract.ts";

const texts = (messages: readonly InboxMessage[]): readonly (string | undefined)[] =>
  messages.map((message) => textOf(message.bytes));

/** What every MessageLog must do. */
export function messageLogContract(make: MakeContractSetup): void {
  describe("MessageLog", () => {
    const suite = contractSuite(make);
    const freshKey = (id = "a"): ActorKey => keyIn(suite.partitions.take().main, id);
    const send = (
      key: ActorKey,
      text: string,
      lane: "inbox" | "control" | "parked" = "inbox",
      id = suite.unique("m"),
    ): Promise<PublishOutcome> => suite.setup.a.log.publish(lane, key, bytesOf(text), id);
    const fetch = async (
      lane: "inbox" | "parked",
      key: ActorKey,
      fromSeq = 1,
      limit = 100,
    ): Promise<readonly InboxMessage[]> => (await suite.setup.b.log.fetch(lane, key, fromSeq, limit)).map(plain);

    test("an accepted message is stored with all that it was published with", async () => {
      const key = freshKey();
      const seq = await acceptedSeq(send(key, "hello", "inbox", "id-of-hello"));
      expect(await fetch("inbox", key)).toEqual([
        {
          key,
          lane: "inbox",
          principal: undefined,
          seq,
          bytes: bytesOf("hello"),
          storedAtMs: expect.any(Number),
          messageId: "id-of-hello",
        },
      ]);
    });

    test("a message id is accepted once: the second time is a duplicate with the sequence of the first", async () => {
      const key = freshKey();
      const id = suite.unique("same");
      const seq = await acceptedSeq(send(key, "first", "inbox", id));
      expect(await suite.setup.b.log.publish("inbox", key, bytesOf("second"), id)).toEqual({
        kind: "accepted",
        seq,
        duplicate: true,
      });
      expect(texts(await fetch("inbox", key))).toEqual(["first"]);
    });

    test("of two nodes that publish one id at once, one stores it and both get its sequence", async () => {
      const key = freshKey();
      for (let round = 1; round <= 10; round += 1) {
        const id = suite.unique("raced");
        const outcomes = await Promise.all([
          suite.setup.a.log.publish("inbox", key, bytesOf(`a${round}`), id),
          suite.setup.b.log.publish("inbox", key, bytesOf(`b${round}`), id),
        ]);
        const stored = (await fetch("inbox", key)).filter((message) => message.messageId === id);
        expect(stored).toHaveLength(1);
        const seq = stored[0]?.seq;
        expect(outcomes).toContainEqual({ kind: "accepted", seq, duplicate: false });
        expect(outcomes).toContainEqual({ kind: "accepted", seq, duplicate: true });
      }
    });

    test("ids are known over all keys and lanes of a shard: an id used for another key swallows the message", async () => {
      const { main, sameShard } = suite.partitions.take();
      const id = suite.unique("reused");
      const seq = await acceptedSeq(send(keyIn(main, "a"), "stored", "inbox", id));
      const swallowed = { kind: "accepted", seq, duplicate: true };
      expect(await send(keyIn(main, "b"), "swallowed", "inbox", id)).toEqual(swallowed);
      expect(await send(keyIn(sameShard, "a"), "swallowed", "inbox", id)).toEqual(swallowed);
      expect(await send(keyIn(main, "a"), "swallowed", "control", id)).toEqual(swallowed);
      expect(await fetch("inbox", keyIn(main, "b"))).toEqual([]);
      expect(await fetch("inbox", keyIn(sameShard, "a"))).toEqual([]);
    });

    test("a message above the broker's limit is refused for good and not stored", async () => {
      const key = freshKey();
      expect(await send(key, "x".repeat(1_200_000))).toMatchObject({ kind: "refused", retryable: false });
      expect(await fetch("inbox", key)).toEqual([]);
    });

    test("a full stream refuses for now, keeps what it has, and takes the same message when there is room", async ({
      skip,
    }) => {
      const fillInbox = suite.setup.faults?.fillInbox ?? skip("the setup cannot fill the inbox");
      const { main } = suite.partitions.take();
      const key = keyIn(main, "a");
      await acceptedSeq(send(key, "kept"));
      const undo = await fillInbox(main);
      const id = suite.unique("refused");
      expect(await send(key, "refused", "inbox", id)).toMatchObject({ kind: "refused", retryable: true });
      expect(texts(await fetch("inbox", key))).toEqual(["kept"]);
      await undo();
      expect(await send(key, "now", "inbox", id)).toMatchObject({ kind: "accepted", duplicate: false });
      expect(texts(await fetch("inbox", key))).toEqual(["kept", "now"]);
    });

    test("after a lost acknowledgement the same id may be sent again: it is stored once", async ({ skip }) => {
      const loseNextAck = suite.setup.faults?.loseNextAck ?? skip("the setup cannot lose an acknowledgement");
      const key = freshKey();
      const id = suite.unique("lost");
      const lost = await loseNextAck();
      const sending = send(key, "once", "inbox", id);
      await lost.happened;
      await lost.release();
      expect((await sending).kind).not.toBe("refused");
      const stored = await fetch("inbox", key);
      expect(texts(stored)).toEqual(["once"]);
      expect(await send(key, "once", "inbox", id)).toEqual({ kind: "accepted", seq: stored[0]?.seq, duplicate: true });
      expect(await fetch("inbox", key)).toHaveLength(1);
    });

    test("a publish that arrives after its own repetition is stored once", async ({ skip }) => {
      const delayNextWrite = suite.setup.faults?.delayNextWrite ?? skip("the setup cannot delay a write");
      const key = freshKey();
      const id = suite.unique("late");
      const late = await delayNextWrite();
      expect((await send(key, "once", "inbox", id)).kind).not.toBe("refused");
      const seq = await acceptedSeq(send(key, "once", "inbox", id));
      await late.release();
      await acceptedSeq(send(key, "after"));
      const stored = await fetch("inbox", key);
      expect(texts(stored)).toEqual(["once", "after"]);
      expect(stored[0]?.seq).toBe(seq);
    });

    test("fetch pages: oldest first, from a sequence on, at most so many, only of the key", async () => {
      const { main, sameShard } = suite.partitions.take();
      const key = keyIn(main, "a");
      const seqs: number[] = [];
      for (let n = 1; n <= 7; n += 1) {
        seqs.push(await acceptedSeq(send(key, `a${n}`)));
        await acceptedSeq(send(keyIn(main, "ab"), `ab${n}`));
        await acceptedSeq(send(keyIn(sameShard, "a"), `other${n}`));
      }
      const first = await fetch("inbox", key, 1, 3);
      expect(texts(first)).toEqual(["a1", "a2", "a3"]);
      const second = await fetch("inbox", key, (first[2]?.seq ?? 0) + 1, 3);
      expect(texts(second)).toEqual(["a4", "a5", "a6"]);
      expect(texts(await fetch("inbox", key, seqs[6], 3))).toEqual(["a7"]);
      expect(await fetch("inbox", key, (seqs[6] ?? 0) + 1, 3)).toEqual([]);
      expect(await fetch("inbox", keyIn(main, "nobody"), 1, 3)).toEqual([]);
    });

    test("fetch gives what a subscription delivers: messages from inside, from outside with their principal, and of the control lane, in order", async () => {
      const key = freshKey();
      await acceptedSeq(send(key, "inside"));
      await acceptedSeq(send(key, "stop", "control"));
      await suite.setup.publishOutside({ kind: "person", id: "ada" }, key, bytesOf("outside"), suite.unique("o"));
      const stored = await fetch("inbox", key);
      expect(stored.map(({ lane, principal, bytes }) => ({ lane, principal, text: textOf(bytes) }))).toEqual([
        { lane: "inbox", principal: undefined, text: "inside" },
        { lane: "control", principal: undefined, text: "stop" },
        { lane: "inbox", principal: { kind: "person", id: "ada", roles: [] }, text: "outside" },
      ]);
    });

    test("parked messages are kept apart from the inbox, by key, and keep their ids", async () => {
      const { main } = suite.partitions.take();
      const key = keyIn(main, "a");
      const inInbox = suite.unique("both");
      await acceptedSeq(send(key, "inbox", "inbox", inInbox));
      await acceptedSeq(send(key, "parked", "parked", inInbox));
      await acceptedSeq(send(keyIn(main, "ab"), "other", "parked"));
      const parked = await fetch("parked", key);
      expect(parked.map(({ key, messageId, bytes }) => ({ key, messageId, text: textOf(bytes) }))).toEqual([
        { key, messageId: inInbox, text: "parked" },
      ]);
      expect(texts(await fetch("inbox", key))).toEqual(["inbox"]);
    });

    test("parked messages of a whole partition are fetched as one list, each with its key", async () => {
      const { main, sameShard } = suite.partitions.take();
      await acceptedSeq(send(keyIn(main, "a"), "p1", "parked"));
      await acceptedSeq(send(keyIn(sameShard, "a"), "foreign", "parked"));
      const second = await acceptedSeq(send(keyIn(main, "b"), "p2", "parked"));
      await acceptedSeq(send(keyIn(main, "a"), "p3", "parked"));
      const view = (messages: readonly InboxMessage[]): readonly string[] =>
        messages.map(({ key, bytes }) => `${key.split(".").at(-1)}=${textOf(bytes)}`);
      expect(view(await fetch("parked", `${main}.>`, 0))).toEqual(["a=p1", "b=p2", "a=p3"]);
      expect(view(await fetch("parked", `${main}.>`, second, 1))).toEqual(["b=p2"]);
    });

    test("trimming parked messages removes those of the key below the sequence", async () => {
      const { main } = suite.partitions.take();
      const [key, other] = [keyIn(main, "a"), keyIn(main, "b")];
      await acceptedSeq(send(other, "other", "parked"));
      await acceptedSeq(send(key, "p1", "parked"));
      const second = await acceptedSeq(send(key, "p2", "parked"));
      await suite.setup.a.log.trim("parked", key, second);
      expect(texts(await fetch("parked", key))).toEqual(["p2"]);
      expect(texts(await fetch("parked", other))).toEqual(["other"]);
      await suite.setup.a.log.trim("parked", key, second + 1);
      await suite.setup.a.log.trim("parked", key, second + 1);
      expect(await fetch("parked", key)).toEqual([]);
    });

    test("trimming an inbox removes what lies below the sequence and never gives a sequence again", async () => {
      const { main, sameShard } = suite.partitions.take();
      const key = keyIn(main, "a");
      await acceptedSeq(send(key, "old"));
      await acceptedSeq(send(keyIn(sameShard, "a"), "old of the neighbour"));
      const cursor = await acceptedSeq(send(key, "kept"));
      const { fill: _shrinks, ...before } = await suite.setup.a.log.position(main);
      await suite.setup.a.log.trim("inbox", main, cursor);
      expect(texts(await fetch("inbox", key))).toEqual(["kept"]);
      expect(await suite.setup.b.log.position(main)).toMatchObject(before);
      await suite.setup.a.log.trim("inbox", main, cursor + 1);
      expect(await suite.setup.b.log.position(main)).toMatchObject(before);
      expect(await acceptedSeq(send(key, "new"))).toBe(before.lastSeq + 1);
    });

    test("the position of a partition is that of its shard's stream, the same for both nodes", async () => {
      const { main, empty, sameShard, otherShard } = suite.partitions.take();
      const seq = await acceptedSeq(send(keyIn(main, "a"), "x"));
      await acceptedSeq(send(keyIn(otherShard, "a"), "x"));
      const position = await suite.setup.a.log.position(main);
      expect(position).toMatchObject({
        generation: expect.stringMatching(/^[a-z0-9]{1,16}$/),
        lastSeq: seq,
        lineage: [],
      });
      for (const partition of [main, empty, sameShard]) {
        expect(await suite.setup.b.log.position(partition)).toEqual(position);
      }
    });

    test("broker time does not go back from message to message", async () => {
      const key = freshKey();
      for (let n = 0; n < 10; n += 1) await acceptedSeq(send(key, `${n}`));
      const times = (await fetch("inbox", key)).map((message) => message.storedAtMs);
      expect(times).toEqual(times.toSorted((x, y) => x - y));
      expect(times[0]).toBeGreaterThan(1_600_000_000_000);
    });
  });
  messageDeliveryContract(make);
}
