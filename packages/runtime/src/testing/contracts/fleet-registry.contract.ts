import { describe, expect, test } from "vitest";
import type { CommitOutcome, FleetValue } from "../../ports/index.ts";
import type { NodePorts } from "../memory-broker.ts";
import { waitUntil } from "../wait-until.ts";
import { bytesOf, committedSeq, plain, textOf, type MakeContractSetup } from "./contract-setup.ts";
import { contractSuite } from "./contract-suite.ts";

interface Watching {
  readonly seen: readonly FleetValue[];
  stop(): Promise<void>;
}

const withToken = (token: string, text = ""): Uint8Array => bytesOf(JSON.stringify({ token, text }));

const view = (values: readonly FleetValue[]): readonly string[] =>
  values.map(({ key, bytes }) => `${key.slice(key.lastIndexOf(".") + 1)}=${textOf(bytes)}`);

/** What every FleetRegistry must do. */
export function fleetRegistryContract(make: MakeContractSetup): void {
  describe("FleetRegistry", () => {
    const suite = contractSuite(make);
    const freshKey = (): string => `report.${suite.unique("d")}`;
    const cas = (
      node: NodePorts,
      key: string,
      expectedSeq: number,
      token = suite.unique("token"),
    ): Promise<CommitOutcome> => node.fleet.compareAndSet(key, withToken(token), expectedSeq, token);
    const get = async (key: string, node: "a" | "b" = "a"): Promise<FleetValue | undefined> =>
      plain(await suite.setup[node].fleet.get(key));
    const put = async (key: string, text: string, node = suite.setup.a): Promise<number> => {
      const written = await node.fleet.put(key, bytesOf(text));
      expect(written).toBeDefined();
      return written?.seq ?? 0;
    };
    /** Only values whose key begins with `prefix`: the bucket is shared with everything else. */
    const watch = async (prefix: string, node = suite.setup.a): Promise<Watching> => {
      const seen: FleetValue[] = [];
      const watching = await node.fleet.watch((value) => {
        if (value.key.startsWith(prefix)) seen.push(plain(value));
      });
      return { seen, stop: () => watching.stop() };
    };

    test("a key that was never written is nothing", async () => {
      expect(await suite.setup.a.fleet.get(freshKey())).toBeUndefined();
    });

    test("a watch of some keys is told of those alone, present and future, and so is one where there are none", async () => {
      const [wanted, other] = [suite.unique("w"), suite.unique("o")];
      await put(`${wanted}.a`, "1");
      await put(`${other}.a`, "2");
      const seen: FleetValue[] = [];
      const nothing: FleetValue[] = [];
      const watching = await suite.setup.b.fleet.watch((value) => void seen.push(plain(value)), `${wanted}.>`);
      const idle = await suite.setup.b.fleet.watch((value) => void nothing.push(value), `${suite.unique("n")}.>`);
      expect(view(seen)).toEqual(["a=1"]);
      await put(`${other}.b`, "3");
      await put(`${wanted}.b`, "4");
      await waitUntil("the change is seen", () => seen.length === 2);
      expect([view(seen), nothing]).toEqual([["a=1", "b=4"], []]);
      await Promise.all([watching.stop(), idle.stop()]);
    });

    test("the bucket of what is stuck is another one", async () => {
      const key = freshKey();
      await put(key, "in the fleet's");
      expect(await suite.setup.a.stuck.get(key)).toBeUndefined();
      expect(await suite.setup.a.stuck.put(key, bytesOf("stuck"))).toBeDefined();
      expect(textOf((await suite.setup.b.stuck.get(key))?.bytes)).toBe("stuck");
      await suite.setup.a.stuck.remove(key);
      expect(await suite.setup.b.stuck.get(key)).toBeUndefined();
      expect(textOf((await get(key))?.bytes)).toBe("in the fleet's");
    });

    test("what one node put the other gets, with the sequence and broker time that put returned", async () => {
      const key = freshKey();
      const written = await suite.setup.a.fleet.put(key, bytesOf("one"));
      expect(written?.storedAtMs).toBeGreaterThan(1_600_000_000_000);
      expect(await get(key, "b")).toEqual({
        key,
        bytes: bytesOf("one"),
        seq: written?.seq,
        storedAtMs: written?.storedAtMs,
      });
    });

    test("put replaces whatever is there; sequences grow and broker time does not go back", async () => {
      const key = freshKey();
      const written = [];
      for (let n = 0; n < 10; n += 1)
        written.push(await suite.setup[n % 2 === 0 ? "a" : "b"].fleet.put(key, bytesOf(`${n}`)));
      const seqs = written.map((write) => write?.seq ?? 0);
      const times = written.map((write) => write?.storedAtMs ?? 0);
      expect(seqs).toEqual([...new Set(seqs)].toSorted((x, y) => x - y));
      expect(times).toEqual(times.toSorted((x, y) => x - y));
      expect(textOf((await get(key))?.bytes)).toBe("9");
    });

    test("create over an existing value is stale, names its sequence and leaves it", async () => {
      const key = freshKey();
      const seq = await committedSeq(cas(suite.setup.a, key, 0, "first"));
      expect(await cas(suite.setup.b, key, 0)).toEqual({ kind: "stale", currentSeq: seq });
      expect((await get(key))?.bytes).toEqual(withToken("first"));
    });

    test("a value replaces the one whose sequence it names, and no other", async () => {
      const key = freshKey();
      const first = await committedSeq(cas(suite.setup.a, key, 0));
      const second = await committedSeq(cas(suite.setup.b, key, first, "second"));
      expect(await cas(suite.setup.a, key, first)).toEqual({ kind: "stale", currentSeq: second });
      expect(await get(key)).toMatchObject({ seq: second, bytes: withToken("second") });
    });

    test("a put in between makes a compare-and-set stale, even when nobody can read its token", async () => {
      const key = freshKey();
      const first = await committedSeq(cas(suite.setup.a, key, 0));
      const between = await put(key, "not JSON");
      expect(await cas(suite.setup.a, key, first)).toEqual({ kind: "stale", currentSeq: between });
    });

    test("of two nodes that claim one key, one commits and the other is stale, every time", async () => {
      const key = freshKey();
      let seq = 0;
      for (let round = 0; round < 20; round += 1) {
        const outcomes = await Promise.all([cas(suite.setup.a, key, seq), cas(suite.setup.b, key, seq)]);
        expect(outcomes.map((outcome) => outcome.kind).toSorted()).toEqual(["committed", "stale"]);
        seq = (await get(key))?.seq ?? 0;
      }
    });

    test("I7: the same attempt sent again counts as committed where it is stored, another token does not", async () => {
      const key = freshKey();
      const token = suite.unique("token");
      const seq = await committedSeq(cas(suite.setup.a, key, 0, token));
      expect(await cas(suite.setup.a, key, 0, token)).toEqual({ kind: "committed", seq });
      expect(await cas(suite.setup.a, key, 0)).toEqual({ kind: "stale", currentSeq: seq });
    });

    test("I7: a claim whose acknowledgement is lost counts as committed", async ({ skip }) => {
      const loseNextAck = suite.setup.faults?.loseNextAck ?? skip("the setup cannot lose an acknowledgement");
      const key = freshKey();
      const lost = await loseNextAck();
      const outcome = cas(suite.setup.a, key, 0);
      await lost.happened;
      const stored = await get(key, "b");
      await lost.release();
      expect(await outcome).toEqual({ kind: "committed", seq: stored?.seq });
    });

    test("a removed key is nothing, is not changed by its old sequence, and can be created again", async () => {
      const key = freshKey();
      const seq = await committedSeq(cas(suite.setup.a, key, 0));
      await suite.setup.a.fleet.remove(key);
      expect(await get(key, "b")).toBeUndefined();
      expect(await cas(suite.setup.b, key, seq)).toEqual({ kind: "stale", currentSeq: undefined });
      const again = await committedSeq(cas(suite.setup.b, key, 0));
      expect(again).toBeGreaterThan(seq);
      expect((await get(key))?.seq).toBe(again);
    });

    test("removing what is not there is no error", async () => {
      const key = freshKey();
      await suite.setup.a.fleet.remove(key);
      await suite.setup.a.fleet.remove(key);
      expect(await get(key)).toBeUndefined();
    });

    test("a watcher has all current values when watch resolves, each once and at its latest", async () => {
      const prefix = `want.${suite.unique("w")}`;
      await put(`${prefix}-x.k1`, "old");
      await put(`${prefix}-x.k2`, "two");
      await put(`${prefix}-x.k1`, "new");
      await put(`${prefix}-x.k3`, "gone");
      await suite.setup.a.fleet.remove(`${prefix}-x.k3`);
      const watching = await watch(prefix, suite.setup.b);
      expect(view(watching.seen)).toEqual(["k2=two", "k1=new"]);
      await watching.stop();
    });

    test("a watcher then sees the changes of all nodes in order, a removal as a value without bytes", async () => {
      const prefix = `want.${suite.unique("w")}`;
      const watching = await watch(prefix);
      await put(`${prefix}-x.k1`, "one", suite.setup.a);
      await waitUntil("the first change was seen", () => watching.seen.length >= 1);
      await put(`${prefix}-x.k1`, "two", suite.setup.b);
      await waitUntil("the second change was seen", () => watching.seen.length >= 2);
      await suite.setup.b.fleet.remove(`${prefix}-x.k1`);
      await waitUntil("the removal was seen", () => watching.seen.length >= 3);
      await put(`${prefix}-x.k2`, "other", suite.setup.a);
      await waitUntil("the last change was seen", () => watching.seen.length >= 4);
      expect(view(watching.seen)).toEqual(["k1=one", "k1=two", "k1=", "k2=other"]);
      await watching.stop();
    });

    test("a watched value has the sequence and broker time that put returned", async () => {
      const prefix = `want.${suite.unique("w")}`;
      const watching = await watch(prefix);
      const written = await suite.setup.b.fleet.put(`${prefix}-x.k1`, bytesOf("one"));
      await waitUntil("the change was seen", () => watching.seen.length >= 1);
      expect(watching.seen).toEqual([{ key: `${prefix}-x.k1`, bytes: bytesOf("one"), ...written }]);
      await watching.stop();
    });

    test("a watcher under many quick changes sees growing sequences and ends at the latest value of every key", async () => {
      const prefix = `want.${suite.unique("w")}`;
      const watching = await watch(prefix);
      for (let n = 0; n < 100; n += 1) await put(`${prefix}-x.k${n % 3}`, `${n}`, suite.setup.b);
      const latest = (key: string): string | undefined =>
        textOf(watching.seen.findLast((value) => value.key === `${prefix}-x.${key}`)?.bytes);
      await waitUntil(
        "the latest values were seen",
        () => latest("k0") === "99" && latest("k1") === "97" && latest("k2") === "98",
      );
      const seqs = watching.seen.map((value) => value.seq);
      expect(seqs).toEqual([...new Set(seqs)].toSorted((x, y) => x - y));
      await watching.stop();
    });

    test("nothing is delivered after stop; another watcher goes on", async () => {
      const prefix = `want.${suite.unique("w")}`;
      const [stopped, going] = [await watch(prefix), await watch(prefix)];
      await stopped.stop();
      await put(`${prefix}-x.k1`, "one");
      await waitUntil("the other watcher saw the change", () => going.seen.length >= 1);
      expect(stopped.seen).toEqual([]);
      await going.stop();
    });

    test("a watcher catches up after a broken connection", async ({ skip }) => {
      const breakConnection = suite.setup.faults?.breakConnection ?? skip("the setup cannot break a connection");
      const prefix = `want.${suite.unique("w")}`;
      const watching = await watch(prefix);
      await put(`${prefix}-x.k1`, "before", suite.setup.b);
      await waitUntil("the change before was seen", () => watching.seen.length >= 1);
      await breakConnection();
      await put(`${prefix}-x.k1`, "meanwhile", suite.setup.b);
      await put(`${prefix}-x.k2`, "meanwhile", suite.setup.b);
      await waitUntil("the changes of the outage were seen", () => watching.seen.length >= 3, { timeoutMs: 15_000 });
      expect(view(watching.seen)).toEqual(["k1=before", "k1=meanwhile", "k2=meanwhile"]);
      await watching.stop();
    });
  });
}
