import { readFamily, type FamilyEntry, type FamilyOptions } from "@holdfast/client";
import { createCodec } from "@holdfast/codec";
import { actorRefExtension } from "@holdfast/durable";
import { publishStored, type Link } from "@holdfast/jetstream";
import { actorKey, shardOf, subjectsOf, type JournalEntry, type Manifest, type RecordHeader } from "@holdfast/protocol";
import { SeededRandom } from "@holdfast/runtime/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitUntil } from "../harness/wait-until.ts";
import { newToken, startBroker, type BrokerFixture } from "./jetstream-fixture.ts";

const codec = createCodec({ ref: actorRefExtension });
let broker: BrokerFixture;
let link: Link;
beforeAll(async () => {
  broker = await startBroker();
  link = await broker.connect();
});
afterAll(() => broker.close());

const entryOf = (key: string, rev: number, more: Partial<JournalEntry> = {}): JournalEntry => ({
  v: 1,
  key,
  genesis: "g1:1",
  rev,
  prevRev: rev - 1,
  event: { type: "go" },
  cause: { kind: "event", id: `m${rev}` },
  from: "a",
  to: "b",
  status: "active",
  effects: [],
  atMs: 1_800_000_000_000 + rev,
  machine: "m@1#000000000000",
  node: "n1",
  ...more,
});
const settled = (childId: string): Partial<JournalEntry> => ({
  cause: { kind: "settled", id: childId },
  event: { type: `xstate.done.actor.${childId}` },
});

/** One conversation and the tasks it starts, one after the other; and what of them is stored. */
class StoredFamily {
  readonly manifest: Manifest;
  readonly root: string;
  readonly records = new Set<string>();
  readonly stored: string[] = [];

  constructor(manifest: Manifest, id: string) {
    this.manifest = manifest;
    this.root = actorKey(manifest, "d", "conversation", id);
    this.records.add(this.root);
  }

  task(n: number): string {
    return actorKey(this.manifest, "d", "task", `t${n}`);
  }

  async append(...entries: readonly JournalEntry[]): Promise<void> {
    const key = entries[0]?.key ?? "";
    const subject = subjectsOf(this.manifest.ns).journal(key);
    const bytes = codec.encodeJournalBatch([...entries]);
    const outcome = await publishStored(link, { subject, bytes, messageId: newToken() });
    if (outcome.kind !== "accepted") throw new Error(`arranging failed: ${outcome.reason}`);
    for (const { rev } of entries) this.stored.push(`${key}@${rev}`);
  }

  read(options: Partial<FamilyOptions> = {}, via = link): AsyncGenerator<FamilyEntry, void> {
    const header = (key: string): Promise<RecordHeader | undefined> =>
      Promise.resolve(this.records.has(key) ? headerOf(key) : undefined);
    const reader = { link: via, codec, subjects: subjectsOf(this.manifest.ns), manifest: () => this.manifest, header };
    return readFamily(reader, { root: this.root, ...options });
  }
}
const headerOf = (key: string): RecordHeader => ({
  token: "t",
  epoch: 1,
  key,
  genesis: "g1:1",
  rev: 1,
  generation: "g1",
  inboxSeq: 0,
  controlSeq: 0,
  status: "active",
  needsWork: false,
  writer: "n1:a",
  list: {},
});
const placeOf = (item: FamilyEntry): string =>
  item.kind === "absent" ? `absent ${item.key}` : `${item.key}@${item.entry.rev}`;
async function placesOf(reading: AsyncIterable<FamilyEntry>): Promise<readonly string[]> {
  const places: string[] = [];
  for await (const item of reading) places.push(placeOf(item));
  return places;
}
const freshFamily = async (): Promise<StoredFamily> =>
  new StoredFamily((await broker.namespace(link)).manifest, `c${newToken()}`);

describe("the family of an actor as a client reads it", () => {
  test("while it grows on all shards, its reader leaves and comes back, and its connection breaks: each step once, no effect before its cause", async () => {
    const family = await freshFamily();
    const { root } = family;
    const count = 40;
    expect(
      new Set(Array.from({ length: count }, (_, n) => shardOf(family.manifest, family.task(n).split(".")[0] ?? "")))
        .size,
    ).toBe(2);
    const seed = Date.now() % 100_000;
    const random = new SeededRandom(seed);
    const proxy = await broker.proxy();
    const via = await broker.connect({ via: proxy });
    const got: string[] = [];
    const reading = (async () => {
      let from: string | undefined;
      for (let isOver = false; !isOver;) {
        const until = got.length + 1 + random.below(30);
        isOver = true;
        for await (const item of family.read({ from, follow: true }, via)) {
          got.push(placeOf(item));
          from = item.cursor;
          isOver = false;
          if (got.length >= until) break;
        }
      }
    })();
    const live = async (n: number): Promise<void> => {
      const key = family.task(n);
      await family.append(entryOf(key, 1));
      await family.append(entryOf(key, 2), entryOf(key, 3), entryOf(key, 3));
      if (random.below(10) === 0) proxy.cut();
      await family.append(entryOf(key, 4, { status: "done" }));
    };
    const lives: Promise<void>[] = [];
    for (let n = 0; n < count; n += 1) {
      const start = { childId: `call-${n}-x`, key: family.task(n), src: "task" };
      await family.append(entryOf(root, n + 1, { starts: [start, { childId: "j", key: "j-1", src: "job" }] }));
      lives.push(live(n));
    }
    // Half of the results are in the root's journal before the ends of the tasks are in theirs.
    for (let n = 0; n < count; n += 1) {
      if (n % 2 === 0) await lives[n];
      await family.append(entryOf(root, count + n + 1, settled(`call-${n}-x`)));
    }
    await Promise.all(lives);
    await family.append(entryOf(root, 2 * count + 1, { status: "done" }));
    await waitUntil("the reader is at the end", () => got.at(-1) === `${root}@${2 * count + 1}`, {
      dump: () => ({ seed, got }),
    });
    await reading;
    expect(got.toSorted(), `seed ${seed}`).toEqual([...new Set(family.stored)].toSorted());
    for (let n = 0; n < count; n += 1) {
      const places = [
        `${root}@${n + 1}`,
        ...[1, 2, 3, 4].map((rev) => `${family.task(n)}@${rev}`),
        `${root}@${count + n + 1}`,
      ];
      expect(places.map((place) => got.indexOf(place))).toEqual(
        places.map((place) => got.indexOf(place)).toSorted((a, b) => a - b),
      );
    }
    expect((await placesOf(family.read())).toSorted()).toEqual(got.toSorted());
  });

  test("what comes while the step before is dealt with is not missed", async () => {
    const family = await freshFamily();
    const rounds = 30;
    await family.append(entryOf(family.root, 1));
    const got: number[] = [];
    for await (const item of family.read({ follow: true, signal: AbortSignal.timeout(10_000) })) {
      const rev = item.kind === "absent" ? 0 : item.entry.rev;
      got.push(rev);
      if (rev === rounds) break;
      await family.append(entryOf(family.root, rev + 1));
      for (let n = 0; n < 5; n += 1) await link.nc.flush(); // by now its reader has heard of it
    }
    expect(got).toEqual(Array.from({ length: rounds }, (_, n) => n + 1));
  });

  test("what is stored now ends it, unless it is followed; a result whose task is not told of yet waits", async () => {
    const family = await freshFamily();
    const [root, task] = [family.root, family.task(1)];
    await family.append(entryOf(root, 1, { starts: [{ childId: "c", key: task, src: "task" }] }));
    await family.append(entryOf(root, 2, settled("c")));
    family.records.add(task);
    expect(await placesOf(family.read())).toEqual([`${root}@1`]);
    await family.append(entryOf(task, 1, { status: "done" }));
    expect(await placesOf(family.read())).toEqual([`${root}@1`, `${task}@1`, `${root}@2`]);
  });

  test("a task that has neither record nor journal any more is said to be absent", async () => {
    const family = await freshFamily();
    const [root, task] = [family.root, family.task(1)];
    await family.append(
      entryOf(root, 1, { starts: [{ childId: "c", key: task, src: "task" }] }),
      entryOf(root, 2, settled("c")),
    );
    const items: FamilyEntry[] = [];
    const cursors: string[] = [];
    for await (const item of family.read()) {
      items.push(item);
      cursors.push(item.cursor);
    }
    expect(items.map(placeOf)).toEqual([`${root}@1`, `absent ${task}`, `${root}@2`]);
    expect(await placesOf(family.read({ from: cursors[1] }))).toEqual([`${root}@2`]);
  });

  test("a cursor that is asked for too late is refused, as it would be another one", async () => {
    const family = await freshFamily();
    await family.append(entryOf(family.root, 1), entryOf(family.root, 2));
    const items: FamilyEntry[] = [];
    for await (const item of family.read()) items.push(item);
    expect(() => items[0]?.cursor).toThrow(expect.objectContaining({ code: "HF-1001" }));
    expect(items[1]?.cursor).toMatch(/^f1-/);
  });

  test("of an actor that there is not is a fault", async () => {
    const family = await freshFamily();
    family.records.clear();
    await expect(placesOf(family.read())).rejects.toMatchObject({ code: "HF-3001" });
  });
});
