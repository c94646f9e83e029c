import type { Heartbeat } from "@holdfast/protocol";
import { expect, test } from "vitest";
import { FleetView } from "./fleet-view.ts";
import { silentTelemetry } from "./ports/index.ts";

const heartbeat = (name: string, nonce: string): Heartbeat => ({
  v: 1,
  name,
  incarnation: `${name}:${nonce}`,
  startedAtMs: 0,
  pools: ["d"],
  types: [],
  formats: [1],
  machines: {},
  state: "serving",
  actors: 0,
  jobs: 0,
  custody: [],
});

function view() {
  let now = 0;
  let seq = 0;
  const clock = { monotonicMs: () => now, wallMs: () => now, schedule: () => () => undefined };
  const fleet = new FleetView({ clock, telemetry: silentTelemetry, ttlMs: 3000 });
  const beat = (name: string, nonce = "aaaaaaaa") =>
    fleet.take({
      key: `node.${name}`,
      bytes: new TextEncoder().encode(JSON.stringify(heartbeat(name, nonce))),
      seq: ++seq,
      storedAtMs: now,
    });
  return { fleet, beat, pass: (ms: number) => (now += ms) };
}

test("V1: a node is dead after the TTL when our own heartbeats were stored meanwhile", () => {
  const { fleet, beat, pass } = view();
  beat("b");
  for (let i = 0; i < 2; i += 1) {
    pass(1600);
    fleet.ownBeatSeen();
  }
  expect(fleet.isIncarnationAlive("b:aaaaaaaa")).toBe(true); // past the TTL, but two beats are not enough
  pass(1600);
  fleet.ownBeatSeen();
  expect(fleet.isIncarnationAlive("b:aaaaaaaa")).toBe(false);
});

test("V1: an outage of the broker kills nobody, however long (x14)", () => {
  const { fleet, beat, pass } = view();
  beat("b");
  fleet.ownBeatSeen();
  pass(60_000); // nothing is stored, neither theirs nor ours
  expect(fleet.isIncarnationAlive("b:aaaaaaaa")).toBe(true);
  fleet.ownBeatSeen(); // the broker is back: two of ours before theirs arrives
  beat("b");
  fleet.ownBeatSeen();
  expect(fleet.isIncarnationAlive("b:aaaaaaaa")).toBe(true);
});

test("V1: heartbeats in quick succession, as a planned move makes them, count as one", () => {
  const { fleet, beat, pass } = view();
  beat("b");
  pass(4000);
  for (let i = 0; i < 8; i += 1) {
    pass(20);
    fleet.ownBeatSeen();
  }
  expect(fleet.isIncarnationAlive("b:aaaaaaaa")).toBe(true);
});

test("it knows when the next of the living will have been silent for a TTL", () => {
  const { fleet, beat, pass } = view();
  expect(fleet.msUntilSilence).toBe(Infinity);
  beat("b");
  pass(700);
  beat("c");
  pass(300);
  expect(fleet.msUntilSilence).toBe(2000);
  pass(2100); // b is silent for longer, and not dead: none of our own heartbeats was stored
  expect(fleet.msUntilSilence).toBe(600);
  pass(5000);
  expect(fleet.msUntilSilence).toBe(Infinity);
});

test("V2: another incarnation of a name is another node (F14)", () => {
  const { fleet, beat } = view();
  beat("b", "aaaaaaaa");
  beat("b", "bbbbbbbb");
  expect(fleet.isIncarnationAlive("b:aaaaaaaa")).toBe(false);
  expect(fleet.isIncarnationAlive("b:bbbbbbbb")).toBe(true);
});

test("a heartbeat that cannot be read changes nothing", () => {
  const { fleet, beat } = view();
  beat("b");
  fleet.take({ key: "node.b", bytes: new TextEncoder().encode("{"), seq: 9, storedAtMs: 0 });
  expect(fleet.isIncarnationAlive("b:aaaaaaaa")).toBe(true);
});
