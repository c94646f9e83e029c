import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connectionPair } from "../testing/connection-pair.ts";
import { ACTIVATE, MemoryFacts, PREPARE, readingAs, seatFixture, type SeatFixture } from "../testing/seat-fixture.ts";
import { StoreSeq } from "../wire/coordinates.ts";
import type { EnvelopeDraft, RunnerEnvelope } from "../wire/envelope.ts";
import { RunnerReader, type RunnerReaderOptions } from "./runner-reader.ts";

let fixture: SeatFixture;
let facts: MemoryFacts;
beforeEach(async () => {
  facts = new MemoryFacts();
  fixture = await seatFixture();
  await fixture.ask(PREPARE);
  await fixture.ask(ACTIVATE);
});
afterEach(() => fixture.remove());

const status: EnvelopeDraft = { op: "status", state: "busy" };
const durable = (uuid: string, more: object = {}): EnvelopeDraft => ({
  op: "event",
  messageType: "TaskUpdated",
  message: { uuid, ...more },
  requiresPersistence: true,
});
const result: EnvelopeDraft = { op: "result", messageType: "Result", message: {}, storeSeq: StoreSeq.parse(1) };

/** A host that reads over one connection at a time. */
function hostOf(options: Partial<RunnerReaderOptions> = {}, lose?: (frame: unknown) => boolean) {
  const envelopes: RunnerEnvelope[] = [];
  const told: unknown[] = [];
  const waiting = new Set<() => void>();
  const reader = new RunnerReader({
    opening: readingAs(1),
    facts,
    onEnvelope: (envelope) => {
      envelopes.push(envelope);
      for (const check of waiting) check();
    },
    onGap: (gap) => told.push(gap),
    onGreeting: (kind) => told.push(kind),
    ...options,
  });
  return {
    reader,
    told,
    places: () => envelopes.map(({ seq }) => seq),
    /** @returns when the connection ended, and how it is ended from this side */
    connect: () => {
      const [host, runner] = connectionPair(lose);
      void fixture.seat.serve(runner);
      const ended = reader.read(host);
      ended.catch(() => undefined);
      return { ended, close: () => host.close(), closed: host.closed };
    },
    /** Resolves when the envelope at `seq` was seen. */
    seen: (seq: number) =>
      new Promise<void>((resolve) => {
        const check = (): void => {
          if ((envelopes.at(-1)?.seq ?? 0) < seq) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
  };
}

/** Waits until the runner has no durable envelope without a receipt. */
const receipted = (): Promise<void> => expect.poll(() => fixture.journal.unreceipted).toEqual([]);

describe("H1: commit, receipt, cursor", () => {
  test("what comes after the result is stored as it came before anybody sees it, and its receipt releases it", async () => {
    const seenAtCommit: number[] = [];
    const host = hostOf();
    facts.at = () => seenAtCommit.push(host.places().at(-1) ?? 0);
    const connection = host.connect();
    const message = { uuid: "u4", status: "killed", summary: null, usage: { tokens: 4 } };
    await fixture.journal.append(status, result);
    for (const type of ["TaskStarted", "TaskProgress", "TaskUpdated", "TaskNotification"])
      await fixture.journal.append({ op: "event", messageType: type, message, requiresPersistence: true });
    await host.seen(7);
    expect(host.places()).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(seenAtCommit.filter((_, index) => index % 2 === 0)).toEqual([3, 4, 5, 6]);
    expect([...facts.rows.values()].map(({ causation }) => causation.split(":")[1])).toEqual([
      "TaskStarted",
      "TaskProgress",
      "TaskUpdated",
      "TaskNotification",
    ]);
    expect([...facts.rows.values()].at(-1)).toEqual({
      conversation: "c1",
      type: "engine.message",
      causation: "sim:TaskNotification:u4",
      payload: { engine: "sim", runnerSeq: 7, message },
    });
    await receipted();
    connection.close();
    await connection.ended;
  });

  test.each(["before", "after"] as const)(
    "a host that dies %s the commit: the next one stores it once and sends the receipt",
    async (moment) => {
      facts.at = (now) => {
        if (now === moment) throw new Error("the host died");
      };
      const first = hostOf();
      await fixture.journal.append(durable("u1"), status);
      await expect(first.connect().ended).rejects.toThrow("the host died");
      expect(first.reader.cursor?.seq).toBe(1);
      expect(fixture.journal.unreceipted).toEqual([2]);
      facts.at = () => undefined;
      const second = hostOf({ opening: readingAs(2, "node-b:00000000") });
      second.connect();
      await second.seen(3);
      expect([second.places(), facts.rows.size]).toEqual([[1, 2, 3], 1]);
      await receipted();
    },
  );

  test("a receipt that was lost with its connection is sent again, and the envelope is not taken twice", async () => {
    let losing = true;
    const host = hostOf({}, (frame) => losing && JSON.stringify(frame).includes('"persisted"'));
    const first = host.connect();
    await fixture.journal.append(durable("u1"));
    await host.seen(2);
    first.close();
    await first.ended;
    expect(fixture.journal.unreceipted).toEqual([2]);
    losing = false;
    host.connect();
    await receipted();
    expect(host.places()).toEqual([1, 2]);
  });

  test("H2: the same id with other content is loud: no receipt, the cursor stays, and the first one stays stored", async () => {
    const host = hostOf();
    const connection = host.connect();
    await fixture.journal.append(durable("u1", { status: "completed" }), durable("u1", { status: "failed" }), status);
    await expect(connection.ended).rejects.toMatchObject({ code: "HF-9003" });
    expect([host.reader.cursor?.seq, fixture.journal.unreceipted, facts.rows.size]).toEqual([2, [3], 1]);
    await expect(host.connect().ended).rejects.toMatchObject({ code: "HF-9003" });
  });
});

describe("H3: connections come and go", () => {
  test("a host that goes on reads what it has not read; nothing is made up for the time between", async () => {
    const host = hostOf();
    const first = host.connect();
    await host.seen(1);
    first.close();
    await first.ended;
    await fixture.journal.append(status, result);
    host.connect();
    await host.seen(3);
    expect([host.places(), host.told]).toEqual([
      [1, 2, 3],
      ["first", "same"],
    ]);
  });

  test("a host behind what was removed is told once, then reads the rest", async () => {
    await fixture.journal.append(status, result, status);
    expect(await fixture.journal.checkpoint(3, { storeFlushed: true })).toBe(2);
    const host = hostOf();
    host.connect();
    await host.seen(4);
    expect([host.places(), host.told]).toEqual([
      [3, 4],
      ["first", { afterSeq: 0, firstRetainedSeq: 3, lastSeq: 4 }],
    ]);
  });

  test("a runner that crashed goes on with its count in the next epoch, and says that its engine is gone", async () => {
    const host = hostOf();
    const first = host.connect();
    await fixture.journal.append(durable("u1"));
    await receipted();
    first.close();
    await first.ended;
    fixture = await fixture.crash();
    host.connect();
    await host.seen(3);
    expect([host.places(), host.told]).toEqual([
      [1, 2, 3],
      ["first", "restarted"],
    ]);
    expect(host.reader.cursor).toMatchObject({ epoch: 2, seq: 3 });
  });

  test("a seat that was made anew is another journal: the host is told and stores what it knows once", async () => {
    const cursor = { journal: "0000000000000000", epoch: 9, seq: 50 };
    const host = hostOf({ cursor });
    host.connect();
    await fixture.journal.append(durable("u1"));
    await host.seen(2);
    expect([host.places(), host.told]).toEqual([[1, 2], ["recreated"]]);
    const again = hostOf();
    again.connect();
    await again.seen(2);
    expect(facts.rows.size).toBe(1);
  });
});

describe("R3, R4: who is attached", () => {
  test("the greater epoch wins, the former host is cut off, and may not come back, not even to a runner that restarted", async () => {
    const old = hostOf();
    const first = old.connect();
    await old.seen(1);
    const next = hostOf({ opening: readingAs(2, "node-b:00000000") });
    next.connect();
    await first.ended;
    await fixture.journal.append(durable("u1"));
    await next.seen(2);
    await receipted();
    expect(old.places()).toEqual([1]);
    await expect(old.connect().ended).rejects.toMatchObject({ code: "HF-9001", facts: { reason: "fenced" } });
    fixture = await fixture.crash();
    await expect(old.connect().ended).rejects.toMatchObject({ code: "HF-9001", facts: { reason: "fenced" } });
  });

  test.each<[string, object]>([
    ["ahead of the journal", { ...readingAs(2), cursor: { journal: "journaljournal01", seq: 99 } }],
    ["without a journal", { ...readingAs(2), cursor: { seq: 1 } }],
    ["of another conversation", { ...readingAs(2), conversation: "c2", cursor: { seq: 0 } }],
    ["without the token", { ...readingAs(2), token: "x", cursor: { seq: 0 } }],
  ])("an attach %s evicts nobody", async (_title, frame) => {
    const host = hostOf();
    const connection = host.connect();
    await host.seen(1);
    expect(await fixture.ask(frame)).toMatchObject([{ op: "refused" }]);
    expect(connection.closed.aborted).toBe(false);
    await fixture.journal.append(status);
    await host.seen(2);
  });

  test("observers displace nobody: of two at once one reads", async () => {
    const observers = [1, 2].map((epoch) => hostOf({ opening: readingAs(epoch, "node-a:00000000", "observe") }));
    const ends = observers.map((observer) =>
      observer.connect().ended.then(
        () => "read",
        () => "refused",
      ),
    );
    expect(await Promise.race(ends)).toBe("refused");
    await fixture.journal.append(status);
    await observers[0]?.seen(2);
    expect(observers[1]?.places()).toEqual([]);
  });

  test("a frame of a former attachment does not count, and closes its connection", async () => {
    await fixture.journal.append(durable("u1"));
    const [host, runner] = connectionPair();
    const served = fixture.seat.serve(runner);
    await host.send({ ...readingAs(1), cursor: { seq: 0 } });
    await host.send({ op: "persisted", attachment: 7, seq: 2 });
    await served;
    expect(fixture.journal.unreceipted).toEqual([2]);
  });
});

describe("what the host checks of a runner", () => {
  test.each([
    ["an engine it did not ask for", { requirements: { engine: "sim", options: ["speed"], permissionMode: "ask" } }],
    ["another protocol", { protocol: "holdfast.runner.v2" }],
  ])("%s is refused by the runner", async (_title, more) => {
    const host = hostOf({ opening: { ...readingAs(1), ...more } });
    await expect(host.connect().ended).rejects.toMatchObject({ code: "HF-9001" });
  });

  test.each<[string, object, string]>([
    ["a contract that does not fit", { contract: { engine: "other", options: [], permissionModes: [] } }, "HF-9001"],
    ["another protocol", { protocol: "holdfast.runner.v2" }, "HF-9001"],
    ["another conversation", { conversation: "c2" }, "HF-9001"],
  ])("%s in the greeting is refused by the host", async (_title, more, code) => {
    const [host, runner] = connectionPair();
    const { reader } = hostOf();
    const ended = reader.read(host);
    const hello = {
      op: "hello",
      protocol: "holdfast.runner.v1",
      contract: { engine: "sim", options: [], permissionModes: ["ask"] },
      conversation: "c1",
      journal: "journaljournal01",
      epoch: 1,
      attachment: 1,
      lastSeq: 0,
      unreceipted: [],
    };
    await runner.send({ ...hello, ...more });
    await expect(ended).rejects.toMatchObject({ code });
    expect(reader.cursor).toBeUndefined();
    expect(host.closed.aborted).toBe(true);
  });
});
