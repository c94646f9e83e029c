import type { Lease } from "@holdfast/protocol";
import { expect, test } from "vitest";
import { FleetView } from "./fleet-view.ts";
import { InboxTrimmer } from "./inbox-trimmer.ts";
import { silentTelemetry, type InboxMessage } from "./ports/index.ts";
import { ManualClock, MemoryBroker } from "./testing/index.ts";

const scheme = { pools: { d: 4 }, shards: 2 };

const message = (key: string, seq: number): InboxMessage => ({
  key,
  seq,
  lane: "inbox",
  messageId: "m",
  principal: undefined,
  bytes: new Uint8Array(0),
  storedAtMs: 0,
});

/** @param unread  first message of partitions that have one */
function harness(
  unread: Readonly<Record<string, number>> = {},
  pools: Readonly<Record<string, number>> = scheme.pools,
) {
  const clock = new ManualClock();
  const view = new FleetView({ clock, telemetry: silentTelemetry, ttlMs: 3000 });
  const trimmed: [string, number][] = [];
  const { log } = new MemoryBroker({ clock }).connect("a");
  const trimmer = new InboxTrimmer({
    scheme: { ...scheme, pools },
    view,
    clock,
    windowMs: 1000,
    log: {
      publish: log.publish.bind(log),
      subscribe: log.subscribe.bind(log),
      position: log.position.bind(log),
      fetch: (_lane, key) => {
        const seq = unread[key.slice(0, key.indexOf("."))];
        return Promise.resolve(seq === undefined ? [] : [message(key, seq)]);
      },
      trim: (_lane, target, below) => Promise.resolve(void trimmed.push([target, below])),
    },
  });
  let seq = 0;
  const cursor = (partition: string, at: number, generation = "g"): void => {
    const lease: Lease = {
      v: 1,
      partition,
      epoch: 1,
      state: "held",
      holder: "a:aaaaaaaa",
      generation,
      cursor: at,
      highest: at,
      floorMs: 0,
      token: "t",
    };
    seq += 1;
    view.take({
      key: `lease.${partition}`,
      bytes: new TextEncoder().encode(JSON.stringify(lease)),
      seq,
      storedAtMs: 0,
    });
  };
  return { clock, trimmer, trimmed, cursor };
}

test("F54: a stream is trimmed below its lowest stored cursor, and not before the ids of those messages may be forgotten", async () => {
  const { clock, trimmer, trimmed, cursor } = harness();
  cursor("d-0", 50);
  cursor("d-2", 20);
  await trimmer.trim(new Set(["d-0"]));
  expect(trimmed).toEqual([]);
  await clock.advance(1000);
  cursor("d-2", 70);
  await trimmer.trim(new Set(["d-0"]));
  expect(trimmed).toEqual([["d-0", 20]]);
});

test("F54: only the owner of the lowest partition trims, and never past a lease of another stream", async () => {
  const { clock, trimmer, trimmed, cursor } = harness();
  cursor("d-0", 50);
  cursor("d-2", 60);
  await trimmer.trim(new Set(["d-2"]));
  await clock.advance(2000);
  await trimmer.trim(new Set(["d-2"]));
  expect(trimmed).toEqual([]);
  cursor("d-2", 60, "other");
  await trimmer.trim(new Set(["d-0"]));
  await clock.advance(2000);
  await trimmer.trim(new Set(["d-0"]));
  expect(trimmed).toEqual([]);
});

test("F54: a pool that nobody serves yet keeps its messages, whatever the others have read, and holds up nothing else", async () => {
  const { clock, trimmer, trimmed, cursor } = harness({ "gpu-2": 33 }, { d: 4, gpu: 4 });
  for (const [partition, at] of [
    ["d-0", 50],
    ["d-2", 60],
    ["d-1", 70],
    ["d-3", 80],
  ] as const)
    cursor(partition, at);
  const owned = new Set(["d-0", "d-1"]);
  await trimmer.trim(owned);
  await clock.advance(2000);
  await trimmer.trim(owned);
  expect(trimmed).toEqual([
    ["d-0", 33],
    ["d-1", 70],
  ]);
});
