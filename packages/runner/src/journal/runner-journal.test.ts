import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readAll } from "../testing/read-all.ts";
import { draftOf } from "../testing/seeded-drafts.ts";
import { StoreSeq } from "../wire/coordinates.ts";
import type { EnvelopeDraft, RunnerEnvelope } from "../wire/envelope.ts";
import { RunnerJournal, type RunnerJournalOptions } from "./runner-journal.ts";

let folder: string;
const open: RunnerJournal[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-runner-"));
});
afterEach(async () => {
  for (const journal of open.splice(0)) await journal.close().catch(() => undefined);
  await rm(folder, { recursive: true, force: true });
});

let drawn = 0;
async function journalOf(options: Partial<RunnerJournalOptions> = {}): Promise<RunnerJournal> {
  const drawToken = (): string => `journal${String((drawn += 1)).padStart(9, "0")}`;
  const journal = await RunnerJournal.open({ folder, threshold: 1, drawToken, ...options });
  open.push(journal);
  return journal;
}

async function boundJournal(options: Partial<RunnerJournalOptions> = {}): Promise<RunnerJournal> {
  const journal = await journalOf(options);
  await journal.bind("c1");
  return journal;
}

const status: EnvelopeDraft = { op: "status", state: "busy" };
const durable: EnvelopeDraft = { op: "event", messageType: "TaskUpdated", message: {}, requiresPersistence: true };
const result = (storeSeq: number): EnvelopeDraft => ({
  op: "result",
  messageType: "Result",
  message: {},
  storeSeq: StoreSeq.parse(storeSeq),
});
const places = (envelopes: readonly RunnerEnvelope[]): readonly number[] => envelopes.map(({ seq }) => seq);
const at = (journal: RunnerJournal, seq: number) => ({ journal: journal.journal, seq });

test("J2: one count over every kind, in the order of the calls, whoever shares a write", async () => {
  const journal = await boundJournal();
  const outcomes = await Promise.all([
    journal.append(status),
    journal.append(durable, result(1)),
    journal.append({ op: "inputAck", inputId: "m1", duplicate: false }),
  ]);
  expect(outcomes.map((outcome) => (outcome.kind === "appended" ? places(outcome.envelopes) : outcome))).toEqual([
    [1],
    [2, 3],
    [4],
  ]);
  const { envelopes } = await readAll(journal);
  expect(envelopes.map(({ op }) => op)).toEqual(["status", "event", "result", "inputAck"]);
});

test("J3: another runner over the same journal goes on with the count, in a greater epoch", async () => {
  const first = await boundJournal();
  await first.append(status, durable);
  first.receipt(2);
  await first.close();
  const second = await journalOf();
  expect([second.journal, second.epoch, second.conversation]).toEqual([first.journal, 2, "c1"]);
  expect(second.unreceipted).toEqual([]);
  await second.append(status);
  const { envelopes } = await readAll(second, at(first, 1));
  expect(envelopes.map(({ seq, epoch }) => [seq, epoch])).toEqual([
    [2, 1],
    [3, 2],
  ]);
});

describe("replay", () => {
  test("strictly after the cursor; behind what was removed one gap and then the suffix", async () => {
    const journal = await boundJournal();
    await journal.append(status, status);
    await journal.append(status, result(1), durable);
    expect((await readAll(journal, at(journal, 3))).envelopes.map(({ seq }) => seq)).toEqual([4, 5]);
    expect(await journal.checkpoint(4, { storeFlushed: true })).toBe(3);
    const late = await readAll(journal, at(journal, 1));
    expect(late.gaps).toEqual([{ afterSeq: 1, firstRetainedSeq: 4, lastSeq: 5 }]);
    expect(places(late.envelopes)).toEqual([4, 5]);
    expect(await readAll(journal, at(journal, 3))).toMatchObject({ gaps: [], envelopes: [{ seq: 4 }, { seq: 5 }] });
  });

  test("a cursor of a journal that was created again begins at the first envelope; one ahead is refused", async () => {
    const journal = await boundJournal();
    await journal.append(status, status);
    const elsewhere = await readAll(journal, { journal: "0000000000000000", seq: 9 });
    expect(places(elsewhere.envelopes)).toEqual([1, 2]);
    await expect(readAll(journal, at(journal, 3))).rejects.toMatchObject({ code: "HF-9002" });
  });

  test("J5: a checkpoint removes nothing that a slow reader has still to be given", async () => {
    const journal = await boundJournal();
    await journal.append(status, status, status, result(1));
    const read: number[] = [];
    const end = new AbortController();
    let release = (): void => undefined;
    const slow = new Promise<void>((resolve) => (release = resolve));
    let firstGiven = (): void => undefined;
    const given = new Promise<void>((resolve) => (firstGiven = resolve));
    const following = journal.follow(
      { seq: 0 },
      {
        gap: () => expect.unreachable("a gap"),
        envelope: async ({ seq }) => {
          read.push(seq);
          firstGiven();
          if (seq === 1) await slow;
          if (seq === 4) end.abort();
        },
      },
      end.signal,
    );
    await given;
    expect(await journal.checkpoint(4, { storeFlushed: true })).toBe(0);
    release();
    await following;
    expect(read).toEqual([1, 2, 3, 4]);
    expect(await journal.checkpoint(4, { storeFlushed: true })).toBe(3);
  });

  test("J1: a reader that has caught up is given what comes, and ends with its signal", async () => {
    const journal = await boundJournal();
    const end = new AbortController();
    const read: number[] = [];
    const reader = {
      gap: () => undefined,
      envelope: ({ seq }: RunnerEnvelope) => {
        read.push(seq);
        if (seq === 3) end.abort();
      },
    };
    const following = journal.follow({ seq: 0 }, reader, end.signal);
    for (let index = 0; index < 3; index += 1) await journal.append(status);
    await following;
    expect(read).toEqual([1, 2, 3]);
  });
});

describe("compaction", () => {
  test("survives a restart: what is gone stays gone, a batch that was cut through keeps its rest", async () => {
    const journal = await boundJournal();
    await journal.append(status, durable, status);
    await journal.append(result(4));
    expect(await journal.checkpoint(4, { storeFlushed: true })).toBe(1);
    const before = await readAll(journal);
    await journal.close();
    const again = await journalOf();
    expect(await readAll(again)).toEqual(before);
    expect([again.firstRetainedSeq, again.lastSeq, again.unreceipted]).toEqual([2, 4, [2]]);
    expect(again.receipt(2)).toBe("receipted");
    expect(await again.checkpoint(4, { storeFlushed: true })).toBe(2);
    await again.append(status);
    expect(places((await readAll(again)).envelopes)).toEqual([4, 5]);
    expect(again.receipt(2)).toBe("duplicate");
    expect(await readdir(folder)).toEqual(["journal"]);
  });

  test("J6: a receipt that was not written yet is asked for again after a crash, and is a receipt as before", async () => {
    const journal = await boundJournal();
    await journal.append(durable);
    journal.receipt(1);
    const again = await journalOf();
    expect(again.unreceipted).toEqual([1]);
    expect(again.receipt(1)).toBe("receipted");
  });
});

describe("J4: the bound", () => {
  const maxBytes = 4096;
  const fill = async (journal: RunnerJournal, draft: EnvelopeDraft): Promise<string> => {
    for (let index = 0; index < 100; index += 1) {
      const outcome = await journal.append(draft);
      if (outcome.kind === "full") return outcome.waitsFor;
    }
    return "never full";
  };

  test("inside a turn a full journal waits for the result, for which there is room, and the result lets it go on", async () => {
    const journal = await boundJournal({ maxBytes });
    expect(await fill(journal, status)).toBe("result");
    const last = journal.lastSeq;
    expect(await journal.append(status)).toEqual({ kind: "full", waitsFor: "result" });
    expect(journal.lastSeq).toBe(last);
    await journal.append(result(1));
    expect(await journal.append(status)).toEqual({ kind: "full", waitsFor: "receipts" });
    await journal.checkpoint(last + 1, { storeFlushed: true });
    expect(await journal.append(status)).toMatchObject({ kind: "appended" });
  });

  test("a host that stays away bounds durable events too, and loses none; its receipts make room", async () => {
    const journal = await boundJournal({ maxBytes });
    expect(await fill(journal, durable)).toBe("result");
    expect(journal.bytes).toBeLessThanOrEqual(maxBytes);
    const kept = journal.unreceipted;
    expect(kept).toEqual(Array.from({ length: journal.lastSeq }, (_, index) => index + 1));
    for (const seq of kept) expect(journal.receipt(seq)).toBe("receipted");
  });
});

describe("refused", () => {
  test("before a conversation is bound nothing gets a place, and it is bound once", async () => {
    const journal = await journalOf();
    await expect(journal.append(status)).rejects.toMatchObject({ code: "HF-9001" });
    await journal.bind("c1");
    await expect(journal.bind("c2")).rejects.toMatchObject({ code: "HF-9001" });
    expect(journal.conversation).toBe("c1");
    expect(await journal.append(status)).toMatchObject({ kind: "appended", envelopes: [{ seq: 1 }] });
  });

  test.each<[string, EnvelopeDraft]>([
    ["larger than a message", { op: "event", messageType: "Delta", message: "x".repeat(600_000) }],
    ["not of the schema", { op: "event", messageType: "", message: {} }],
  ])("a draft that is %s takes no place", async (_title, draft) => {
    const journal = await boundJournal();
    expect(() => journal.append(draft)).toThrow(expect.objectContaining({ code: "HF-1001" }));
    await journal.append(draftOf(1));
    expect(journal.lastSeq).toBe(1);
  });

  test("after it is closed nothing is written", async () => {
    const journal = await boundJournal();
    await journal.close();
    await expect(journal.append(status)).rejects.toMatchObject({ code: "HF-9004" });
  });
});
