import {
  barrierScan,
  filteredHistory,
  OrderedReader,
  publishStored,
  purgeBelow,
  watchBucket,
  type KvValue,
  type Link,
  type OrderedReaderOptions,
} from "@holdfast/jetstream";
import { subjectsOf, type RuntimeFault, type Subjects } from "@holdfast/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitUntil } from "../harness/wait-until.ts";
import { askApi, bytesOf, newToken, startBroker, textOf, type BrokerFixture } from "./jetstream-fixture.ts";

let broker: BrokerFixture;
let link: Link;
let subjects: Subjects;
let stream: string;
beforeAll(async () => {
  broker = await startBroker();
  link = await broker.connect();
  const { manifest } = await broker.namespace(link);
  subjects = subjectsOf(manifest.ns);
  stream = subjects.inboxStream(0);
});
afterAll(() => broker.close());

let names = 0;
const freshSubject = (partition = "d-0"): string => subjects.inbox(`${partition}.probe.s${(names += 1)}`);
async function publish(subject: string, text: string): Promise<number> {
  const outcome = await publishStored(link, { subject, bytes: bytesOf(text), messageId: newToken() });
  if (outcome.kind !== "accepted") throw new Error(`arranging failed: ${outcome.reason}`);
  return outcome.seq;
}

interface Recorded {
  readonly reader: OrderedReader;
  readonly texts: string[];
  readonly subjects: string[];
  readonly seqs: number[];
  readonly faults: RuntimeFault[];
  readonly replaced: string[];
}

async function read(
  filters: readonly string[],
  options: Partial<OrderedReaderOptions> & { readonly via?: Link } = {},
): Promise<Recorded> {
  const texts: string[] = [];
  const subjects: string[] = [];
  const seqs: number[] = [];
  const faults: RuntimeFault[] = [];
  const replaced: string[] = [];
  const { via = link, ...rest } = options;
  const reader = await OrderedReader.start(via, {
    stream,
    filters,
    fromSeq: 1,
    deliver: (message) => {
      seqs.push(message.seq);
      subjects.push(message.subject);
      texts.push(textOf(message.bytes) ?? "");
    },
    onFault: (fault) => faults.push(fault),
    onReplaced: (reason) => replaced.push(reason),
    heartbeatMs: 300,
    ...rest,
  });
  return { reader, texts, subjects, seqs, faults, replaced };
}

const untilRead = (recorded: Recorded, count: number): Promise<unknown> =>
  waitUntil(`${count} messages were read`, () => recorded.texts.length >= count, { dump: () => recorded });

describe("OrderedReader", () => {
  test("O1: hands over what matches any of its filters, in stored order, then what comes", async () => {
    const [a, b, other] = [freshSubject(), freshSubject("d-2"), freshSubject()];
    for (let n = 0; n < 10; n++) for (const subject of [a, other, b]) await publish(subject, `${n}`);
    const recorded = await read([a, b]);
    await untilRead(recorded, 20);
    await publish(b, "later");
    await untilRead(recorded, 21);
    await recorded.reader.stop();
    expect(recorded.texts).toEqual([...Array.from({ length: 10 }, (_, n) => [`${n}`, `${n}`]).flat(), "later"]);
    expect(recorded.seqs).toEqual(recorded.seqs.toSorted((x, y) => x - y));
    expect(recorded.reader.cursor).toBe(recorded.seqs.at(-1));
  });

  test("O1: starts at the sequence it is given", async () => {
    const subject = freshSubject();
    await publish(subject, "before");
    const fromSeq = await publish(subject, "first");
    const recorded = await read([subject], { fromSeq });
    await untilRead(recorded, 1);
    await recorded.reader.stop();
    expect(recorded.texts).toEqual(["first"]);
  });

  test("hands over sequence, broker time, headers and payload, or no payload when only headers are wanted", async () => {
    const subject = freshSubject();
    const nowMs = Date.now();
    await publishStored(link, { subject, bytes: bytesOf("x"), messageId: "id-1", headers: { "Hf-Work": "1" } });
    const seen: unknown[] = [];
    for (const headersOnly of [false, true]) {
      const recorded = await read([subject], {
        headersOnly,
        deliver: (message) => {
          expect(Math.abs(message.storedAtMs - nowMs)).toBeLessThan(5000);
          seen.push([
            message.header("Nats-Msg-Id"),
            message.header("Hf-Work"),
            message.header("None"),
            message.bytes.length,
          ]);
        },
      });
      await waitUntil("it was read", () => seen.length === (headersOnly ? 2 : 1));
      await recorded.reader.stop();
    }
    expect(seen).toEqual([
      ["id-1", "1", undefined, 1],
      ["id-1", "1", undefined, 0],
    ]);
  });

  test("hands over nothing after stop, and leaves no consumer behind", async () => {
    const subject = freshSubject();
    const recorded = await read([subject]);
    await publish(subject, "1");
    await untilRead(recorded, 1);
    await recorded.reader.stop();
    await publish(subject, "2");
    const again = await read([subject]);
    await untilRead(again, 2);
    await again.reader.stop();
    expect(recorded.texts).toEqual(["1"]);
    await waitUntil("the consumers are gone", async () =>
      (await askApi(link, `CONSUMER.NAMES.${stream}`)).text.includes(`"total":0`),
    );
  });

  test("P2: a message lost in the network is noticed by the next heartbeat and read again, without anything new to read", async () => {
    const subject = freshSubject();
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    const recorded = await read([subject], { via: far });
    await publish(subject, "1");
    await untilRead(recorded, 1);
    proxy.swallowAnswers(true);
    await publish(subject, "2");
    await waitUntil("its delivery was lost", () => proxy.swallowed().includes(subject));
    proxy.swallowAnswers(false);
    await untilRead(recorded, 2);
    await recorded.reader.stop();
    expect(recorded.texts).toEqual(["1", "2"]);
    expect(recorded.replaced).toEqual([expect.stringContaining("lost tail")]);
  });

  test("P2: a message lost in the network is noticed by the next message, and both are handed over in order", async () => {
    const subject = freshSubject();
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    const recorded = await read([subject], { via: far, heartbeatMs: 10_000 });
    await publish(subject, "1");
    await untilRead(recorded, 1);
    proxy.swallowAnswers(true);
    await publish(subject, "2");
    await waitUntil("its delivery was lost", () => proxy.swallowed().includes(subject));
    proxy.swallowAnswers(false);
    await publish(subject, "3");
    await untilRead(recorded, 3);
    await recorded.reader.stop();
    expect(recorded.texts).toEqual(["1", "2", "3"]);
    expect(recorded.replaced).toEqual([expect.stringContaining("gap")]);
  });

  test("P2: a connection on which nothing comes any more is noticed by the missing heartbeats", async () => {
    const subject = freshSubject();
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    const recorded = await read([subject], { via: far });
    proxy.swallowAnswers(true);
    await publish(subject, "1");
    await waitUntil("it is noticed", () => recorded.replaced.length > 0);
    proxy.swallowAnswers(false);
    await untilRead(recorded, 1);
    await recorded.reader.stop();
    expect(recorded.replaced[0]).toBe("no heartbeat");
    expect(recorded.texts).toEqual(["1"]);
  });

  test("O2: a broken connection loses and repeats nothing", async () => {
    const subject = freshSubject();
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    const recorded = await read([subject], { via: far });
    for (let n = 0; n < 200; n++) {
      await publish(subject, `${n}`);
      if (n % 50 === 25) proxy.cut();
    }
    await untilRead(recorded, 200);
    await recorded.reader.stop();
    expect(recorded.texts).toEqual(Array.from({ length: 200 }, (_, n) => `${n}`));
    expect(recorded.replaced).toContain("disconnected");
  });

  test("O2: kill -9 of the server under load, four times: every accepted message once, in order, going on within 5 s", async () => {
    const subject = freshSubject();
    const recorded = await read([subject]);
    const accepted: string[] = [];
    const load = new AbortController();
    const sender = (async () => {
      for (let n = 0; !load.signal.aborted; n++) {
        const text = `${n}`;
        const messageId = `kill-${n}`;
        for (let stored = false; !stored;) {
          const outcome = await publishStored(link, { subject, bytes: bytesOf(text), messageId });
          stored = outcome.kind === "accepted";
          if (!stored) await link.whenConnected(1000);
        }
        accepted.push(text);
      }
    })();
    const resumedMs: number[] = [];
    for (let kill = 0; kill < 4; kill++) {
      const before = recorded.texts.length;
      await waitUntil("messages are read", () => recorded.texts.length > before + 50);
      await broker.nats.kill();
      await broker.nats.restart();
      const upMs = performance.now();
      const atRestart = recorded.texts.length;
      await waitUntil("messages are read again", () => recorded.texts.length > atRestart, { timeoutMs: 10_000 });
      resumedMs.push(performance.now() - upMs);
    }
    load.abort();
    await sender;
    await untilRead(recorded, accepted.length);
    await recorded.reader.stop();
    expect(recorded.texts).toEqual(accepted);
    expect(Math.max(...resumedMs)).toBeLessThan(5000);
    expect(recorded.faults).toEqual([]);
  });

  test("O3: a stream of the same name that is another one means lost data", async () => {
    const wrong = read([freshSubject()], { expectedCreated: "2020-01-01T00:00:00Z" });
    await expect(wrong).rejects.toMatchObject({ code: "HF-4006" });
  });

  test("O3: a stream that is removed under a reader stops it with HF-4006", async () => {
    const { manifest } = await broker.namespace(link);
    const doomed = subjectsOf(manifest.ns).inboxStream(0);
    const recorded = await read([`hf.${manifest.ns}.inbox.d-0.>`], { stream: doomed });
    await link.requests.request(`$JS.API.STREAM.DELETE.${doomed}`, bytesOf("{}"), undefined, 2000);
    await waitUntil("the reader has stopped", () => recorded.reader.ended.aborted);
    expect(recorded.faults.map(({ code }) => code)).toEqual(["HF-4006"]);
  });

  test("O4: a receiver that throws stops its reader, is reported, and harms nobody else on the connection", async () => {
    const subject = freshSubject();
    const healthy = await read([subject]);
    const broken = await read([subject], {
      deliver: () => {
        throw new TypeError("receiver");
      },
    });
    await publish(subject, "1");
    await waitUntil("it was reported", () => broken.faults.length > 0);
    await publish(subject, "2");
    await untilRead(healthy, 2);
    await healthy.reader.stop();
    expect(broken.faults[0]?.cause).toBeInstanceOf(TypeError);
    expect(broken.reader.ended.aborted).toBe(true);
  });

  test("a reader of a guest account gets what its own inbox is granted", async () => {
    const { manifest } = await broker.namespace(link, { ns: "guest" });
    const guest = subjectsOf(manifest.ns);
    const client = await broker.connect({ user: "client" });
    const recorded = await read([guest.inbox("d-0.probe.a")], { via: client, stream: guest.inboxStream(0) });
    await publish(guest.inbox("d-0.probe.a"), "hello");
    await untilRead(recorded, 1);
    await recorded.reader.stop();
    expect(recorded.texts).toEqual(["hello"]);
    expect(recorded.subjects).toEqual([guest.inbox("d-0.probe.a")]);
  });
});

describe("filteredHistory", () => {
  test("gives everything stored before the call, oldest first, and ends", async () => {
    const [a, b] = [freshSubject(), freshSubject()];
    for (let n = 0; n < 300; n++) await publish(n % 2 === 0 ? a : b, `${n}`);
    await publish(freshSubject(), "later, elsewhere");
    const found = await filteredHistory(link, { stream, filters: [a, b] });
    expect(found.map(({ bytes }) => textOf(bytes))).toEqual(Array.from({ length: 300 }, (_, n) => `${n}`));
    const some = await filteredHistory(link, { stream, filters: [a], fromSeq: (found[100]?.seq ?? 0) + 1, limit: 3 });
    expect(some.map(({ bytes }) => textOf(bytes))).toEqual(["102", "104", "106"]);
  });

  test("is empty where nothing is", async () => {
    expect(await filteredHistory(link, { stream, filters: [freshSubject()] })).toEqual([]);
  });

  test("rejects when its caller gives up", async () => {
    const subject = freshSubject();
    await publish(subject, "1");
    const history = filteredHistory(link, {
      stream,
      filters: [subject],
      signal: AbortSignal.abort(new Error("drained")),
    });
    await expect(history).rejects.toThrow("drained");
  });
});

interface Scanned {
  readonly barrier: number;
  readonly visited: readonly string[];
}

async function scan(
  partition: string,
  options: { readonly fromSeq?: number; readonly signal?: AbortSignal; readonly stored?: () => void } = {},
): Promise<Scanned> {
  const bucket = subjects.actorsBucket(1);
  const visited: string[] = [];
  const barrier = await barrierScan(link, {
    stream: `KV_${bucket}`,
    filter: `$KV.${bucket}.${partition}.>`,
    fromSeq: options.fromSeq ?? 1,
    barrierSubject: `$KV.${bucket}.${partition}._claim`,
    barrierBytes: new Uint8Array(),
    headersOnly: true,
    narrow: () => {
      options.stored?.();
      return { filter: `$KV.${bucket}.${partition}.>`, headersOnly: true };
    },
    visit: (message) => visited.push(message.subject.slice(`$KV.${bucket}.`.length)),
    signal: options.signal ?? AbortSignal.timeout(10_000),
  });
  return { barrier, visited };
}
const put = (key: string): Promise<number> => publish(`$KV.${subjects.actorsBucket(1)}.${key}`, "value");

/** Does `work` over and over. @returns stop, which resolves after the last round */
function keepDoing(work: (round: number) => Promise<unknown>): () => Promise<void> {
  const stopping = new AbortController();
  const rounds = (async () => {
    for (let round = 0; !stopping.signal.aborted; round++) await work(round);
  })();
  return () => {
    stopping.abort();
    return rounds;
  };
}

describe("barrierScan", () => {
  test("one that is called off while its reader starts says so to its caller, and to nobody else", async () => {
    const bucket = subjects.actorsBucket(1);
    const calledOff = new AbortController();
    const scanning = barrierScan(link, {
      stream: `KV_${bucket}`,
      filter: `$KV.${bucket}.d-1.>`,
      fromSeq: 1,
      barrierSubject: `$KV.${bucket}.d-1._claim`,
      barrierBytes: new Uint8Array(),
      headersOnly: true,
      visit: () => undefined,
      signal: calledOff.signal,
      narrow: () => {
        queueMicrotask(() => calledOff.abort()); // a rejection that nobody handles fails this test
        return { filter: `$KV.${bucket}.d-1.>`, headersOnly: true };
      },
    });
    await expect(scanning).rejects.toMatchObject({ name: "AbortError" });
  });

  test("F16: ends on an empty partition, and on one whose bucket's last write belongs to another", async () => {
    for (let n = 0; n < 5; n++) await put(`d-1.probe.t${n}`);
    await put("d-3.probe.other");
    expect((await scan("d-1")).visited).toEqual(Array.from({ length: 5 }, (_, n) => `d-1.probe.t${n}`));
    expect((await scan("d-5")).visited).toEqual([]);
  });

  test("F16: ends while the partition itself is written without pause, and has seen what was acknowledged before", async () => {
    let written = 0;
    const stopWriting = keepDoing(async (round) => {
      await put(`d-7.probe.busy${round % 50}`);
      written = round;
    });
    await waitUntil("writes flow", () => written > 100);
    for (let round = 0; round < 10; round++) {
      await put(`d-7.probe.r${round}`);
      expect((await scan("d-7")).visited).toContain(`d-7.probe.r${round}`);
    }
    await stopWriting();
  });

  test("F8: a start beyond the end, as from a checkpoint of a lost tail, still ends", async () => {
    await put("d-1.probe.t0");
    expect((await scan("d-1", { fromSeq: 1_000_000 })).visited).toEqual([]);
  });

  test("rejects when its caller gives up", async () => {
    await expect(scan("d-1", { signal: AbortSignal.abort(new Error("drained")) })).rejects.toThrow("drained");
  });

  test("rejects, and rejects nothing else, when its caller gives up while the reader is being made", async () => {
    const unhandled: unknown[] = [];
    const notice = (reason: unknown): void => void unhandled.push(reason);
    process.prependListener("unhandledRejection", notice);
    try {
      const caller = new AbortController();
      const stored = (): void => void setImmediate(() => caller.abort(new Error("drained")));
      await expect(scan("d-1", { signal: caller.signal, stored })).rejects.toThrow("drained");
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", notice);
    }
  });
});

async function watch(
  bucket: string,
  via = link,
): Promise<{ readonly reader: OrderedReader; readonly seen: readonly KvValue[] }> {
  const seen: KvValue[] = [];
  const reader = await watchBucket(via, { bucket, deliver: (value) => seen.push(value), onFault: () => undefined });
  return { reader, seen };
}

describe("watchBucket", () => {
  test("an empty bucket: resolves with nothing, then tells of the first value", async () => {
    const { reader, seen } = await watch(subjects.idempotencyBucket);
    expect(seen).toEqual([]);
    const seq = await publish(`$KV.${subjects.idempotencyBucket}.a`, "1");
    await waitUntil("it was told", () => seen.length === 1);
    await reader.stop();
    expect(seen).toMatchObject([{ key: "a", seq, removed: false }]);
  });

  test("resolves with all current values delivered, each once, also under concurrent writes and across a broken connection", async () => {
    const bucket = subjects.actorsBucket(0);
    // Large enough to arrive in many parts.
    const old = "old".padEnd(50_000);
    for (let n = 0; n < 100; n++) await publish(`$KV.${bucket}.d-0.probe.w${n}`, old);
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    const stopWriting = keepDoing((n) => publish(`$KV.${bucket}.d-0.probe.noise${n % 10}`, `${n}`));
    const { reader, seen } = await watch(bucket, far);
    const initial = seen.filter(({ bytes }) => bytes.length === old.length);
    expect(new Set(initial.map(({ key }) => key)).size).toBe(100);
    proxy.cut();
    await publish(`$KV.${bucket}.d-0.probe.w5`, "new");
    await waitUntil("the change was told", () => seen.some(({ bytes }) => textOf(bytes) === "new"));
    await stopWriting();
    await reader.stop();
    const seqs = seen.map(({ seq }) => seq);
    expect(seqs).toEqual([...new Set(seqs)].toSorted((x, y) => x - y));
  });
});

test("purgeBelow removes below the sequence only, and nothing at all for 0", async () => {
  const subject = freshSubject();
  const seqs = [await publish(subject, "1"), await publish(subject, "2"), await publish(subject, "3")];
  expect(await purgeBelow(link, { stream, filter: subject, belowSeq: 0 })).toBe(0);
  expect(await purgeBelow(link, { stream, filter: subject, belowSeq: seqs[2] ?? 0 })).toBe(2);
  const left = await filteredHistory(link, { stream, filters: [subject] });
  expect(left.map(({ seq }) => seq)).toEqual([seqs[2]]);
});
