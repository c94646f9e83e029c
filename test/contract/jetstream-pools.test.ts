import {
  countFrom,
  ensureNamespace,
  LiveNamespace,
  publishStored,
  readTypeHomes,
  serverTimeMs,
  settleTypeHomes,
  type Link,
} from "@holdfast/jetstream";
import { composeNatsPorts } from "@holdfast/nats";
import { partitionsOf, shardOf, subjectsOf } from "@holdfast/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bytesOf, newToken, startBroker, type BrokerFixture } from "./jetstream-fixture.ts";

let broker: BrokerFixture;
let link: Link;
let names = 0;
const layout = { shards: 2, inboxBytes: 1024 * 1024, parkedBytes: 1024 * 1024, newGeneration: newToken };
const freshName = (): string => `p${(names += 1)}`;
beforeAll(async () => {
  broker = await startBroker();
  link = await broker.connect();
});
afterAll(() => broker.close());

describe("pools are added to a namespace that exists", () => {
  test("its streams take their subjects, and what was there stays as it was", async () => {
    const ns = freshName();
    const first = await ensureNamespace(link, { ...layout, ns, pools: { d: 4 } });
    const subjects = subjectsOf(ns);
    await publishStored(link, { subject: subjects.inbox("d-1.order.a"), bytes: bytesOf("kept") });
    const second = await ensureNamespace(link, { ...layout, ns, pools: { gpu: 3 } });
    expect(second.manifest.pools).toEqual({ d: 4, gpu: 3 });
    expect(second.streamCreated).toEqual(first.streamCreated);
    expect(second.manifest.generations).toEqual(first.manifest.generations);
    for (const partition of partitionsOf(second.manifest, "gpu")) {
      const stored = await publishStored(link, {
        subject: subjects.inbox(`${partition}.task.x`),
        bytes: bytesOf("new"),
      });
      expect(stored.kind).toBe("accepted");
    }
    const stream = subjects.inboxStream(shardOf(second.manifest, "d-1"));
    const count = { stream, filters: subjects.inboxFilters("d-1"), fromSeq: 1, name: "count_d-1" };
    expect(await countFrom(link, count)).toBe(1);
    expect(await countFrom(link, { ...count, fromSeq: 2 })).toBe(0);
    expect(await ensureNamespace(link, { ...layout, ns })).toEqual(second);
  });

  test("the size of a pool that is there cannot be changed: HF-4005", async () => {
    const ns = freshName();
    await ensureNamespace(link, { ...layout, ns, pools: { d: 4 } });
    await expect(ensureNamespace(link, { ...layout, ns, pools: { d: 8, gpu: 1 } })).rejects.toMatchObject({
      code: "HF-4005",
    });
  });

  test("five nodes that add a pool each at once end with all of them, and with every subject", async () => {
    const ns = freshName();
    await ensureNamespace(link, { ...layout, ns, pools: { d: 4 } });
    const links = await Promise.all(Array.from({ length: 5 }, () => broker.connect()));
    await Promise.all(links.map((one, n) => ensureNamespace(one, { ...layout, ns, pools: { [`x${n}`]: 4 } })));
    const { manifest } = await ensureNamespace(link, { ...layout, ns });
    expect(Object.keys(manifest.pools).toSorted()).toEqual(["d", "x0", "x1", "x2", "x3", "x4"]);
    const subjects = subjectsOf(ns);
    for (const partition of Object.keys(manifest.pools).flatMap((pool) => partitionsOf(manifest, pool))) {
      const stored = await publishStored(link, { subject: subjects.inbox(`${partition}.task.x`), bytes: bytesOf("m") });
      expect([partition, stored.kind]).toEqual([partition, "accepted"]);
    }
  });

  test("a node that runs takes the new pool up when it reads the layout again", async () => {
    const ns = freshName();
    const live = new LiveNamespace(link, await ensureNamespace(link, { ...layout, ns, pools: { d: 4 } }));
    const { log } = composeNatsPorts(link, live, { tokenOf: () => undefined });
    await ensureNamespace(link, { ...layout, ns, pools: { gpu: 4 } });
    await expect(log.position("gpu-1")).rejects.toMatchObject({ code: "HF-4005" });
    await live.refresh();
    expect(live.pools).toEqual({ d: 4, gpu: 4 });
    expect(await log.position("gpu-1")).toMatchObject({ lastSeq: 0 });
  });
});

describe("where types live", () => {
  test("the first node decides, all others and clients read it", async () => {
    const ns = freshName();
    await ensureNamespace(link, { ...layout, ns, pools: { d: 4 } });
    expect(await readTypeHomes(link, ns)).toEqual(new Map());
    const mine = new Map([
      ["order", "d"],
      ["item", "far"],
    ]);
    expect(await settleTypeHomes(link, ns, mine, newToken)).toEqual(mine);
    expect(await settleTypeHomes(link, ns, new Map([["task", "d"]]), newToken)).toEqual(
      new Map([...mine, ["task", "d"]]),
    );
    await expect(settleTypeHomes(link, ns, new Map([["item", "d"]]), newToken)).rejects.toMatchObject({
      code: "HF-4005",
      message: expect.stringMatching(/item.*pool d.*lives in pool far/),
    });
  });

  test("of two nodes that disagree at once, one is told", async () => {
    const ns = freshName();
    await ensureNamespace(link, { ...layout, ns, pools: { d: 4 } });
    const other = await broker.connect();
    const settled = await Promise.allSettled([
      settleTypeHomes(link, ns, new Map([["item", "d"]]), newToken),
      settleTypeHomes(other, ns, new Map([["item", "far"]]), newToken),
    ]);
    expect(settled.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  });

  test("a client may read them", async () => {
    const ns = "guest";
    await ensureNamespace(link, { ...layout, ns, pools: { d: 4 } });
    await settleTypeHomes(link, ns, new Map([["item", "far"]]), newToken);
    for (const user of ["client", "operator"] as const)
      expect(await readTypeHomes(await broker.connect({ user }), ns)).toEqual(new Map([["item", "far"]]));
  });
});

test("the server tells its time", async () => {
  const ns = freshName();
  await ensureNamespace(link, { ...layout, ns, pools: { d: 4 } });
  const told = await serverTimeMs(link, `KV_${subjectsOf(ns).fleetBucket}`);
  expect(Math.abs((told ?? 0) - Date.now())).toBeLessThan(5000);
});
