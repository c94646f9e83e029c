import { HoldfastClient } from "@holdfast/client";
import { createCodec } from "@holdfast/codec";
import { actorRefExtension } from "@holdfast/durable";
import { ensureNamespace, streamPosition, type Link } from "@holdfast/jetstream";
import { composeNatsPorts } from "@holdfast/nats";
import { RuntimeFault, shardOf, subjectsOf } from "@holdfast/protocol";
import type { FleetRegistry } from "@holdfast/runtime/ports";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitUntil } from "../harness/wait-until.ts";
import { bytesOf, newToken, startBroker, tokenOf, type BrokerFixture } from "./jetstream-fixture.ts";

const NS = "guest";
let broker: BrokerFixture;
let node: Link;
let fleet: FleetRegistry;
beforeAll(async () => {
  broker = await startBroker(NS);
  node = await broker.connect();
  const namespace = await ensureNamespace(node, { ns: NS, pools: { d: 8 }, shards: 2, newGeneration: newToken });
  ({ fleet } = composeNatsPorts(node, namespace, { tokenOf }));
});
afterAll(() => broker.close());

/** A program with the rights of a guest; nobody serves its actors, so nothing is answered. */
async function guest(window: { readonly unanswered?: number; readonly unansweredPerPartition?: number } = {}) {
  const link = await broker.connect({ user: "client" });
  return HoldfastClient.open({
    link,
    codec: createCodec({ ref: actorRefExtension }),
    namespace: NS,
    principal: { kind: "person", id: "local", roles: [] },
    window,
    randomHex: newToken,
  });
}

const say = (validMs: number, partitions: Record<string, { waiting: number; retryAfterMs: number }>) =>
  fleet.put("busy.n1", bytesOf(JSON.stringify({ v: 1, node: "n1", validMs, partitions })));
const partitionOf = (key: string): string => key.slice(0, key.indexOf("."));
const outcome = (sent: Promise<unknown>): Promise<unknown> => sent.catch((error: unknown) => error);
const isBusy = (error: unknown): error is RuntimeFault => error instanceof RuntimeFault && error.code === "HF-3020";

describe("a sender from outside", () => {
  test("G1: is told to come back when a node says that too much waits; nothing was stored", async () => {
    const client = await guest();
    const key = client.key("order", "a");
    const other = Array.from({ length: 50 }, (_, n) => client.key("order", `o${n}`)).find(
      (candidate) => partitionOf(candidate) !== partitionOf(key),
    );
    await say(60_000, { [partitionOf(key)]: { waiting: 4000, retryAfterMs: 1500 } });
    const stream = subjectsOf(NS).inboxStream(shardOf(client.manifest, partitionOf(key)));
    const send = (to: string) => outcome(client.send(to, { type: "GO" }, { timeoutMs: 50 }));
    const error = await waitUntil("the node was heard", async () => {
      const answer = await send(key);
      return isBusy(answer) ? answer : undefined;
    });
    expect(error.facts).toEqual({ partition: partitionOf(key), waiting: 4000, retryAfterMs: 1500 });
    expect(error.next).toBe("retry");
    const { lastSeq } = await streamPosition(node, stream);
    expect(isBusy(await send(key))).toBe(true);
    expect((await streamPosition(node, stream)).lastSeq).toBe(lastSeq);
    expect(await send(other ?? "")).toEqual({ kind: "accepted" });
    client.close();
  });

  test("G1: is let through again as soon as the node says so", async () => {
    const client = await guest();
    const key = client.key("order", "a");
    const send = () => outcome(client.send(key, { type: "GO" }, { timeoutMs: 50 }));
    await say(60_000, { [partitionOf(key)]: { waiting: 4000, retryAfterMs: 1500 } });
    await waitUntil("it is refused", async () => isBusy(await send()));
    await say(60_000, {});
    await waitUntil("it is taken", async () => !isBusy(await send()));
    client.close();
  });

  test("G2: what a node said that says nothing any more is forgotten", async () => {
    const client = await guest();
    const key = client.key("order", "a");
    const send = () => outcome(client.send(key, { type: "GO" }, { timeoutMs: 50 }));
    await say(400, { [partitionOf(key)]: { waiting: 4000, retryAfterMs: 1500 } });
    await waitUntil("it is refused", async () => isBusy(await send()));
    await waitUntil("it is taken", async () => !isBusy(await send()));
    client.close();
  });

  test.each([
    ["in all", { unanswered: 5 }, 5, 8],
    ["per partition", { unansweredPerPartition: 3 }, 3, 1],
  ])("G3: has a window of its own %s, whatever nodes say", async (_name, window, size, partitions) => {
    await say(60_000, {});
    const client = await guest(window);
    const keys = Array.from({ length: 400 }, (_, n) => client.key("order", `w${n}`)).filter(
      (key) => Number(partitionOf(key).slice(2)) < partitions,
    );
    const answers = await Promise.all(keys.map((key) => outcome(client.send(key, { type: "GO" }, { timeoutMs: 200 }))));
    expect(answers.filter((answer) => !isBusy(answer))).toHaveLength(size);
    // G4: those who are refused are told different times.
    const hints = answers.filter(isBusy).map(({ facts }) => facts["retryAfterMs"]);
    expect(new Set(hints).size).toBeGreaterThan(5);
    expect(await outcome(client.send(keys[0] ?? "", { type: "GO" }, { timeoutMs: 50 }))).toEqual({ kind: "accepted" });
    client.close();
  });
});
