import type { ActorKey } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import type { CommitRequest, StoredValue } from "../../ports/index.ts";
import { committedSeq, keyIn, plain, type MakeContractSetup } from "./contract-setup.ts";
import { contractSuite } from "./contract-suite.ts";
import { recordCheckpointContract } from "./record-checkpoint.contract.ts";
import { recordScanContract } from "./record-scan.contract.ts";

/** What every RecordStore must do. */
export function recordStoreContract(make: MakeContractSetup): void {
  describe("RecordStore", () => {
    const suite = contractSuite(make);

    const freshKey = (id = "a"): ActorKey => keyIn(suite.partitions.take().main, id);
    const write = (key: ActorKey, expectedSeq: number, text: string): CommitRequest => {
      const token = suite.unique("token");
      return { key, bytes: suite.setup.recordBytes(token, text), expectedSeq, token, needsWork: false };
    };
    const committed = (request: CommitRequest): Promise<number> => committedSeq(suite.setup.a.records.commit(request));
    const load = async (key: ActorKey, node: "a" | "b" = "b"): Promise<StoredValue | undefined> =>
      plain(await suite.setup[node].records.load(key));

    test("a key that was never written loads as nothing", async () => {
      expect(await load(freshKey(), "a")).toBeUndefined();
    });

    test("a committed value is loaded by the other node, with the sequence the commit gave", async () => {
      const request = write(freshKey(), 0, "one");
      const seq = await committed(request);
      expect(await load(request.key)).toEqual({ bytes: request.bytes, seq });
    });

    test("a value of the hard record limit comes back unchanged", async () => {
      const request = write(freshKey(), 0, "x".repeat(511 * 1024));
      const seq = await committed(request);
      expect((await load(request.key))?.bytes).toEqual(request.bytes);
      expect(seq).toBeGreaterThan(0);
    });

    test("a loaded value belongs to the caller: changing it changes nothing stored", async () => {
      const request = write(freshKey(), 0, "one");
      const seq = await committed(request);
      (await suite.setup.a.records.load(request.key))?.bytes.fill(0);
      expect(await load(request.key, "a")).toEqual({ bytes: request.bytes, seq });
    });

    test("create over an existing value is stale, names its sequence and leaves it", async () => {
      const first = write(freshKey(), 0, "one");
      const seq = await committed(first);
      const outcome = await suite.setup.b.records.commit(write(first.key, 0, "two"));
      expect(outcome).toEqual({ kind: "stale", currentSeq: seq });
      expect(await load(first.key, "a")).toEqual({ bytes: first.bytes, seq });
    });

    test("a value replaces the one whose sequence it names", async () => {
      const first = write(freshKey(), 0, "one");
      const second = write(first.key, await committed(first), "two");
      const seq = await committed(second);
      expect(seq).toBeGreaterThan(second.expectedSeq);
      expect(await load(first.key)).toEqual({ bytes: second.bytes, seq });
    });

    test("a value that names an older sequence is stale and not stored", async () => {
      const first = write(freshKey(), 0, "one");
      const firstSeq = await committed(first);
      const second = write(first.key, firstSeq, "two");
      const secondSeq = await committed(second);
      const outcome = await suite.setup.b.records.commit(write(first.key, firstSeq, "late"));
      expect(outcome).toEqual({ kind: "stale", currentSeq: secondSeq });
      expect((await load(first.key, "a"))?.bytes).toEqual(second.bytes);
    });

    test("a value that replaces one that never was is stale without a sequence", async () => {
      const request = write(freshKey(), 7, "one");
      expect(await suite.setup.a.records.commit(request)).toEqual({ kind: "stale", currentSeq: undefined });
      expect(await load(request.key, "a")).toBeUndefined();
    });

    test("of two nodes that replace the same value, one commits and the other is stale, every time", async () => {
      const first = write(freshKey(), 0, "0");
      let seq = await committed(first);
      for (let round = 1; round <= 20; round += 1) {
        const requests = [write(first.key, seq, `a${round}`), write(first.key, seq, `b${round}`)] as const;
        const outcomes = await Promise.all([
          suite.setup.a.records.commit(requests[0]),
          suite.setup.b.records.commit(requests[1]),
        ]);
        expect(outcomes.map((outcome) => outcome.kind).toSorted()).toEqual(["committed", "stale"]);
        const winner = outcomes[0].kind === "committed" ? 0 : 1;
        const stored = await load(first.key, "a");
        expect(stored?.bytes).toEqual(requests[winner].bytes);
        expect(outcomes[winner]).toEqual({ kind: "committed", seq: stored?.seq });
        seq = stored?.seq ?? 0;
      }
    });

    test("of two nodes that create the same key, one commits and the other is stale", async () => {
      const key = freshKey();
      const outcomes = await Promise.all([
        suite.setup.a.records.commit(write(key, 0, "a")),
        suite.setup.b.records.commit(write(key, 0, "b")),
      ]);
      expect(outcomes.map((outcome) => outcome.kind).toSorted()).toEqual(["committed", "stale"]);
    });

    test("sequences grow over all keys of a partition", async () => {
      const { main } = suite.partitions.take();
      const seqs: number[] = [];
      for (const id of ["a", "b", "c"]) seqs.push(await committed(write(keyIn(main, id), 0, id)));
      expect(seqs).toEqual(seqs.toSorted((x, y) => x - y));
      expect(new Set(seqs).size).toBe(3);
    });

    test("I7: the same attempt sent again counts as committed where it is stored", async () => {
      const request = write(freshKey(), 0, "one");
      const seq = await committed(request);
      expect(await suite.setup.a.records.commit(request)).toEqual({ kind: "committed", seq });
    });

    test("I7: equal content under another token is not ours", async () => {
      const first = write(freshKey(), 0, "one");
      const seq = await committed(first);
      expect(await suite.setup.a.records.commit(write(first.key, 0, "one"))).toEqual({
        kind: "stale",
        currentSeq: seq,
      });
    });

    test("I7: a write whose acknowledgement is lost counts as committed, once", async ({ skip }) => {
      const loseNextAck = suite.setup.faults?.loseNextAck ?? skip("the setup cannot lose an acknowledgement");
      const request = write(freshKey(), 0, "one");
      const lost = await loseNextAck();
      const outcome = suite.setup.a.records.commit(request);
      await lost.happened;
      const stored = await load(request.key);
      await lost.release();
      expect(await outcome).toEqual({ kind: "committed", seq: stored?.seq });
      expect(await load(request.key)).toEqual({ bytes: request.bytes, seq: stored?.seq });
    });

    test("I7: a write that was stored, not acknowledged and replaced by another node is unknown, not stale", async ({
      skip,
    }) => {
      const loseNextAck = suite.setup.faults?.loseNextAck ?? skip("the setup cannot lose an acknowledgement");
      const request = write(freshKey(), 0, "one");
      const lost = await loseNextAck();
      const outcome = suite.setup.a.records.commit(request);
      await lost.happened;
      const seen = await load(request.key);
      const next = write(request.key, seen?.seq ?? 0, "two");
      expect(await suite.setup.b.records.commit(next)).toMatchObject({ kind: "committed" });
      await lost.release();
      expect(await outcome).toMatchObject({ kind: "unknown" });
      expect((await load(request.key))?.bytes).toEqual(next.bytes);
    });

    test("I7: a write that arrives after its own retry changes nothing", async ({ skip }) => {
      const delayNextWrite = suite.setup.faults?.delayNextWrite ?? skip("the setup cannot delay a write");
      const request = write(freshKey(), 0, "one");
      const late = await delayNextWrite();
      const outcome = await suite.setup.a.records.commit(request);
      expect(outcome).toMatchObject({ kind: "committed" });
      const next = write(request.key, outcome.kind === "committed" ? outcome.seq : 0, "two");
      const seq = await committed(next);
      await late.release();
      expect(
        await suite.setup.b.records.commit(write(keyIn(suite.partitions.take().main, "after"), 0, "after")),
      ).toMatchObject({
        kind: "committed",
      });
      expect(await load(request.key)).toEqual({ bytes: next.bytes, seq });
    });
  });
  recordScanContract(make);
  recordCheckpointContract(make);
}
