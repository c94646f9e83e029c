import { publishStored, readLast, streamPosition, type Link, type OpenNamespace } from "@holdfast/jetstream";
import { composeNatsPorts, namespaceStreams, NatsFleetRegistry, type NatsPorts } from "@holdfast/nats";
import { subjectsOf, type RuntimeFault, type Subjects } from "@holdfast/protocol";
import type { InboxMessage, ScanEntry } from "@holdfast/runtime/ports";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitUntil } from "../harness/wait-until.ts";
import {
  askApi,
  bytesOf,
  newToken,
  startBroker,
  textOf,
  tokenBytes,
  tokenOf,
  type BrokerFixture,
} from "./jetstream-fixture.ts";

let broker: BrokerFixture;
let link: Link;
let namespace: OpenNamespace;
let subjects: Subjects;
let ports: NatsPorts;
const faults: RuntimeFault[] = [];
const unreadable: string[] = [];
beforeAll(async () => {
  broker = await startBroker();
  link = await broker.connect();
  namespace = await broker.namespace(link);
  subjects = subjectsOf(namespace.manifest.ns);
  ports = composeNatsPorts(link, namespace, {
    tokenOf,
    onFault: (fault) => faults.push(fault),
    onUnreadable: ({ subject }) => unreadable.push(subject),
  });
});
afterAll(() => broker.close());

const soon = (): AbortSignal => AbortSignal.timeout(10_000);
const publishRaw = (subject: string, text: string) =>
  publishStored(link, { subject, bytes: bytesOf(text), messageId: newToken() });

describe("NatsRecordStore", () => {
  test("a scan shows no barrier and no checkpoint, and takes a record that says nothing for one with work", async () => {
    const prefix = `$KV.${subjects.actorsBucket(0)}.`;
    await publishRaw(`${prefix}${subjects.checkpointKey("d-0")}`, "checkpoint");
    await publishRaw(`${prefix}d-0.probe.foreign`, "written by somebody else's tool");
    const token = newToken();
    const bytes = tokenBytes(token, "x");
    await ports.records.commit({ key: "d-0.probe.asleep", bytes, expectedSeq: 0, token, needsWork: false });
    const visited: ScanEntry[] = [];
    const parts = [{ partition: "d-0", fromSeq: 1 }];
    await ports.records.scan({ parts, visit: (entry) => visited.push(entry), signal: soon() });
    expect(visited).toMatchObject([
      { key: "d-0.probe.foreign", needsWork: true },
      { key: "d-0.probe.asleep", needsWork: false },
    ]);
  });

  test("a stored value whose token cannot be read is somebody else's", async () => {
    const key = "d-2.probe.unreadable";
    const broken = composeNatsPorts(link, namespace, {
      tokenOf: () => {
        throw new RangeError("no frame");
      },
    });
    const first = await publishRaw(subjects.actorSubject(0, key), "garbage");
    const token = newToken();
    const bytes = tokenBytes(token, "x");
    expect(await broken.records.commit({ key, bytes, expectedSeq: 0, token, needsWork: false })).toEqual({
      kind: "stale",
      currentSeq: first.kind === "accepted" ? first.seq : 0,
    });
  });

  test("a partition of a pool that the namespace does not have is refused with HF-4005", async () => {
    await expect(ports.records.load("gpu-0.probe.a")).rejects.toMatchObject({ code: "HF-4005" });
  });
});

describe("NatsErasureOrders", () => {
  const survey = (limit = 10) => ports.retention.survey("d-6", { isDue: () => true, fromSeq: 1, limit }, soon());

  test("an order stands beside the record until it is withdrawn; one that was given anew stays", async () => {
    const [key, other] = ["d-6.probe.with-dash_1", "d-6.probe.b"];
    for (const ordered of [key, other]) await ports.erasures.give(ordered);
    const { orders, keys, ended } = await survey();
    expect(orders.map((order) => order.key)).toEqual([key, other]);
    expect([[...keys], ended]).toEqual([[], []]);
    expect((await survey(1)).orders).toHaveLength(1);
    await ports.erasures.give(key);
    for (const order of orders) await ports.erasures.withdraw(order.key, order.seq);
    expect((await survey()).orders.map((order) => order.key)).toEqual([key]);
  });
});

describe("NatsMessageLog", () => {
  const listen = async (partition: string, via = ports) => {
    const received: InboxMessage[] = [];
    const subscription = await via.log.subscribe(partition, 1, (message) => received.push(message));
    return { received, subscription };
  };

  test("readThrough waits for a backlog that is still on its way", async () => {
    const body = "x".repeat(20_000);
    for (let n = 0; n < 300; n++) await publishRaw(subjects.inbox("d-4.probe.a"), body);
    const { received, subscription } = await listen("d-4");
    await subscription.readThrough(soon());
    expect(received.length).toBe(300);
    await subscription.stop();
  });

  test("readThrough waits out a broken connection, and does not answer for what it did not hand over", async () => {
    const proxy = await broker.proxy();
    const far = composeNatsPorts(await broker.connect({ via: proxy }), namespace, { tokenOf });
    const { received, subscription } = await listen("d-6", far);
    proxy.swallowAnswers(true);
    await publishRaw(subjects.inbox("d-6.probe.a"), "meanwhile");
    const through = subscription.readThrough(soon());
    proxy.cut();
    proxy.swallowAnswers(false);
    await through;
    expect(received.map(({ bytes }) => textOf(bytes))).toEqual(["meanwhile"]);
    await subscription.stop();
  });

  test("readThrough ends with the message it waits for, when that is removed before it arrives", async () => {
    const proxy = await broker.proxy();
    const farLink = await broker.connect({ via: proxy });
    const far = composeNatsPorts(farLink, namespace, { tokenOf });
    const { received, subscription } = await listen("d-5", far);
    proxy.swallowAnswers(true);
    const doomed = await publishRaw(subjects.inbox("d-5.probe.a"), "doomed");
    await waitUntil("its delivery was lost", () => proxy.swallowed().includes("doomed"));
    proxy.swallowAnswers(false);
    const through = subscription.readThrough(soon());
    await waitUntil("the leader has named it", () => farLink.requests.openRequests === 0);
    await ports.log.trim("inbox", "d-5", (doomed.kind === "accepted" ? doomed.seq : 0) + 1);
    await through;
    expect(received).toEqual([]);
    await subscription.stop();
  });

  test("readThrough rejects once the subscription is stopped", async () => {
    const { subscription } = await listen("d-6");
    await subscription.stop();
    await expect(subscription.readThrough(soon())).rejects.toMatchObject({ code: "HF-3008" });
  });

  test("messages of no known shape are skipped and reported, and those after them delivered", async () => {
    const strange = [
      `hf.${subjects.ns}.inbox.d-2.UPPER.x`,
      `hf.${subjects.ns}.control.d-2.probe`,
      `hf.${subjects.ns}.in.nobody.d-2.probe.x`,
    ];
    for (const subject of strange) await publishRaw(subject, "?");
    await publishRaw(subjects.inbox("d-2.probe.a"), "fine");
    const { received, subscription } = await listen("d-2");
    await subscription.readThrough(soon());
    expect(received.map(({ bytes }) => textOf(bytes))).toEqual(["fine"]);
    expect(unreadable).toEqual(strange);
    await subscription.stop();
  });

  test("fetch gives the parked messages of a whole partition, and trim takes those of one actor", async () => {
    const [a, b] = ["d-0.probe.a", "d-0.probe.b"];
    for (const key of [a, b, a]) await ports.log.publish("parked", key, bytesOf(key), newToken());
    expect((await ports.log.fetch("parked", "d-0.>", 0, 100)).map(({ key }) => key)).toEqual([a, b, a]);
    await ports.log.trim("parked", a, 3);
    expect((await ports.log.fetch("parked", "d-0.>", 0, 100)).map(({ key, seq }) => [key, seq])).toEqual([
      [b, 2],
      [a, 3],
    ]);
  });

  test("F12: position says how full the inbox stream is", async () => {
    const small = await broker.namespace(link, { inboxBytes: 100_000 });
    const { log } = composeNatsPorts(link, small, { tokenOf });
    await log.publish("inbox", "d-1.task.a", new Uint8Array(75_000), "large");
    const { fill = 0 } = await log.position("d-1");
    expect(fill).toBeGreaterThanOrEqual(0.75);
    expect(fill).toBeLessThan(0.77);
    expect(await log.position("d-0")).toMatchObject({ fill: 0 });
  });

  test("F11: position refuses a stream that is not the recorded one, and so does subscribe", async () => {
    const other = await broker.namespace(link);
    const doomed = composeNatsPorts(link, other, { tokenOf });
    const stream = subjectsOf(other.manifest.ns).inboxStream(1);
    const generation = other.manifest.generations[stream];
    expect(await doomed.log.position("d-1")).toEqual({ generation, lineage: [], lastSeq: 0, fill: 0 });
    const { config } = await askApi(link, `STREAM.INFO.${stream}`);
    await askApi(link, `STREAM.DELETE.${stream}`);
    await expect(doomed.log.position("d-1")).rejects.toMatchObject({ code: "HF-4006" });
    await askApi(link, `STREAM.CREATE.${stream}`, config);
    await expect(doomed.log.position("d-1")).rejects.toMatchObject({ code: "HF-4006", facts: { stream } });
    await expect(doomed.log.subscribe("d-1", 1, () => undefined)).rejects.toMatchObject({ code: "HF-4006" });
  });
});

describe("NatsFleetRegistry", () => {
  test("a heartbeat that nobody acknowledges is undefined, and the next one after the outage is not", async () => {
    const proxy = await broker.proxy();
    const far = composeNatsPorts(await broker.connect({ via: proxy }), namespace, { tokenOf });
    proxy.swallowAnswers(true);
    const missed = far.fleet.put("node.a", bytesOf("1"));
    proxy.cut();
    proxy.swallowAnswers(false);
    expect(await missed).toBeUndefined();
    await waitUntil("heartbeats are stored again", () => far.fleet.put("node.a", bytesOf("2")));
  });

  test("marks of keys removed long ago are taken away by the next watch; a key written again stays", async () => {
    const registry = new NatsFleetRegistry(link, namespaceStreams(namespace), (fault) => faults.push(fault), 0);
    const subject = (key: string): string => `$KV.${subjects.fleetBucket}.${key}`;
    for (const key of ["want.d-0", "want.d-1"]) {
      await registry.put(key, bytesOf("{}"));
      await registry.remove(key);
    }
    await registry.put("want.d-1", bytesOf("again"));
    const before = await streamPosition(link, `KV_${subjects.fleetBucket}`);
    const seen: string[] = [];
    const watching = await registry.watch(({ key }) => seen.push(key));
    await waitUntil("the mark is gone", async () => {
      return (await readLast(link, `KV_${subjects.fleetBucket}`, subject("want.d-0"))) === undefined;
    });
    await watching.stop();
    expect(seen).toContain("want.d-1");
    expect(seen).not.toContain("want.d-0");
    expect(textOf((await registry.get("want.d-1"))?.bytes)).toBe("again");
    expect((await streamPosition(link, `KV_${subjects.fleetBucket}`)).messages).toBe(before.messages - 1);
  });
});

test("F6: a message that was taken out keeps the blobs that it names, until it is forgotten", async () => {
  const sha256 = "5ac1e0".padEnd(64, "0");
  const named = async (): Promise<boolean> => {
    const found: string[] = [];
    await ports.blobSweep.named((prefix) => void found.push(prefix), soon());
    return found.some((prefix) => sha256.startsWith(prefix));
  };
  const key = "bytes.d-0.probe.p.mark";
  expect(await named()).toBe(false);
  await ports.stuck.put(key, bytesOf("a message"), [sha256]);
  expect(await named()).toBe(true);
  await ports.stuck.remove(key);
  expect(await named()).toBe(false);
});

test("no reader of this file reported a fault", () => {
  expect(faults).toEqual([]);
});
