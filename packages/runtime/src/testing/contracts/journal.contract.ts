import type { ActorKey, LifecycleEvent } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
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

const eventOf = (id: string): LifecycleEvent => ({
  specversion: "1.0",
  id,
  source: "test",
  type: "holdfast.task.completed",
  subject: 'd-1.task.t1 50% "grüße"',
  time: "2027-01-15T08:00:00.000Z",
  datacontenttype: "application/json",
  data: { taskId: "t1", agent: "researcher", callId: "call 1", title: "grüße" },
});

/** What every Journal must do. */
export function journalContract(make: MakeContractSetup): void {
  describe("Journal", () => {
    const suite = contractSuite(make);
    const freshKey = (id = "a"): ActorKey => keyIn(suite.partitions.take().main, id);
    const append = (key: ActorKey, text: string, id = suite.unique("j")): Promise<number> =>
      acceptedSeq(suite.setup.a.journal.append(key, bytesOf(text), id));
    const read = async (key: ActorKey): Promise<readonly (string | undefined)[]> =>
      (await suite.setup.b.journal.read(key, soon())).map((line) => textOf(line.bytes));

    test("an actor without entries has an empty journal", async () => {
      expect(await read(freshKey())).toEqual([]);
    });

    test("what one node appended the other reads, in stored order, with its sequences", async () => {
      const key = freshKey();
      const seqs = [await append(key, "one"), await append(key, "two")];
      expect((await suite.setup.b.journal.read(key, soon())).map(plain)).toEqual([
        { seq: seqs[0], bytes: bytesOf("one") },
        { seq: seqs[1], bytes: bytesOf("two") },
      ]);
    });

    test("a journal holds nothing of other actors, neither of neighbours nor of namesakes", async () => {
      const { main, sameShard } = suite.partitions.take();
      await append(keyIn(main, "a"), "mine");
      await append(keyIn(main, "ab"), "longer id");
      await append(keyIn(sameShard, "a"), "same id elsewhere");
      expect(await read(keyIn(main, "a"))).toEqual(["mine"]);
    });

    test("a long journal is read whole while its shard is busy", async () => {
      const { main, sameShard } = suite.partitions.take();
      const expected = Array.from({ length: 300 }, (_, n) => `entry ${n}`);
      for (const text of expected) await append(keyIn(main, "a"), text);
      const stopOthers = keepDoing((round) =>
        suite.setup.b.journal.append(keyIn(sameShard, "a"), bytesOf("x"), suite.unique(`busy-${round}`)),
      );
      expect(await read(keyIn(main, "a"))).toEqual(expected);
      await stopOthers();
    });

    test("a reader sees every entry that was acknowledged before it asked", async () => {
      const key = freshKey();
      for (let n = 1; n <= 20; n += 1) {
        await append(key, `entry ${n}`);
        expect(await read(key)).toHaveLength(n);
      }
    });

    test("an entry appended twice under one id is a duplicate with the first sequence and is read once", async () => {
      const key = freshKey();
      const id = suite.unique("same");
      const seq = await append(key, "once", id);
      expect(await suite.setup.b.journal.append(key, bytesOf("once"), id)).toEqual({
        kind: "accepted",
        seq,
        duplicate: true,
      });
      expect(await read(key)).toEqual(["once"]);
    });

    test("an entry above the broker's limit is refused for good", async () => {
      const outcome = await suite.setup.a.journal.append(freshKey(), new Uint8Array(1_200_000), suite.unique("j"));
      expect(outcome).toMatchObject({ kind: "refused", retryable: false });
    });

    test("reading rejects when the caller no longer wants it", async () => {
      const reading = suite.setup.a.journal.read(freshKey(), AbortSignal.abort(new Error("drained")));
      await expect(reading).rejects.toThrow("drained");
    });

    test("a public event is accepted once by its id", async () => {
      const event = eventOf(suite.unique("event"));
      const first = await suite.setup.a.journal.publishEvent("task", ["researcher", "t1", "completed"], event);
      expect(first).toMatchObject({ kind: "accepted", duplicate: false });
      const second = await suite.setup.b.journal.publishEvent("task", ["researcher", "t1", "completed"], event);
      expect(second).toEqual({ ...first, duplicate: true });
    });

    test("public events are stored under the subject of their kind, with every attribute", async ({ skip }) => {
      const readEvents = suite.setup.readEvents ?? skip("the setup cannot read the events");
      const { journal } = suite.setup.a;
      const [task, conversation, wait] = [suite.unique("event"), suite.unique("event"), suite.unique("event")];
      await journal.publishEvent("task", ["researcher", "t1", "started"], eventOf(task));
      await journal.publishEvent("conversation", ["main", "c1", "opened"], eventOf(conversation));
      await journal.publishEvent("wait", ["w1", "opened"], eventOf(wait));
      const stored = await readEvents();
      const suffixes = stored.map(({ subject, event }) => ({ name: subject.split(".").slice(2).join("."), event }));
      expect(suffixes).toEqual(
        expect.arrayContaining([
          { name: "task.researcher.t1.started", event: eventOf(task) },
          { name: "conversation.main.c1.opened", event: eventOf(conversation) },
          { name: "wait.w1.opened", event: eventOf(wait) },
        ]),
      );
    });

    test("live messages and replies that nobody waits for are harmless", async () => {
      const key = freshKey();
      suite.setup.a.journal.publishLive(key, bytesOf("token"));
      suite.setup.a.journal.reply(`_INBOX.${suite.unique("nobody")}`, bytesOf("outcome"));
      await append(key, "still works");
      expect(await read(key)).toEqual(["still works"]);
    });

    test("live messages and replies reach who listens, in order, and are not stored", async ({ skip }) => {
      const listenCore = suite.setup.listenCore ?? skip("the setup cannot listen");
      const liveSubject = suite.setup.liveSubject ?? skip("the setup does not say where live messages go");
      const key = freshKey();
      const inbox = `_INBOX.${suite.unique("caller")}`;
      const heard: string[] = [];
      const stops = [
        await listenCore(liveSubject(key), (bytes) => heard.push(`live ${textOf(bytes)}`)),
        await listenCore(inbox, (bytes) => heard.push(`reply ${textOf(bytes)}`)),
      ];
      suite.setup.a.journal.publishLive(key, bytesOf("one"));
      suite.setup.a.journal.publishLive(key, bytesOf("two"));
      suite.setup.a.journal.reply(inbox, bytesOf("outcome"));
      await waitUntil("three core messages were heard", () => heard.length >= 3, { dump: () => heard.join(", ") });
      expect(heard).toEqual(["live one", "live two", "reply outcome"]);
      for (const stop of stops) await stop();
      expect(await read(key)).toEqual([]);
    });
  });
}
