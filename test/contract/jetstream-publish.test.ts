import {
  idempotencyStore,
  publishStored,
  purgeBelow,
  readSeq,
  scopedMessageId,
  streamPosition,
  type IdempotencyScope,
  type Link,
} from "@holdfast/jetstream";
import { subjectsOf, type Subjects } from "@holdfast/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitUntil } from "../harness/wait-until.ts";
import { bytesOf, newToken, startBroker, textOf, type BrokerFixture } from "./jetstream-fixture.ts";

let broker: BrokerFixture;
let link: Link;
let subjects: Subjects;
beforeAll(async () => {
  broker = await startBroker();
  link = await broker.connect();
  const { manifest } = await broker.namespace(link, { inboxBytes: 1024 * 1024 });
  subjects = subjectsOf(manifest.ns);
});
afterAll(() => broker.close());

const key = (id: string, partition = "d-0"): string => `${partition}.probe.${id}`;
const inbox = (id: string): string => subjects.inbox(key(id));
const lastSeq = async (): Promise<number> => (await streamPosition(link, subjects.inboxStream(0))).lastSeq;

describe("publishStored", () => {
  test("accepts a message and names its sequence", async () => {
    const outcome = await publishStored(link, { subject: inbox("a"), bytes: bytesOf("hello"), messageId: newToken() });
    expect(outcome).toEqual({ kind: "accepted", seq: await lastSeq(), duplicate: false });
  });

  test("the same id again is accepted as duplicate with the first sequence, and stored once", async () => {
    const message = { subject: inbox("a"), bytes: bytesOf("once"), messageId: newToken() };
    const first = await publishStored(link, message);
    const again = await publishStored(link, message);
    expect(again).toEqual({ kind: "accepted", seq: first.kind === "accepted" ? first.seq : 0, duplicate: true });
    expect(await lastSeq()).toBe(first.kind === "accepted" ? first.seq : 0);
  });

  test("an acknowledgement lost with its connection: accepted, stored once", async () => {
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    await publishStored(far, { subject: inbox("a"), bytes: bytesOf("warm"), messageId: newToken() });
    const before = await lastSeq();
    proxy.swallowAnswers(true);
    const attempt = publishStored(far, { subject: inbox("a"), bytes: bytesOf("lost ack"), messageId: newToken() });
    await waitUntil("it is stored", async () => (await lastSeq()) > before);
    proxy.cut();
    proxy.swallowAnswers(false);
    expect(await attempt).toEqual({ kind: "accepted", seq: before + 1, duplicate: true });
    expect(await lastSeq()).toBe(before + 1);
  });

  test("without an id an unanswered message is not sent twice", async () => {
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    const before = await lastSeq();
    proxy.swallowAnswers(true);
    const attempt = publishStored(far, { subject: inbox("a"), bytes: bytesOf("no id") });
    await waitUntil("it is stored", async () => (await lastSeq()) > before);
    proxy.cut();
    proxy.swallowAnswers(false);
    expect(await attempt).toMatchObject({ kind: "unknown" });
    expect(await lastSeq()).toBe(before + 1);
  });

  test("a refusal that follows an unanswered attempt is no refusal: the first one may have been stored", async () => {
    const { manifest } = await broker.namespace(link);
    const doomed = subjectsOf(manifest.ns);
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    proxy.swallowAnswers(true);
    const attempt = publishStored(far, {
      subject: doomed.inbox(key("a")),
      bytes: bytesOf("stored"),
      messageId: newToken(),
      retryForMs: 800,
    });
    await waitUntil("it is stored", async () => (await streamPosition(link, doomed.inboxStream(0))).lastSeq === 1);
    await link.requests.request(`$JS.API.STREAM.DELETE.${doomed.inboxStream(0)}`, bytesOf("{}"), undefined, 2000);
    proxy.cut();
    proxy.swallowAnswers(false);
    expect(await attempt).toMatchObject({ kind: "unknown" });
  });

  test("F3, F12: a full stream refuses, keeps what it has, and takes the same id later as a new message", async () => {
    const big = bytesOf("x".repeat(100_000));
    const stream = subjects.inboxStream(1);
    const subject = subjects.inbox(key("full", "d-1"));
    let accepted = 0;
    let outcome = await publishStored(link, { subject, bytes: big, messageId: "full-0" });
    while (outcome.kind === "accepted") {
      accepted += 1;
      outcome = await publishStored(link, { subject, bytes: big, messageId: `full-${accepted}` });
    }
    expect(outcome).toMatchObject({ kind: "refused", code: "HF-4004", retryable: true });
    expect(await streamPosition(link, stream)).toMatchObject({ messages: accepted, firstSeq: 1, lastSeq: accepted });
    const small = await publishStored(link, { subject, bytes: bytesOf("small"), messageId: "small" });
    expect(small).toEqual({ kind: "accepted", seq: accepted + 1, duplicate: false });
    await purgeBelow(link, { stream, belowSeq: accepted + 2 });
    const again = await publishStored(link, { subject, bytes: big, messageId: `full-${accepted}` });
    expect(again).toEqual({ kind: "accepted", seq: accepted + 2, duplicate: false });
  });

  test("refuses a message larger than the stream takes, for good", async () => {
    const outcome = await publishStored(link, {
      subject: inbox("a"),
      bytes: new Uint8Array(700 * 1024),
      messageId: "big",
    });
    expect(outcome).toMatchObject({ kind: "refused", retryable: false });
  });

  test("refuses a message larger than the server takes, for good, and the connection goes on", async () => {
    const bytes = new Uint8Array(1025 * 1024);
    expect(await publishStored(link, { subject: inbox("a"), bytes, messageId: "huge" })).toMatchObject({
      kind: "refused",
      retryable: false,
    });
    expect(
      await publishStored(link, { subject: inbox("a"), bytes: bytesOf("ok"), messageId: newToken() }),
    ).toMatchObject({
      kind: "accepted",
    });
  });

  test("refuses a subject that no stream takes, as something that may pass", async () => {
    const outcome = await publishStored(link, {
      subject: subjects.inbox(key("a", "zz-0")),
      bytes: bytesOf("x"),
      messageId: "x",
    });
    expect(outcome).toMatchObject({ kind: "refused", code: "HF-4004", retryable: true });
  });

  test("refuses with HF-4007 what the user may not publish", async () => {
    const client = await broker.connect({ user: "client" });
    const outcome = await publishStored(client, { subject: inbox("a"), bytes: bytesOf("x"), messageId: newToken() });
    expect(outcome).toMatchObject({ kind: "refused", code: "HF-4007", retryable: false });
  });

  test("refuses an id with a line break, which would become another header", async () => {
    const message = { subject: inbox("a"), bytes: bytesOf("x"), messageId: "a\r\nNats-Rollup: all" };
    await expect(publishStored(link, message)).rejects.toMatchObject({ code: "HF-1001" });
  });

  test("kill -9 of the server under load: every accepted message is there once, in the order of one sender", async () => {
    const before = await lastSeq();
    const sent: { readonly seq: number; readonly text: string }[] = [];
    const load = new AbortController();
    const sender = (async () => {
      for (let n = 0; !load.signal.aborted; n++) {
        const text = `m${n}`;
        const outcome = await publishStored(link, {
          subject: inbox("load"),
          bytes: bytesOf(text),
          messageId: `load-${n}`,
        });
        if (outcome.kind === "accepted") sent.push({ seq: outcome.seq, text });
        else if (outcome.kind === "refused") {
          await link.whenConnected(1000);
          n -= 1;
        } else return outcome;
      }
      return undefined;
    })();
    await waitUntil("messages flow", () => sent.length > 50);
    await broker.nats.kill();
    await broker.nats.restart();
    const after = sent.length;
    await waitUntil("messages flow again", () => sent.length > after + 50);
    load.abort();
    expect(await sender).toBeUndefined();
    const seqs = sent.map(({ seq }) => seq);
    expect(new Set(seqs).size).toBe(seqs.length);
    expect(await lastSeq()).toBe(before + sent.length);
    for (const { seq, text } of sent.slice(-200)) {
      expect(textOf((await readSeq(link, subjects.inboxStream(0), seq))?.bytes)).toBe(text);
    }
  });
});

const scope = (target: string, idempotencyKey = "retry-1", principal = "person-alice"): IdempotencyScope => ({
  target,
  principal,
  idempotencyKey,
});

describe("idempotency", () => {
  test("F2: the same key of one sender for two actors, or of two senders, is two messages", async () => {
    const scopes = [scope("d-0.probe.alice"), scope("d-0.probe.bob"), scope("d-0.probe.bob", "retry-1", "person-bob")];
    const ids = scopes.map(scopedMessageId);
    expect(new Set(ids).size).toBe(3);
    for (const messageId of ids) {
      expect(await publishStored(link, { subject: inbox("bob"), bytes: bytesOf("hi"), messageId })).toMatchObject({
        kind: "accepted",
        duplicate: false,
      });
    }
  });

  test("the first claim is fresh, the second the same, with the outcome once there is one", async () => {
    const store = idempotencyStore(link, subjects.idempotencyBucket);
    const mine = scope("d-0.probe.claims");
    const messageId = scopedMessageId(mine);
    expect(await store.claim(mine, "hash-1", newToken())).toMatchObject({ kind: "fresh", messageId });
    expect(await store.claim(mine, "hash-1", newToken())).toMatchObject({
      kind: "same",
      messageId,
      outcome: undefined,
    });
    expect(await store.complete(mine, { rev: 3 }, newToken())).toBe(true);
    expect(await store.claim(mine, "hash-1", newToken())).toMatchObject({ kind: "same", outcome: { rev: 3 } });
  });

  test("a key used with another payload is a conflict, and stays what it was", async () => {
    const store = idempotencyStore(link, subjects.idempotencyBucket);
    const mine = scope("d-0.probe.conflict");
    await store.claim(mine, "hash-1", newToken());
    expect(await store.claim(mine, "hash-2", newToken())).toMatchObject({ kind: "conflict", payloadHash: "hash-1" });
    expect(await store.claim(mine, "hash-1", newToken())).toMatchObject({ kind: "same" });
  });

  test("of two who claim at once, one is fresh", async () => {
    const store = idempotencyStore(link, subjects.idempotencyBucket);
    for (let round = 0; round < 20; round++) {
      const mine = scope(`d-0.probe.race${round}`);
      const outcomes = await Promise.all([1, 2].map(() => store.claim(mine, "hash", newToken())));
      expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["fresh", "same"]);
    }
  });

  test("the first outcome stays; another one is not stored over it", async () => {
    const store = idempotencyStore(link, subjects.idempotencyBucket);
    const mine = scope("d-0.probe.outcome");
    expect(await store.complete(mine, { rev: 1 }, newToken())).toBe(false);
    await store.claim(mine, "hash", newToken());
    expect(await store.complete(mine, { rev: 1 }, newToken())).toBe(true);
    expect(await store.complete(mine, { rev: 1 }, newToken())).toBe(true);
    expect(await store.complete(mine, { rev: 2 }, newToken())).toBe(false);
  });
});
