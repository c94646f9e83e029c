import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  connectNats,
  ensureNamespace,
  ensureStream,
  openNamespace,
  OrderedReader,
  publishStored,
  readLast,
  renewGenerations,
  streamPosition,
  topologyOf,
  type Link,
  type LinkStatus,
} from "@holdfast/jetstream";
import { subjectsOf, type RuntimeFault } from "@holdfast/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitUntil } from "../harness/wait-until.ts";
import { askApi, bytesOf, newToken, startBroker, textOf, type BrokerFixture } from "./jetstream-fixture.ts";

let broker: BrokerFixture;
let link: Link;
let names = 0;
const layout = {
  pools: { d: 8 },
  shards: 2,
  inboxBytes: 1024 * 1024,
  parkedBytes: 1024 * 1024,
  newGeneration: newToken,
};
const freshName = (): string => `n${(names += 1)}`;
beforeAll(async () => {
  broker = await startBroker();
  link = await broker.connect();
});
afterAll(() => broker.close());

describe("ensureNamespace", () => {
  test("creates every stream of the topology and a manifest with a generation for each", async () => {
    const ns = freshName();
    const { manifest, streamCreated } = await ensureNamespace(link, { ...layout, ns });
    const streams = topologyOf(manifest).map(({ name }) => name);
    expect(streams.length).toBe(2 * 4 + 5);
    expect(Object.keys(manifest.generations).toSorted()).toEqual(streams.toSorted());
    expect(new Set(Object.values(manifest.generations)).size).toBe(streams.length);
    for (const stream of streams) expect((await streamPosition(link, stream)).created).toBe(streamCreated[stream]);
  });

  test("the inbox refuses instead of forgetting: no age, discard new", async () => {
    const ns = freshName();
    await ensureNamespace(link, { ...layout, ns });
    expect((await askApi(link, `STREAM.INFO.${subjectsOf(ns).inboxStream(0)}`)).config).toMatchObject({
      retention: "limits",
      discard: "new",
      max_age: 0,
      max_bytes: 1024 * 1024,
      duplicate_window: 600e9,
    });
  });

  test("N1: six nodes that create it at once agree on one manifest", async () => {
    const ns = freshName();
    const links = await Promise.all(Array.from({ length: 6 }, () => broker.connect()));
    const opened = await Promise.all(links.map((one) => ensureNamespace(one, { ...layout, ns })));
    for (const other of opened) expect(other).toEqual(opened[0]);
    expect(await openNamespace(link, ns)).toEqual(opened[0]);
  });

  test("N1: of two nodes that ask for different layouts at once, one is told HF-4005", async () => {
    const ns = freshName();
    const other = await broker.connect();
    const results = await Promise.allSettled([
      ensureNamespace(link, { ...layout, ns }),
      ensureNamespace(other, { ...layout, ns, pools: { d: 4 } }),
    ]);
    expect(results.filter(({ status }) => status === "fulfilled").length).toBe(1);
    const failed = results.find((result) => result.status === "rejected");
    expect(failed?.reason).toMatchObject({ code: "HF-4005" });
  });

  test("whoever asks for no layout takes the one there is", async () => {
    const ns = freshName();
    const first = await ensureNamespace(link, { ...layout, ns });
    const { inboxBytes, parkedBytes, newGeneration } = layout;
    expect(await ensureNamespace(link, { ns, inboxBytes, parkedBytes, newGeneration })).toEqual(first);
  });

  test("HF-4005 names what was asked for and what is there", async () => {
    const ns = freshName();
    await ensureNamespace(link, { ...layout, ns });
    await expect(ensureNamespace(link, { ...layout, ns, shards: 4 })).rejects.toMatchObject({
      code: "HF-4005",
      message: expect.stringMatching(/expected .*"shards":4.* has .*"shards":2/),
    });
  });

  test.each([
    ["a name with capitals", { ns: "Bad" }],
    ["no partitions", { ns: "x1", pools: { d: 0 } }],
    ["too many shards", { ns: "x2", shards: 65 }],
  ])("refuses %s with HF-1001", async (_what, wrong) => {
    await expect(ensureNamespace(link, { ...layout, ...wrong })).rejects.toMatchObject({ code: "HF-1001" });
  });

  test("N2: a stream whose configuration drifted is refused, naming stream, field, both values and the fix", async () => {
    const ns = freshName();
    await ensureNamespace(link, { ...layout, ns });
    const stream = subjectsOf(ns).inboxStream(1);
    const { config } = await askApi(link, `STREAM.INFO.${stream}`);
    await askApi(link, `STREAM.UPDATE.${stream}`, { ...config, discard: "old" });
    await expect(ensureNamespace(link, { ...layout, ns })).rejects.toMatchObject({
      code: "HF-4003",
      facts: { stream, field: "discard", expected: '"new"', found: '"old"' },
      message: expect.stringContaining("nats stream edit"),
    });
  });

  test("N2: a field that the server does not know is noticed, whether it is refused or dropped without a word", async () => {
    const declaration = { name: "UNKNOWN_FIELD", subjects: ["unknown.>"], config: { keep_promises: true } };
    await expect(ensureStream(link, declaration)).rejects.toMatchObject({
      code: "HF-4003",
      message: expect.stringMatching(/keep_promises|invalid JSON/),
    });
  });

  test("a stream whose reservation does not fit is refused with HF-4003 and the server's reason", async () => {
    const ns = freshName();
    const refused = ensureNamespace(link, { ...layout, ns, inboxBytes: 2 ** 50 });
    await expect(refused).rejects.toMatchObject({ code: "HF-4003", message: expect.stringContaining("reserved") });
  });

  test("N3: a stream that was removed is not created again silently", async () => {
    const ns = freshName();
    await ensureNamespace(link, { ...layout, ns });
    const stream = subjectsOf(ns).inboxStream(0);
    await askApi(link, `STREAM.DELETE.${stream}`);
    await expect(ensureNamespace(link, { ...layout, ns })).rejects.toMatchObject({
      code: "HF-4006",
      facts: { stream },
    });
    expect((await askApi(link, `STREAM.INFO.${stream}`)).text).toContain("stream not found");
  });

  test("N3: a stream that was created again is noticed; renewing gives it, and only it, another generation", async () => {
    const ns = freshName();
    const first = await ensureNamespace(link, { ...layout, ns });
    const stream = subjectsOf(ns).journalStream(1);
    const declaration = topologyOf(first.manifest, layout).find(({ name }) => name === stream);
    if (declaration === undefined) throw new Error("no such stream");
    await askApi(link, `STREAM.DELETE.${stream}`);
    await ensureStream(link, declaration);
    await expect(ensureNamespace(link, { ...layout, ns })).rejects.toMatchObject({
      code: "HF-4006",
      facts: { stream },
    });
    expect(await renewGenerations(link, { ...layout, ns })).toEqual([stream]);
    const renewed = await ensureNamespace(link, { ...layout, ns });
    expect(renewed.manifest.generations[stream]).not.toBe(first.manifest.generations[stream]);
    const { [stream]: _old, ...others } = first.manifest.generations;
    expect(renewed.manifest.generations).toMatchObject(others);
  });

  test("openNamespace creates nothing and says HF-4005 where there is none", async () => {
    const ns = freshName();
    await expect(openNamespace(link, ns)).rejects.toMatchObject({ code: "HF-4005" });
    expect((await askApi(link, `STREAM.INFO.KV_${subjectsOf(ns).fleetBucket}`)).text).toContain("stream not found");
  });

  test("everything is still there, and the same, after the server was killed and started again", async () => {
    const ns = freshName();
    const first = await ensureNamespace(link, { ...layout, ns });
    await broker.nats.kill();
    await broker.nats.restart();
    expect(await ensureNamespace(link, { ...layout, ns })).toEqual(first);
  });
});

describe("F11: a stream restored from an older copy", () => {
  test("keeps its creation time and ends earlier; a reader that saw more reports HF-4006 instead of waiting for ever", async () => {
    const ns = freshName();
    await ensureNamespace(link, { ...layout, ns });
    const stream = subjectsOf(ns).inboxStream(0);
    const subject = `hf.${ns}.inbox.d-0.probe.a`;
    const publish = (n: number) => publishStored(link, { subject, bytes: bytesOf(`${n}`), messageId: `${ns}-${n}` });
    const seen: number[] = [];
    const faults: RuntimeFault[] = [];
    await OrderedReader.start(link, {
      stream,
      filters: [subject],
      fromSeq: 1,
      deliver: (message) => seen.push(message.seq),
      onFault: (fault) => faults.push(fault),
    });
    for (let n = 1; n <= 5; n++) await publish(n);
    const before = await streamPosition(link, stream);
    const folder = join(broker.nats.storeDir, "jetstream", "HOLDFAST", "streams", stream);
    await broker.nats.stop();
    await cp(folder, `${folder}.old`, { recursive: true });
    await broker.nats.restart();
    for (let n = 6; n <= 8;) n += (await publish(n)).kind === "accepted" ? 1 : 0;
    await waitUntil("all of it was read", () => seen.length === 8);
    await broker.nats.kill();
    await rm(folder, { recursive: true });
    await cp(`${folder}.old`, folder, { recursive: true });
    await rm(`${folder}.old`, { recursive: true });
    await broker.nats.restart();
    expect(await streamPosition(link, stream)).toEqual(before);
    expect(before.lastSeq).toBe(5);
    await waitUntil("the loss is reported", () => faults.length > 0);
    expect(faults).toMatchObject([{ code: "HF-4006", facts: { stream } }]);
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });
});

test("F11: a stream that lost its tail and grew past it again is noticed by the message at the reader's own place", async () => {
  const ns = freshName();
  await ensureNamespace(link, { ...layout, ns });
  const stream = subjectsOf(ns).inboxStream(0);
  const subject = `hf.${ns}.inbox.d-0.probe.a`;
  const publish = (text: string) => publishStored(link, { subject, bytes: bytesOf(text), messageId: `${ns}-${text}` });
  const publishSurely = async (text: string): Promise<void> => {
    await waitUntil(`${text} is stored`, async () => (await publish(text)).kind === "accepted");
  };
  const proxy = await broker.proxy();
  const far = await broker.connect({ via: proxy });
  const seen: (string | undefined)[] = [];
  const faults: RuntimeFault[] = [];
  await OrderedReader.start(far, {
    stream,
    filters: [subject],
    fromSeq: 1,
    deliver: ({ bytes }) => seen.push(textOf(bytes)),
    onFault: (fault) => faults.push(fault),
  });
  await publishSurely("1");
  const folder = join(broker.nats.storeDir, "jetstream", "HOLDFAST", "streams", stream);
  await broker.nats.stop();
  await cp(folder, `${folder}.old`, { recursive: true });
  await broker.nats.restart();
  await publishSurely("2");
  await waitUntil("both were read", () => seen.length === 2);
  await broker.nats.kill();
  await rm(folder, { recursive: true });
  await cp(`${folder}.old`, folder, { recursive: true });
  await rm(`${folder}.old`, { recursive: true });
  const away = proxy.holdRequests();
  await broker.nats.restart();
  for (const text of ["new 2", "new 3", "new 4"]) await publishSurely(text);
  away.release();
  await waitUntil("the loss is reported", () => faults.length > 0);
  expect(faults).toMatchObject([{ code: "HF-4006", facts: { stream } }]);
  expect(seen).toEqual(["1", "2"]);
});

describe("connectNats", () => {
  test("waits for a server that comes up later", async () => {
    await broker.nats.kill();
    const connecting = broker.connect();
    await broker.nats.restart();
    const late = await connecting;
    expect(late.isConnected).toBe(true);
  });

  test("HF-4001 names the address without credentials when nobody is there, within its limit", async () => {
    const startedMs = performance.now();
    const failed = connectNats({ servers: ["nats://root:secret@127.0.0.1:1"], name: "t", timeoutMs: 300 });
    await expect(failed).rejects.toMatchObject({
      code: "HF-4001",
      message: expect.stringContaining("nats://127.0.0.1:1:"),
    });
    await expect(failed).rejects.toMatchObject({ message: expect.not.stringContaining("secret") });
    expect(performance.now() - startedMs).toBeLessThan(2000);
  });

  test("stops waiting when its caller gives up", async () => {
    const signal = AbortSignal.timeout(100);
    await expect(connectNats({ servers: ["127.0.0.1:1"], name: "t", signal })).rejects.toMatchObject({
      code: "HF-4001",
    });
  });

  test("HF-4007 for a wrong password, at once", async () => {
    const failed = connectNats({ servers: [`127.0.0.1:${broker.nats.port}`], name: "t", user: "node", pass: "wrong" });
    await expect(failed).rejects.toMatchObject({ code: "HF-4007", message: expect.not.stringContaining("wrong") });
  });

  test("HF-1001 for an inbox prefix that payloads could not name", async () => {
    const failed = connectNats({ servers: ["127.0.0.1:1"], name: "t", inboxPrefix: "_INBOX.a-b" });
    await expect(failed).rejects.toMatchObject({ code: "HF-1001" });
  });

  test("tells of disconnects, reconnects, refused subjects and the end", async () => {
    const seen: LinkStatus[] = [];
    const proxy = await broker.proxy();
    const client = await broker.connect({ via: proxy, user: "client", onStatus: (status) => seen.push(status) });
    client.publish("$KV.hf_guest_actors_0.d-0.probe.a", bytesOf("forged"));
    await waitUntil("the refusal is told", () => seen.some(({ kind }) => kind === "denied"));
    proxy.cut();
    await waitUntil("it is connected again", () => seen.some(({ kind }) => kind === "connected"));
    await client.close();
    expect(seen.map(({ kind }) => kind)).toEqual(["denied", "disconnected", "connected", "closed"]);
  });

  test("a request that is open when the connection breaks ends at once, and its retry is answered", async () => {
    const ns = freshName();
    await ensureNamespace(link, { ...layout, ns });
    const proxy = await broker.proxy();
    const far = await broker.connect({ via: proxy });
    proxy.swallowAnswers(true);
    const startedMs = performance.now();
    const read = readLast(far, `KV_${subjectsOf(ns).fleetBucket}`, `$KV.${subjectsOf(ns).fleetBucket}.manifest`);
    await waitUntil("it is open", () => far.requests.openRequests === 1);
    proxy.cut();
    proxy.swallowAnswers(false);
    expect(textOf((await read)?.bytes)).toContain(ns);
    expect(performance.now() - startedMs).toBeLessThan(1900);
  });
});
