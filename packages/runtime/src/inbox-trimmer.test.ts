import type { Lease } from "@holdfast/protocol";
import { expect, test } from "vitest";
import { FleetView } from "./fleet-view.ts";
import { InboxTrimmer } from "./inbox-trimmer.ts";
import { silentTelemetry } from "./ports/index.ts";
import { ManualClock, MemoryBroker } from "./testing/index.ts";

const scheme = { pools: { d: 4 }, shards: 2 };
const partitions = ["d-0", "d-1", "d-2", "d-3"];

function harness() {
  const clock = new ManualClock();
  const view = new FleetView({ clock, telemetry: silentTelemetry, ttlMs: 3000 });
  const trimmed: [string, number][] = [];
  const { log } = new MemoryBroker({ clock }).connect("a");
  const trimmer = new InboxTrimmer({
    scheme,
    partitions,
    view,
    clock,
    windowMs: 1000,
    log: { ...log, trim: (_lane, target, below) => Promise.resolve(void trimmed.push([target, below])) },
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

test("F54: only the owner of the lowest partition trims, and never past a partition without a lease or of another stream", async () => {
  const { clock, trimmer, trimmed, cursor } = harness();
  cursor("d-0", 50);
  for (const owned of [new Set(["d-2"]), new Set(["d-0"])]) {
    await trimmer.trim(owned);
    await clock.advance(2000);
    await trimmer.trim(owned);
  }
  cursor("d-2", 60, "other");
  await trimmer.trim(new Set(["d-0"]));
  await clock.advance(2000);
  await trimmer.trim(new Set(["d-0"]));
  expect(trimmed).toEqual([]);
});
