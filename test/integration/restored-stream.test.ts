import { cpSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureStream, lastSeqOf, streamPosition, topologyOf } from "@holdfast/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { Cluster } from "../harness/cluster.ts";
import { ErrandOffice } from "../harness/errand-office.ts";
import { runCommand } from "../scenarios/holdfast-command.ts";

const SHARDS = [0, 1];
const FIRST = ["a", "b", "c"];
/** More than a record remembers by their ids. */
const MANY = 80;
const SECOND = ["d", "e", "f"];

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster.stop());

/** Where the server keeps a stream. */
function folderOf(store: string, stream: string): string {
  for (const entry of readdirSync(store, { recursive: true, encoding: "utf8" })) {
    if (entry.endsWith(`/streams/${stream}`) && statSync(join(store, entry)).isDirectory()) return join(store, entry);
  }
  throw new Error(`${stream} is not under ${store}`);
}

/** `holdfast renew`, as an operator runs it. */
async function renew(office: ErrandOffice): Promise<z.infer<typeof Renewed>> {
  const { json } = await runCommand(["renew", "--json"], {
    env: {
      HOLDFAST_NATS_URL: office.nats.url,
      HOLDFAST_NATS_USER: office.nats.user,
      HOLDFAST_NATS_PASSWORD: office.nats.password,
      HOLDFAST_NAMESPACE: office.namespace,
    },
  });
  return Renewed.parse(json);
}
const Renewed = z.union([
  z.object({ renewed: z.array(z.string()) }),
  z.object({ error: z.looseObject({ code: z.string() }) }),
]);

const sorted = (ids: readonly string[]): readonly string[] => ids.toSorted((a, b) => (a < b ? -1 : 1));

/** Sequence of the newest record of each shard; barriers and checkpoints, which have shorter keys, are none. */
const lastRecords = ({ link, subjects }: ErrandOffice): Promise<readonly number[]> =>
  Promise.all(
    SHARDS.map((shard) => lastSeqOf(link, subjects.actorsStream(shard), [subjects.actorSubject(shard, "*.*.*")])),
  );

async function expectEachOnce(office: ErrandOffice, ids: readonly string[], notes: number): Promise<void> {
  expect(sorted(office.ran)).toEqual(ids);
  const state = await office.state();
  expect(sorted(state.results)).toEqual(ids);
  expect(state).toMatchObject({ errors: [], notes });
}

test(
  "F11: an inbox restored from an older copy: nobody serves it until it is renewed; then nothing is done again, and it goes on",
  {
    timeout: 120_000,
  },
  async () => {
    const office = await ErrandOffice.open("older", cluster.nats);
    try {
      await office.serve();
      await office.errands(FIRST, "first letter");
      await office.notes(MANY);
      await office.stopServing();
      const streams = SHARDS.map((shard) => office.subjects.inboxStream(shard));
      const endOf = async (stream: string): Promise<number> => (await streamPosition(office.link, stream)).lastSeq;
      const copied = await Promise.all(streams.map(endOf));
      await office.nats.stop();
      const store = office.nats.storeDir;
      for (const stream of streams)
        cpSync(folderOf(store, stream), join(store, "..", `copy-${stream}`), { recursive: true });
      await office.nats.restart();
      await office.serve();
      await office.errands(SECOND, "second letter");
      const copies = await office.copies();
      await office.stopServing();
      const ends = await Promise.all(streams.map(endOf));
      // Where errands live is in the hash of their keys: a shard that none of the second letter came by has lost nothing.
      const shortened = streams.filter((_, index) => (ends[index] ?? 0) > (copied[index] ?? 0));
      expect(shortened.length).toBeGreaterThan(0);
      await office.nats.stop();
      for (const stream of streams) {
        const folder = folderOf(store, stream);
        rmSync(folder, { recursive: true });
        renameSync(join(store, "..", `copy-${stream}`), folder);
      }
      await office.nats.restart();

      await expect(office.serve({}, undefined, 4000)).rejects.toThrow("the node serves everything");
      expect(office.told.filter(({ event }) => event === "broker.lost-data").length).toBeGreaterThan(0);
      expect(await renew(office)).toMatchObject({ error: { code: "HF-4005" } });
      await office.stopServing();
      expect(await renew(office)).toEqual({ renewed: shortened });
      await office.serve();

      await office.replay(copies);
      await expectEachOnce(office, [...FIRST, ...SECOND], 2 + MANY);
      await office.errands(["g"], "third letter");
      await expectEachOnce(office, [...FIRST, ...SECOND, "g"], 2 + MANY);
    } finally {
      await office.close();
    }
  },
);

test(
  "F11: a bucket of records restored from an older copy: nobody serves it until it is renewed; then its actors are as the copy has them",
  { timeout: 120_000 },
  async () => {
    const office = await ErrandOffice.open("records", cluster.nats);
    try {
      await office.serve();
      await office.errands(FIRST, "first letter");
      await office.stopServing();
      const streams = SHARDS.map((shard) => office.subjects.actorsStream(shard));
      const copied = await lastRecords(office);
      await office.nats.stop();
      const store = office.nats.storeDir;
      for (const stream of streams)
        cpSync(folderOf(store, stream), join(store, "..", `copy-${stream}`), { recursive: true });
      await office.nats.restart();
      await office.serve();
      await office.errands(SECOND, "second letter");
      await office.stopServing();
      const ends = await lastRecords(office);
      // As above: a shard without a record of the second letter has lost nothing.
      const shortened = streams.filter((_, index) => (ends[index] ?? 0) > (copied[index] ?? 0));
      expect(shortened.length).toBeGreaterThan(0);
      await office.nats.stop();
      for (const stream of streams) {
        const folder = folderOf(store, stream);
        rmSync(folder, { recursive: true });
        renameSync(join(store, "..", `copy-${stream}`), folder);
      }
      await office.nats.restart();

      await expect(office.serve({}, undefined, 4000)).rejects.toThrow("the node serves everything");
      const lost = office.told.filter(({ event }) => event === "broker.lost-data").map(({ fields }) => fields);
      expect(lost).toContainEqual(expect.objectContaining({ of: "records", code: "HF-4006" }));
      const { holdfast } = await office.client();
      expect(await holdfast.stuck.list()).toContainEqual(expect.objectContaining({ kind: "lost-data" }));
      await office.stopServing();
      expect(await renew(office)).toEqual({ renewed: shortened });
      await office.serve();
      expect(sorted((await office.state()).results)).toEqual(FIRST);
    } finally {
      await office.close();
    }
  },
);

test(
  "F11: an inbox that was created anew: renewed, it takes new messages, and old ones that are sent again change nothing",
  {
    timeout: 120_000,
  },
  async () => {
    const office = await ErrandOffice.open("anew", cluster.nats);
    try {
      await office.serve();
      await office.errands(FIRST, "first letter");
      const copies = await office.copies();
      await office.stopServing();
      const { holdfast } = await office.client();
      for (const shard of SHARDS) {
        const stream = office.subjects.inboxStream(shard);
        await office.link.requests.request(`$JS.API.STREAM.DELETE.${stream}`, new Uint8Array(), undefined, 5000);
        const declared = topologyOf(holdfast.manifest).find(({ name }) => name === stream);
        if (declared === undefined) throw new Error("no such stream");
        await ensureStream(office.link, declared);
        expect(await lastSeqOf(office.link, stream, [">"])).toBe(0);
      }
      await expect(office.serve()).rejects.toMatchObject({ code: "HF-4006" });
      expect(await renew(office)).toEqual({ renewed: SHARDS.map((shard) => office.subjects.inboxStream(shard)) });
      await office.serve();
      await office.replay(copies);
      await expectEachOnce(office, FIRST, 2);
      await office.errands(["d"], "second letter");
      await expectEachOnce(office, [...FIRST, "d"], 2);
    } finally {
      await office.close();
    }
  },
);

test(
  "without a server in the environment the managed one is started for it, and stopped",
  { timeout: 60_000 },
  async () => {
    const home = mkdtempSync(join(tmpdir(), "holdfast-renew-"));
    try {
      const env = { HOLDFAST_HOME: home, HOLDFAST_NATS_SERVER: cluster.nats.binary };
      const { code, json } = await runCommand(["renew", "--json"], { env });
      expect({ code, json }).toMatchObject({ code: 1, json: { error: { code: "HF-4005" } } }); // a new store has no namespace
    } finally {
      rmSync(home, { recursive: true });
    }
  },
);
