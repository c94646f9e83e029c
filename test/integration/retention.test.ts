import { lastSeqOf } from "@holdfast/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Cluster } from "../harness/cluster.ts";
import { ErrandOffice } from "../harness/errand-office.ts";
import { waitUntil } from "../harness/wait-until.ts";

const IDS = ["a", "b", "c"];
const LETTER = "a letter of some length; ".repeat(400);
/** Long enough for the life of a test. ms */
const NEVER = 3_600_000;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster.stop());

async function inOffice(namespace: string, work: (office: ErrandOffice) => Promise<void>): Promise<void> {
  const office = await ErrandOffice.open(namespace, cluster.nats);
  try {
    await work(office);
  } finally {
    await office.close();
  }
}

/** Nothing happened a second time: no job ran again, nothing was applied again, and of what is gone nothing is back. */
async function expectNothingAgain(office: ErrandOffice, notes: number, errands: number): Promise<void> {
  expect(office.ran.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(IDS);
  const state = await office.state();
  expect(state.results.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(IDS);
  expect(state).toMatchObject({ errors: [], notes });
  expect((await office.stored()).size).toBe(errands);
}

const tombstonesOf = async (office: ErrandOffice): Promise<number> =>
  [...(await office.stored()).values()].filter((what) => what === "tombstone").length;

describe("retention: what was done is forgotten, and is not done again", () => {
  test(
    "tombstones: small, with what a duplicate is answered with; duplicates change nothing",
    { timeout: 60_000 },
    () =>
      inOffice("rtomb", async (office) => {
        await office.serve({ keepEndedMs: 300, keepTombstoneMs: NEVER, retentionMs: 200 });
        await office.errands(IDS, LETTER);
        const copies = await office.copies();
        await waitUntil("every errand is a tombstone", async () => (await tombstonesOf(office)) === IDS.length);
        const { holdfast } = await office.client();
        for (const key of (await office.stored()).keys()) {
          const found = await holdfast.read.actor(key);
          expect(found?.record).toMatchObject({ status: "done", outbox: [], timers: {}, settled: { kind: "settled" } });
          expect(found?.record.snapshot).toMatchObject({ context: undefined, output: { letter: LETTER } });
          expect(JSON.stringify({ ...found?.record, snapshot: {} }).length).toBeLessThan(3000);
        }
        await office.replay(copies);
        await expectNothingAgain(office, 2, IDS.length);
      }),
  );

  test(
    "F9: tombstones and journals that are gone: an old start finds nobody who waits for it, and starts nothing",
    { timeout: 60_000 },
    () =>
      inOffice("rgone", async (office) => {
        await office.serve({ keepEndedMs: 300, keepTombstoneMs: 400, retentionMs: 200 });
        const key = await office.errands(IDS, LETTER);
        const copies = await office.copies();
        await waitUntil("every errand is gone", async () => (await office.stored()).size === 0);
        await waitUntil("their journals are gone", async () => (await office.journaled()).length === 1);
        expect(await office.journaled()).toEqual([key]);
        await office.replay(copies);
        await expectNothingAgain(office, 2, 0);
        expect(office.told.filter(({ event }) => event === "message.dropped").length).toBeGreaterThanOrEqual(
          IDS.length,
        );
      }),
  );

  test("a tombstone that its parent still waits for stays, however old it is", { timeout: 60_000 }, () =>
    inOffice("rwait", async (office) => {
      const jobs = Promise.withResolvers<void>();
      const commits = Promise.withResolvers<void>();
      office.jobsWait = jobs.promise;
      let waiting: Promise<void> | undefined;
      await office.serve({ keepEndedMs: 200, keepTombstoneMs: 200, retentionMs: 100 }, () => waiting);
      await office.giveOut(["a"], "short");
      await waitUntil("the errand runs", async () => (await office.stored()).size === 1);
      waiting = commits.promise;
      jobs.resolve();
      await waitUntil("it is a tombstone", async () => (await tombstonesOf(office)) === 1);
      await office.looks("retention.looked-at", 4 * 8);
      expect(await tombstonesOf(office)).toBe(1);
      commits.resolve();
      await waitUntil("its parent has the result", async () => (await office.state()).results.length === 1);
      await waitUntil("it is gone", async () => (await office.stored()).size === 0);
    }),
  );

  test("a node that died between tombstone and journal: the next look finds the journal", { timeout: 60_000 }, () =>
    inOffice("rhalf", async (office) => {
      await office.serve();
      const key = await office.errands(IDS, "short");
      const left = [...(await office.stored()).keys()];
      await waitUntil("journals are written", async () => (await office.journaled()).length === 1 + IDS.length);
      await office.stopServing();
      for (const errand of left) await office.loseRecord(errand);
      await office.serve({ keepTombstoneMs: 300, retentionMs: 100 });
      await waitUntil("their journals are gone", async () => (await office.journaled()).length === 1);
      expect(await office.journaled()).toEqual([key]);
    }),
  );

  test("the journal of an actor that had not ended stays, although its record is lost", { timeout: 60_000 }, () =>
    inOffice("rlost", async (office) => {
      await office.serve();
      const key = await office.errands(["a"], "short");
      await waitUntil("its journal is written", async () => (await office.journaled()).includes(key));
      await office.stopServing();
      await office.loseRecord(key);
      await office.serve({ keepTombstoneMs: 100, retentionMs: 100 });
      await office.looks("retention.looked-at", 4 * 8);
      expect(await office.journaled()).toContain(key);
    }),
  );

  test("F6: blobs stay while anything names them, and go when nothing does", { timeout: 60_000 }, () =>
    inOffice("rblob", async (office) => {
      const sweep = { keepBlobMs: 200, blobSweepMs: 100, retentionMs: 100, keepEndedMs: 200 };
      await office.serve({ ...sweep, keepTombstoneMs: NEVER });
      await office.errands(IDS, LETTER);
      await waitUntil("every errand is a tombstone", async () => (await tombstonesOf(office)) === IDS.length);
      await office.trim();
      await office.looks("blobs.looked-at", 5);
      const { holdfast } = await office.client();
      for (const key of (await office.stored()).keys()) {
        expect((await holdfast.read.actor(key))?.record.snapshot.output).toMatchObject({ letter: LETTER });
        const journal = await holdfast.read.journal(key);
        expect(journal[0]?.event).toMatchObject({ input: { letter: LETTER } });
      }
      await office.stopServing();
      await office.serve({ ...sweep, keepTombstoneMs: 300 });
      await waitUntil("every errand is gone", async () => (await office.stored()).size === 0);
      await waitUntil("their blobs are gone", async () => (await office.blobs()).length === 0);
      await office.errands(["d"], LETTER);
      expect(office.ran.filter((id) => id === "d")).toEqual(["d"]);
    }),
  );

  test("after a trimmed inbox and a restart of the server, which has forgotten every id", { timeout: 90_000 }, () =>
    inOffice("rboot", async (office) => {
      await office.serve({ keepEndedMs: 300, keepTombstoneMs: 400, retentionMs: 200 });
      await office.errands(IDS, LETTER);
      const copies = await office.copies();
      await waitUntil("every errand is gone", async () => (await office.stored()).size === 0);
      await office.trim();
      await office.nats.restart();
      await waitUntil("the server answers", () => lastSeqOf(office.link, office.subjects.inboxStream(0), [">"]));
      await office.replay(copies);
      await expectNothingAgain(office, 2, 0);
    }),
  );
});
