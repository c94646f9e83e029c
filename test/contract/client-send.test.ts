import { HoldfastClient } from "@holdfast/client";
import { createCodec } from "@holdfast/codec";
import { actorRefExtension } from "@holdfast/durable";
import { ensureNamespace, publishStored, streamPosition, type Link } from "@holdfast/jetstream";
import { parseActorKey, shardOf, subjectsOf } from "@holdfast/protocol";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newToken, startBroker, type BrokerFixture } from "./jetstream-fixture.ts";

const NS = "guest";
let broker: BrokerFixture;
let node: Link;
beforeAll(async () => {
  broker = await startBroker(NS);
  node = await broker.connect();
  await ensureNamespace(node, { ns: NS, pools: { d: 8 }, shards: 2, newGeneration: newToken });
});
afterAll(() => broker.close());

test.each([
  ["damaged", Uint8Array.of(1, 2, 3)],
  ["of a newer build", Uint8Array.from({ length: 64 }, (_, at) => [0x48, 0x46, 99, 0][at] ?? 0)],
])("S1: a message to an actor whose record is %s is accepted: it is stored", async (_what, bytes) => {
  const client = await HoldfastClient.open({
    link: await broker.connect({ user: "client" }),
    codec: createCodec({ ref: actorRefExtension }),
    namespace: NS,
    principal: { kind: "person", id: "local", roles: [] },
    randomHex: newToken,
  });
  const key = client.key("order", "a");
  const subjects = subjectsOf(NS);
  const shard = shardOf(client.manifest, parseActorKey(key).partition);
  await publishStored(node, { subject: subjects.actorSubject(shard, key), bytes });
  await expect(client.read.header(key)).rejects.toThrow(/^Stored/);
  const { lastSeq } = await streamPosition(node, subjects.inboxStream(shard));
  expect(await client.send(key, { type: "GO" }, { timeoutMs: 50 })).toEqual({ kind: "accepted" });
  expect((await streamPosition(node, subjects.inboxStream(shard))).lastSeq).toBe(lastSeq + 1);
  client.close();
});
