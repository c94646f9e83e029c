import { compareAndSet, readLast, type CompareAndSetOutcome, type Link } from "@holdfast/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitUntil } from "../harness/wait-until.ts";
import { newToken, startBroker, textOf, tokenBytes, tokenOf, type BrokerFixture } from "./jetstream-fixture.ts";

let broker: BrokerFixture;
let link: Link;
let bucket: string;
let stream: string;
beforeAll(async () => {
  broker = await startBroker();
  link = await broker.connect();
  const { manifest } = await broker.namespace(link);
  bucket = `hf_${manifest.ns}_actors_0`;
  stream = `KV_${bucket}`;
});
afterAll(() => broker.close());

let keys = 0;
const freshSubject = (): string => `$KV.${bucket}.d-0.probe.k${(keys += 1)}`;

interface Write {
  readonly subject: string;
  readonly expectedSeq: number;
  readonly text: string;
  readonly token?: string;
  readonly via?: Link;
  readonly retryForMs?: number;
}

function set({
  subject,
  expectedSeq,
  text,
  token = newToken(),
  via = link,
  retryForMs,
}: Write): Promise<CompareAndSetOutcome> {
  return compareAndSet(via, {
    stream,
    subject,
    bytes: tokenBytes(token, text),
    expectedSeq,
    token,
    tokenOf,
    retryForMs,
  });
}

async function committed(write: Write): Promise<number> {
  const outcome = await set(write);
  if (outcome.kind !== "committed") throw new Error(`arranging failed: ${JSON.stringify(outcome)}`);
  return outcome.seq;
}

const stored = async (subject: string): Promise<{ readonly seq: number; readonly text: string } | undefined> => {
  const message = await readLast(link, stream, subject);
  return message === undefined ? undefined : { seq: message.seq, text: textOf(message.bytes)?.slice(17) ?? "" };
};

describe("compareAndSet", () => {
  test("I7: a second decision from the same stale load is stale, although writer, epoch and revision are equal", async () => {
    const subject = freshSubject();
    const seq11 = await committed({ subject, expectedSeq: 0, text: "rev 11" });
    const m1 = await set({ subject, expectedSeq: seq11, text: "node-a:7:rev 12 M1" });
    const m2 = await set({ subject, expectedSeq: seq11, text: "node-a:7:rev 12 M2" });
    expect(m1.kind).toBe("committed");
    expect(m2).toEqual({ kind: "stale", currentSeq: m1.kind === "committed" ? m1.seq : 0 });
    expect((await stored(subject))?.text).toBe("node-a:7:rev 12 M1");
  });

  test("I7: bytes that arrive after the reload fence off the next decision instead of passing for it", async () => {
    const subject = freshSubject();
    const seq11 = await committed({ subject, expectedSeq: 0, text: "rev 11" });
    const proxy = await broker.proxy();
    const slow = await broker.connect({ via: proxy });
    const late = proxy.holdRequests();
    const attempt = set({ subject, expectedSeq: seq11, text: "rev 12 M1", via: slow, retryForMs: 1 });
    await waitUntil("the write is under way", () => late.held() > 0);
    await slow.close();
    expect(await attempt).toMatchObject({ kind: "unknown" });
    expect(await stored(subject)).toEqual({ seq: seq11, text: "rev 11" });
    late.release();
    await waitUntil("the late bytes are stored", async () => (await stored(subject))?.text === "rev 12 M1");
    const timer = await set({ subject, expectedSeq: seq11, text: "rev 12 timer" });
    expect(timer).toEqual({ kind: "stale", currentSeq: (await stored(subject))?.seq });
    expect((await stored(subject))?.text).toBe("rev 12 M1");
  });

  test("I7: an acknowledgement lost with its connection is found again by the token", async () => {
    const subject = freshSubject();
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    const seq = await committed({ subject, expectedSeq: 0, text: "1", via: far });
    proxy.swallowAnswers(true);
    const attempt = set({ subject, expectedSeq: seq, text: "2", via: far });
    await waitUntil("the write is stored", async () => (await stored(subject))?.text === "2");
    proxy.cut();
    proxy.swallowAnswers(false);
    expect(await attempt).toEqual({ kind: "committed", seq: (await stored(subject))?.seq });
    expect((await stored(subject))?.seq).toBeGreaterThan(seq);
  });

  test("an acknowledgement lost on a living connection is asked for again after the time limit", async () => {
    const subject = freshSubject();
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    const seq = await committed({ subject, expectedSeq: 0, text: "1", via: far });
    proxy.swallowAnswers(true);
    const attempt = set({ subject, expectedSeq: seq, text: "2", via: far });
    await waitUntil("the write is stored", async () => (await stored(subject))?.text === "2");
    proxy.swallowAnswers(false);
    expect(await attempt).toEqual({ kind: "committed", seq: (await stored(subject))?.seq });
  });

  test("a write that was stored, not acknowledged and replaced by somebody else is unknown, not stale", async () => {
    const subject = freshSubject();
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    proxy.swallowAnswers(true);
    const attempt = set({ subject, expectedSeq: 0, text: "mine", via: far });
    const mine = await waitUntil("the write is stored", () => stored(subject));
    await committed({ subject, expectedSeq: mine.seq, text: "theirs" });
    proxy.cut();
    proxy.swallowAnswers(false);
    expect(await attempt).toMatchObject({ kind: "unknown" });
    expect((await stored(subject))?.text).toBe("theirs");
  });

  test("of two writers over the same value exactly one commits, every time, and the other learns the winner's sequence", async () => {
    const subject = freshSubject();
    const other = await broker.connect();
    let seq = await committed({ subject, expectedSeq: 0, text: "0" });
    for (let round = 0; round < 200; round++) {
      const outcomes = await Promise.all([
        set({ subject, expectedSeq: seq, text: `a${round}` }),
        set({ subject, expectedSeq: seq, text: `b${round}`, via: other }),
      ]);
      const winner = outcomes.find((outcome) => outcome.kind === "committed");
      expect(winner).toBeDefined();
      seq = winner?.kind === "committed" ? winner.seq : 0;
      expect(outcomes).toContainEqual({ kind: "stale", currentSeq: seq });
    }
  });

  test("F9: create over a tombstone value is refused", async () => {
    const subject = freshSubject();
    const record = await committed({ subject, expectedSeq: 0, text: "record" });
    const tombstone = await committed({ subject, expectedSeq: record, text: "tombstone" });
    expect(await set({ subject, expectedSeq: 0, text: "again" })).toEqual({ kind: "stale", currentSeq: tombstone });
  });

  test("a value that should replace one that is not there is stale without a sequence", async () => {
    expect(await set({ subject: freshSubject(), expectedSeq: 9, text: "x" })).toEqual({
      kind: "stale",
      currentSeq: undefined,
    });
  });

  test.each([64, 1024, 20_000, 131_072, 512 * 1024])("a value of %i bytes comes back unchanged", async (size) => {
    const subject = freshSubject();
    const text = "x".repeat(size - 17);
    const seq = await committed({ subject, expectedSeq: 0, text });
    expect(await stored(subject)).toEqual({ seq, text });
  });

  test.each([
    ["the bucket takes", 601 * 1024],
    ["the server takes", 1025 * 1024],
  ])("a value larger than %s is refused with HF-2004, and the connection goes on", async (_limit, size) => {
    const subject = freshSubject();
    await expect(set({ subject, expectedSeq: 0, text: "x".repeat(size) })).rejects.toMatchObject({ code: "HF-2004" });
    expect(await stored(subject)).toBeUndefined();
    expect((await set({ subject, expectedSeq: 0, text: "small" })).kind).toBe("committed");
  });

  test("a user without the right to write is told so with HF-4007, at once", async () => {
    const client = await broker.connect({ user: "client" });
    const startedMs = performance.now();
    await expect(set({ subject: freshSubject(), expectedSeq: 0, text: "x", via: client })).rejects.toMatchObject({
      code: "HF-4007",
    });
    expect(performance.now() - startedMs).toBeLessThan(1500);
  });

  test("gives up as unknown when its caller does not want it any more", async () => {
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    proxy.swallowAnswers(true);
    const token = newToken();
    const attempt = compareAndSet(far, {
      stream,
      subject: freshSubject(),
      bytes: tokenBytes(token, "x"),
      expectedSeq: 0,
      token,
      tokenOf,
      signal: AbortSignal.timeout(100),
    });
    expect(await attempt).toMatchObject({ kind: "unknown" });
  });

  test("kill -9 of the server under load: nothing acknowledged is lost, and every write ends committed", async () => {
    const writers = Array.from({ length: 32 }, () => ({ subject: freshSubject(), seq: 0, n: 0 }));
    const load = new AbortController();
    const outcomes = new Set<string>();
    const running = writers.map(async (writer) => {
      while (!load.signal.aborted) {
        const outcome = await set({ subject: writer.subject, expectedSeq: writer.seq, text: `${writer.n + 1}` });
        outcomes.add(outcome.kind);
        if (outcome.kind !== "committed") return;
        writer.seq = outcome.seq;
        writer.n += 1;
      }
    });
    for (let kill = 0; kill < 3; kill++) {
      const before = writers[0]?.n ?? 0;
      await waitUntil("writes are flowing", () => writers.every((writer) => writer.n > before + 20));
      await broker.nats.kill();
      await broker.nats.restart();
    }
    const last = writers.map((writer) => writer.n);
    await waitUntil("writes are flowing again", () => writers.every((writer, index) => writer.n > (last[index] ?? 0)));
    load.abort();
    await Promise.all(running);
    expect([...outcomes]).toEqual(["committed"]);
    for (const writer of writers)
      expect(await stored(writer.subject)).toEqual({ seq: writer.seq, text: `${writer.n}` });
  });
});
