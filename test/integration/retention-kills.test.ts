import { connectNats, filteredHistory, listSubjects, type Link } from "@holdfast/jetstream";
import { subjectsOf } from "@holdfast/protocol";
import { RETENTION_CRASH_POINTS, type CrashPoint } from "@holdfast/runtime/ports";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { replayMessages } from "../chaos/replay-messages.ts";
import { Cluster } from "../harness/cluster.ts";
import { NodeFleet } from "../harness/node-fleet.ts";
import { waitUntil } from "../harness/wait-until.ts";

const NAMESPACE = "main";
const ITEMS = 2;
const SHARDS = [0, 1];
const Output = z.object({ results: z.array(z.object({ n: z.number() })) });

let cluster: Cluster;
let link: Link;
beforeAll(async () => {
  cluster = await Cluster.start();
  const { url, user, password } = cluster.nats;
  link = await connectNats({ servers: [url], user, pass: password, name: "replayer" });
});
afterAll(async () => {
  await link.close();
  await cluster.stop();
});

test(
  "nodes that die between the steps of retention, one after the other: nothing is lost, left over or done again",
  {
    timeout: 180_000,
  },
  async () => {
    const { url, user, password } = cluster.nats;
    const fleet = new NodeFleet({
      servers: [url],
      user,
      password,
      namespace: NAMESPACE,
      ledgerUrl: cluster.ledgerUrl,
      runtime: { leaseTtlMs: 600, keepEndedMs: 2000, keepTombstoneMs: 300, retentionMs: 100, cursorFlushMs: 100 },
    });
    const dying = (point: CrashPoint) => fleet.start(`dies-at-${point}`, [{ point, act: "kill" }]);
    const [first, ...others] = RETENTION_CRASH_POINTS;
    let victim = await dying(first);
    const client = await fleet.client();
    try {
      const key = client.holdfast.key("order", "o1");
      await client.holdfast.start("order", "o1", { items: ITEMS }, { idempotencyKey: "o1" });
      const { results } = Output.parse((await cluster.ended(client, key)).snapshot.output);
      expect(results.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual([0, 1]);
      for (const next of [...others, undefined]) {
        const { hello, child } = victim;
        await waitUntil(`${String(hello["node"])} has died`, () => child.signalCode !== null, {
          timeoutMs: 30_000,
          dump: () => fleet.logs(),
        });
        expect(child.signalCode).toBe("SIGKILL");
        victim = await (next === undefined ? fleet.start("survivor") : dying(next));
      }
      const stored = async (): Promise<number> => (await client.holdfast.read.headers()).length;
      const subjects = subjectsOf(NAMESPACE);
      const journals = async (): Promise<number> => {
        const lists = SHARDS.map((shard) => listSubjects(link, { stream: subjects.journalStream(shard), filter: ">" }));
        return (await Promise.all(lists)).flat().length;
      };
      await waitUntil("everything is gone", async () => (await stored()) + (await journals()) === 0, {
        timeoutMs: 30_000,
        dump: () => fleet.logs(),
      });

      // Whoever still has an old message of an item may send it again: nothing begins anew, and nothing is done twice.
      const before = await cluster.figures();
      expect(before).toMatchObject({ applied: ITEMS + 1, duplicateEffects: 0 });
      let again = 0;
      for (const shard of SHARDS) {
        const stream = subjects.inboxStream(shard);
        const old = await filteredHistory(link, { stream, filters: [`hf.${NAMESPACE}.inbox.*.item.>`] });
        again += await replayMessages(link, stream, () => old.map(({ seq }) => seq));
      }
      expect(again).toBeGreaterThanOrEqual(ITEMS);
      const refused = (): number => fleet.logs().split('"event":"message.dropped"').length - 1;
      await waitUntil("the old starts were judged", () => refused() >= ITEMS, { dump: () => fleet.logs() });
      expect(await stored()).toBe(0);
      expect(await cluster.figures()).toEqual(before);
    } finally {
      await client.close();
      await fleet.stop();
    }
  },
);
