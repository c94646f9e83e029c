import type { OpenNamespace } from "@holdfast/jetstream";
import { composeNatsPorts } from "@holdfast/nats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitUntil } from "../harness/wait-until.ts";
import { bytesOf, newToken, startBroker, tokenBytes, tokenOf, type BrokerFixture } from "./jetstream-fixture.ts";

let broker: BrokerFixture;
let namespace: OpenNamespace;
beforeAll(async () => {
  broker = await startBroker();
  namespace = await broker.namespace(await broker.connect());
});
afterAll(() => broker.close());

/** A node whose work goes over a line that the test can hold up; its leases go over another one. */
async function twoLines() {
  const proxy = await broker.proxy();
  const work = await broker.connect({ via: proxy });
  const ports = composeNatsPorts(work, namespace, { tokenOf, fleetLink: await broker.connect() });
  return { proxy, work, ports };
}

describe("heartbeats and leases on a line of their own", () => {
  test("are stored and seen while nothing comes through on the line of the work", async () => {
    const { proxy, ports } = await twoLines();
    const seen: string[] = [];
    const watch = await ports.fleet.watch(({ key }) => seen.push(key));
    const held = proxy.holdRequests();
    let isCommitted = false;
    const token = newToken();
    const committing = ports.records
      .commit({ key: "d-0.probe.held", bytes: tokenBytes(token, "x"), expectedSeq: 0, token, needsWork: true })
      .then(() => (isCommitted = true));
    expect(await ports.fleet.put("node.n1", bytesOf("{}"))).toMatchObject({ seq: expect.any(Number) });
    const claim = await ports.fleet.compareAndSet("lease.d-0", bytesOf(JSON.stringify({ token: "t" })), 0, "t");
    expect(claim.kind).toBe("committed");
    await waitUntil("both are seen", () => seen.includes("node.n1") && seen.includes("lease.d-0"));
    expect([isCommitted, held.held() > 0]).toEqual([false, true]);
    held.release();
    await committing;
    await watch.stop();
  });

  test("stop with the line of the work: who cannot work must not look alive", async () => {
    const { proxy, work, ports } = await twoLines();
    expect(await ports.fleet.put("node.n2", bytesOf("{}"))).toBeDefined();
    await proxy.close();
    await waitUntil("the line is down", () => !work.isConnected);
    expect(await ports.fleet.put("node.n2", bytesOf("{}"))).toBeUndefined();
  });
});
