import { partitionsOf, subjectsOf } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { fleetDeclaration, topologyOf } from "./topology.ts";

const manifest = { ns: "t", pools: { d: 32, gpu: 3 }, shards: 8 };
const names = subjectsOf("t");
const declarations = topologyOf(manifest, { replicas: 3 });
const all = [fleetDeclaration("t", { replicas: 3 }), ...declarations];
const starting = (prefix: string) => all.filter(({ name }) => name.startsWith(prefix));

describe("topology", () => {
  test("every partition of every pool has its subjects in exactly one inbox, parked and journal stream", () => {
    const partitions = [...partitionsOf(manifest, "d"), ...partitionsOf(manifest, "gpu")];
    const count = (subject: string): number => all.filter(({ subjects }) => subjects.includes(subject)).length;
    for (const partition of partitions) {
      for (const subject of names.inboxFilters(partition)) expect(count(subject)).toBe(1);
      expect(count(names.parked(`${partition}.>`))).toBe(1);
      expect(count(names.journal(`${partition}.>`))).toBe(1);
    }
  });

  test("F12: nothing accepted is dropped for room or age, except public events by age and idempotency keys", () => {
    const forgetful = all.filter(({ config }) => config["discard"] !== "new" || config["max_age"] !== 0);
    expect(forgetful.map(({ name }) => name).toSorted()).toEqual(["HF_T_EVENTS_0", "KV_hf_t_idem"]);
  });

  test("inbox and parked streams have a byte limit, so that a full one refuses before the disk is full", () => {
    for (const { config } of [...starting("HF_T_INBOX"), ...starting("HF_T_PARKED")]) {
      expect(config["max_bytes"]).toBeGreaterThan(0);
    }
  });

  test("buckets keep one value per key and refuse deletion of single messages", () => {
    for (const { config } of starting("KV_")) {
      expect(config).toMatchObject({ max_msgs_per_subject: 1, deny_delete: true, allow_rollup_hdrs: true });
    }
  });

  test("a roll-up header, which empties a stream, works nowhere that outsiders publish", () => {
    for (const { config } of starting("HF_T_")) expect(config["allow_rollup_hdrs"]).toBe(false);
  });

  test("the audit stream can be neither thinned nor emptied", () => {
    expect(starting("HF_T_AUDIT")).toMatchObject([{ config: { deny_delete: true, deny_purge: true } }]);
  });

  test("every stream has the replicas asked for, one by default", () => {
    for (const { config } of all) expect(config["num_replicas"]).toBe(3);
    for (const { config } of topologyOf(manifest)) expect(config["num_replicas"]).toBe(1);
  });

  test("a shard without partitions has no streams", () => {
    const few = topologyOf({ ns: "t", pools: { d: 2 }, shards: 8 });
    expect(few.filter(({ name }) => name.startsWith("HF_T_INBOX")).map(({ name }) => name)).toEqual([
      "HF_T_INBOX_0",
      "HF_T_INBOX_1",
    ]);
  });

  test("no declaration has an empty list of subjects, and no name appears twice", () => {
    expect(all.every(({ subjects }) => subjects.length > 0)).toBe(true);
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
  });
});
