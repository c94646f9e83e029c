import type { ActorKey } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import type { ScanEntry, ScanPart, ScanRequest } from "../../ports/index.ts";
import { bytesOf, committedSeq, keepDoing, keyIn, soon, textOf, type MakeContractSetup } from "./contract-setup.ts";
import { contractSuite } from "./contract-suite.ts";

const asking = (parts: readonly ScanPart[], visit: ScanRequest["visit"]): ScanRequest => ({
  parts,
  visit,
  signal: soon(),
});

/** What every RecordStore must do when it scans a partition. */
export function recordScanContract(make: MakeContractSetup): void {
  describe("RecordStore scan", () => {
    const suite = contractSuite(make);

    const put = async (
      key: ActorKey,
      expectedSeq: number,
      needsWork: boolean,
      node: "a" | "b" = "a",
    ): Promise<{ readonly key: string; readonly seq: number; readonly needsWork: boolean }> => {
      const token = suite.unique("token");
      const bytes = suite.setup.recordBytes(token, "x");
      const request = { key, bytes, expectedSeq, token, needsWork };
      return { key, seq: await committedSeq(suite.setup[node].records.commit(request)), needsWork };
    };
    const scan = async (
      partition: string,
      fromSeq = 1,
    ): Promise<{ readonly visited: readonly unknown[]; readonly barrier: number }> => {
      const visited: unknown[] = [];
      const barrier = await suite.setup.a.records.scan(
        asking([{ partition, fromSeq }], (entry) => visited.push(entry)),
      );
      return { visited, barrier };
    };

    test("visits every record of the partition once, at its latest value, in stored order", async () => {
      const { main } = suite.partitions.take();
      const first = await put(keyIn(main, "a"), 0, true);
      const b = await put(keyIn(main, "b"), 0, false);
      const a = await put(first.key, first.seq, false);
      const c = await put(keyIn(main, "c"), 0, true);
      expect((await scan(main)).visited).toEqual([b, a, c]);
    });

    test("the needs-work bit is that of the latest value", async () => {
      const { main } = suite.partitions.take();
      const asleep = await put(keyIn(main, "a"), 0, false);
      expect((await scan(main)).visited).toEqual([asleep]);
      const awake = await put(asleep.key, asleep.seq, true);
      expect((await scan(main)).visited).toEqual([awake]);
    });

    test("says of a record without work whether it waits for others, as its latest commit said", async () => {
      const { main } = suite.partitions.take();
      const key = keyIn(main, "a");
      const request = { key, bytes: suite.setup.recordBytes("w", "x"), token: "w", needsWork: false };
      const seq = await committedSeq(suite.setup.a.records.commit({ ...request, expectedSeq: 0, waits: true }));
      expect((await scan(main)).visited).toEqual([{ key, seq, needsWork: false, waits: true }]);
      const later = await put(key, seq, false);
      expect((await scan(main)).visited).toEqual([later]);
    });

    test("ends on a partition in which nothing was ever written", async () => {
      const { main, empty } = suite.partitions.take();
      await put(keyIn(main, "a"), 0, true);
      const { visited, barrier } = await scan(empty);
      expect(visited).toEqual([]);
      expect(barrier).toBeGreaterThan(0);
    });

    test("ends on a quiet partition while its shard is busy, and visits nothing of the others", async () => {
      const { main, sameShard, otherShard } = suite.partitions.take();
      const mine = await put(keyIn(main, "a"), 0, true);
      await put(keyIn(otherShard, "a"), 0, true);
      const stopOthers = keepDoing((round) => put(keyIn(sameShard, `n${round}`), 0, true, "b"));
      const { visited } = await scan(main);
      await stopOthers();
      expect(visited).toEqual([mine]);
    });

    test("keeps partitions apart whose names begin alike", async () => {
      const { short, long } = suite.partitions.namesakes;
      const inShort = await put(keyIn(short, "a"), 0, true);
      const inLong = await put(keyIn(long, "a"), 0, true);
      expect((await scan(short)).visited).toEqual([inShort]);
      expect((await scan(long)).visited).toEqual([inLong]);
    });

    test("sees what any node had acknowledged before it began", async () => {
      const { main } = suite.partitions.take();
      for (let round = 0; round < 20; round += 1) {
        const written = await put(keyIn(main, `r${round}`), 0, true, "b");
        expect((await scan(main)).visited).toContainEqual(written);
      }
    });

    test("starts at the sequence it is given", async () => {
      const { main } = suite.partitions.take();
      await put(keyIn(main, "a"), 0, true);
      const b = await put(keyIn(main, "b"), 0, true);
      const c = await put(keyIn(main, "c"), 0, true);
      expect((await scan(main, b.seq)).visited).toEqual([b, c]);
      expect((await scan(main, c.seq + 1)).visited).toEqual([]);
    });

    test("a scan from the barrier of the one before visits what changed since, and only that", async () => {
      const { main } = suite.partitions.take();
      await put(keyIn(main, "a"), 0, true);
      const b = await put(keyIn(main, "b"), 0, true);
      const before = await scan(main);
      const changed = await put(b.key, b.seq, false);
      const after = await scan(main, before.barrier);
      expect(changed.seq).toBeGreaterThan(before.barrier);
      expect(after.visited).toEqual([changed]);
      expect(after.barrier).toBeGreaterThan(changed.seq);
    });

    test("one scan serves several partitions of a shard, each from its own sequence", async () => {
      const { main, sameShard, empty } = suite.partitions.take();
      await put(keyIn(main, "a"), 0, true);
      const other = await put(keyIn(sameShard, "a"), 0, true);
      const b = await put(keyIn(main, "b"), 0, false);
      const late = await put(keyIn(sameShard, "b"), 0, true, "b");
      const visited: unknown[] = [];
      const parts = [
        { partition: empty, fromSeq: 0 },
        { partition: main, fromSeq: b.seq },
        { partition: sameShard, fromSeq: 1 },
      ];
      const barrier = await suite.setup.a.records.scan(asking(parts, (entry) => visited.push(entry)));
      expect(visited).toEqual([other, b, late]);
      expect(barrier).toBeGreaterThan(late.seq);
    });

    test("values are those of the sequence they come with, and only of records that need work", async () => {
      const { main } = suite.partitions.take();
      const asleep = await put(keyIn(main, "a"), 0, false);
      const first = await put(keyIn(main, "b"), 0, true);
      const awake = await put(first.key, first.seq, true, "b");
      const visited: ScanEntry[] = [];
      const request = asking([{ partition: main, fromSeq: asleep.seq }], (entry) => visited.push(entry));
      await suite.setup.a.records.scan({ ...request, wantsValues: true });
      const stored = await suite.setup.b.records.load(awake.key);
      expect(visited.map(({ key, seq }) => ({ key, seq }))).toEqual([
        { key: asleep.key, seq: asleep.seq },
        { key: awake.key, seq: awake.seq },
      ]);
      expect(visited[0]?.bytes).toBeUndefined();
      expect(textOf(visited[1]?.bytes)).toBe(textOf(stored?.bytes));
    });

    test("two nodes that scan one partition at once both end, with different barriers", async () => {
      const { main } = suite.partitions.take();
      await put(keyIn(main, "a"), 0, true);
      for (let round = 0; round < 5; round += 1) {
        const seen: unknown[] = [];
        const [first, second] = await Promise.all([
          suite.setup.a.records.scan(asking([{ partition: main, fromSeq: 1 }], (entry) => seen.push(entry))),
          suite.setup.b.records.scan(asking([{ partition: main, fromSeq: 1 }], (entry) => seen.push(entry))),
        ]);
        expect(first).not.toBe(second);
        expect(seen.length).toBe(2);
      }
    });

    test("rejects when the caller no longer wants it", async () => {
      const { main } = suite.partitions.take();
      await put(keyIn(main, "a"), 0, true);
      const signal = AbortSignal.abort(new Error("drained"));
      const request = asking([{ partition: main, fromSeq: 1 }], () => undefined);
      const scanning = suite.setup.a.records.scan({ ...request, signal });
      await expect(scanning).rejects.toThrow("drained");
    });

    test("visits a record whose bytes nobody can read", async () => {
      const { main } = suite.partitions.take();
      const request = { key: keyIn(main, "odd"), bytes: bytesOf("not a record"), token: "odd" };
      const seq = await committedSeq(suite.setup.a.records.commit({ ...request, expectedSeq: 0, needsWork: true }));
      expect((await scan(main)).visited).toEqual([{ key: keyIn(main, "odd"), seq, needsWork: true }]);
    });
  });
}
