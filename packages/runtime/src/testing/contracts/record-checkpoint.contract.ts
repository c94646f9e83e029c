import { describe, expect, test } from "vitest";
import { bytesOf, committedSeq, keyIn, plain, soon, type MakeContractSetup } from "./contract-setup.ts";
import { contractSuite } from "./contract-suite.ts";

/** What every RecordStore must do with the checkpoint of a partition. */
export function recordCheckpointContract(make: MakeContractSetup): void {
  describe("RecordStore checkpoint", () => {
    const suite = contractSuite(make);

    const checkpoint = (text: string): { readonly bytes: Uint8Array; readonly token: string } => {
      const token = suite.unique("token");
      return { bytes: bytesOf(JSON.stringify({ token, text })), token };
    };
    const store = async (partition: string, expectedSeq: number, text: string, node: "a" | "b" = "a") => {
      const { bytes, token } = checkpoint(text);
      const { records } = suite.setup[node];
      return { bytes, seq: await committedSeq(records.storeCheckpoint(partition, bytes, expectedSeq, token)) };
    };

    test("a partition without one has none", async () => {
      const { main } = suite.partitions.take();
      expect(await suite.setup.a.records.loadCheckpoint(main)).toBeUndefined();
    });

    test("what one node stored the other one loads, and only for that partition", async () => {
      const { main, sameShard } = suite.partitions.take();
      const stored = await store(main, 0, "first");
      expect(plain(await suite.setup.b.records.loadCheckpoint(main))).toEqual(stored);
      expect(await suite.setup.b.records.loadCheckpoint(sameShard)).toBeUndefined();
    });

    test("F11: the end of a bucket is that of whatever was stored last, in any partition of the shard", async () => {
      const { main, sameShard } = suite.partitions.take();
      const { seq } = await store(main, 0, "first");
      expect(await suite.setup.b.records.lastSeq(sameShard)).toBe(seq);
      const later = await store(sameShard, 0, "second");
      expect(await suite.setup.b.records.lastSeq(main)).toBe(later.seq);
    });

    test("F8: its sequence counts with those of the records", async () => {
      const { main } = suite.partitions.take();
      const token = suite.unique("token");
      const bytes = suite.setup.recordBytes(token, "x");
      const request = { key: keyIn(main, "a"), bytes, expectedSeq: 0, token, needsWork: true };
      const recordSeq = await committedSeq(suite.setup.a.records.commit(request));
      const { seq } = await store(main, 0, "after it");
      expect(seq).toBeGreaterThan(recordSeq);
    });

    test("one that replaces another than it names is stale and changes nothing", async () => {
      const { main } = suite.partitions.take();
      const first = await store(main, 0, "first");
      const second = await store(main, first.seq, "second", "b");
      for (const expectedSeq of [0, first.seq]) {
        const late = checkpoint("late");
        const outcome = await suite.setup.a.records.storeCheckpoint(main, late.bytes, expectedSeq, late.token);
        expect(outcome).toEqual({ kind: "stale", currentSeq: second.seq });
      }
      expect(plain(await suite.setup.a.records.loadCheckpoint(main))).toEqual(second);
    });

    test("a scan does not take it for a record", async () => {
      const { main } = suite.partitions.take();
      await store(main, 0, "first");
      const visited: unknown[] = [];
      const parts = [{ partition: main, fromSeq: 0 }];
      await suite.setup.a.records.scan({ parts, visit: (entry) => visited.push(entry), signal: soon() });
      expect(visited).toEqual([]);
    });

    test("partitions of a shard have one generation", () => {
      const { main, sameShard } = suite.partitions.take();
      const { records } = suite.setup.a;
      expect(records.generation(main)).toMatch(/^[a-z0-9]+$/);
      expect(records.generation(sameShard)).toBe(records.generation(main));
    });
  });
}
