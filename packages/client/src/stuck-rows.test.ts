import type { Heartbeat, Lease, StuckEntry } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import type { StuckList } from "./namespace-reader.ts";
import { stuckRows } from "./stuck-rows.ts";

const NOW = 1_000_000;

const node = (name: string, silentMs: number): Heartbeat & { readonly storedAtMs: number } => ({
  v: 1,
  name,
  incarnation: `${name}:00000001`,
  startedAtMs: 0,
  pools: ["d"],
  types: [],
  formats: [1],
  machines: {},
  state: "serving",
  actors: 0,
  jobs: 0,
  custody: [],
  storedAtMs: NOW - silentMs,
});

const lease = (partition: string, holder: string): Lease => ({
  v: 1,
  partition,
  epoch: 3,
  state: "held",
  holder: `${holder}:00000001`,
  generation: "g",
  cursor: 7,
  highest: 9,
  floorMs: 0,
  token: "t",
});

const entry = (key: string): StuckEntry => ({
  v: 1,
  key,
  subject: "actor",
  state: "quarantined",
  code: "HF-2002",
  reason: "damaged",
  attempts: 1,
  history: [{ atMs: 5, node: "a:00000001", code: "HF-2002", reason: "damaged" }],
  firstMs: 5,
  lastMs: 5,
});

describe("what is stuck, as an operator sees it", () => {
  const nodes = [node("a", 0), node("b", 60_000)];
  const leases = [lease("d-0", "a"), lease("d-1", "b")];
  const rows = (stuck: readonly StuckList[], entries: readonly StuckEntry[] = []) =>
    stuckRows(entries, { nodes, leases, stuck });

  test("what the owner of an actor says of it, with since when and what to do", () => {
    const said = { key: "d-0.boss.x", kind: "child-missing", why: "no record", sinceMs: 77, fix: "send it" };
    expect(rows([{ v: 1, node: "a", reports: [said] }])).toEqual([
      { key: "d-0.boss.x", kind: "child-missing", why: "no record", node: "a", firstMs: 77, fix: "send it" },
    ]);
  });

  test("what a former owner said, and what an entry says already, is left out", () => {
    const said = (key: string) => ({ key, kind: "gap", why: "w" });
    const stuck = [
      { v: 1 as const, node: "a", reports: [said("d-1.boss.x"), said("d-0.boss.y")] },
      { v: 1 as const, node: "b", reports: [said("d-0.boss.z")] },
    ];
    expect(rows(stuck, [entry("d-0.boss.y")])).toMatchObject([{ key: "d-0.boss.y", kind: "quarantined", firstMs: 5 }]);
  });

  test("a partition or a pool without an owner, as long as who says so lives", () => {
    const reports = [
      { key: "d-3", kind: "unowned", why: "no node claims this partition" },
      { key: "far-*", kind: "unowned", why: "no live node serves pool far" },
    ];
    expect(rows([{ v: 1, node: "a", reports }]).map(({ key }) => key)).toEqual(["d-3", "far-*"]);
    expect(rows([{ v: 1, node: "b", reports }])).toEqual([]);
  });
});
