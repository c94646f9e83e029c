import { describe, expect, test } from "vitest";
import { MemoryBroker, SeededRandom } from "../testing/index.ts";
import { KnownWork } from "./known-work.ts";

const SEED = Number(process.env["SEED"] ?? 11);

describe("what a checkpoint says of the work of a partition", () => {
  test("F8, x06: a commit whose acknowledgement is late is found by the successor, although a later one was acknowledged", async () => {
    const broker = new MemoryBroker();
    const owner = broker.connect("owner");
    const successor = broker.connect("successor");
    const [a, b] = ["d-0.probe.a", "d-0.probe.b"];
    const work = new KnownWork();
    const commit = async (key: string, expectedSeq: number, needsWork: boolean): Promise<number> => {
      const token = `${key}@${expectedSeq}`;
      const bytes = new TextEncoder().encode(JSON.stringify({ token }));
      const issued = work.issued(key);
      const outcome = await owner.records.commit({ key, bytes, expectedSeq, token, needsWork });
      if (outcome.kind === "committed") work.committed(issued, outcome.seq, needsWork);
      return outcome.kind === "committed" ? outcome.seq : 0;
    };
    const scan = async (fromSeq: number, live: Set<string>, known?: KnownWork): Promise<number> =>
      successor.records.scan({
        parts: [{ partition: "d-0", fromSeq }],
        visit: ({ key, seq, needsWork }) => {
          known?.seen(key, seq, needsWork);
          if (needsWork) live.add(key);
          else live.delete(key);
        },
        signal: AbortSignal.timeout(5000),
      });
    const settled = async <T>(work: Promise<T>): Promise<T> => {
      let isOver = false;
      void work.finally(() => (isOver = true));
      await broker.clock.advanceUntil("it is over", () => isOver, { stepMs: 10, limitMs: 10_000 });
      return work;
    };

    const seqA = await settled(commit(a, 0, false));
    const seqB = await settled(commit(b, 0, false));
    work.scanned(await settled(scan(0, new Set(), work)));
    const late = broker.faults.nextCommit({ kind: "lostAck", hold: true }, { about: b });
    void commit(b, seqB, true);
    await settled(late.happened); // stored, and the owner does not know
    await settled(commit(a, seqA, false));
    const { seq, live } = work.summary(); // and it is killed

    expect(live.map(([key]) => key)).toEqual([b]);
    expect(broker.writesOf(b).at(-1)?.seq).toBeGreaterThan(seq);
    const found = new Set<string>();
    await settled(scan(seq + 1, found));
    expect([...found]).toEqual([b]);
  });

  test("W2: while a commit is in flight, the sequence stays at what was acknowledged when it was issued", () => {
    const work = new KnownWork();
    work.scanned(10);
    const slow = work.issued("b");
    for (const seq of [12, 13, 14]) work.committed(work.issued("a"), seq, false);
    work.scanned(20);
    expect(work.summary()).toEqual({ seq: 10, live: [["b", 11]], unlisted: 0 });
    work.committed(slow, 11, false);
    expect(work.summary()).toEqual({ seq: 20, live: [], unlisted: 0 });
  });

  test("W2: a commit of which nobody knows the outcome counts like one in flight, until everything was looked at again", () => {
    const work = new KnownWork();
    work.scanned(10);
    work.notStored(work.issued("b"), true);
    work.committed(work.issued("a"), 12, true);
    expect(work.summary()).toEqual({
      seq: 10,
      live: [
        ["b", 11],
        ["a", 12],
      ],
      unlisted: 0,
    });
    work.scanned(15);
    expect(work.summary()).toEqual({ seq: 15, live: [["a", 12]], unlisted: 0 });
  });

  test("W3: own commits alone do not move the sequence: somebody else's may lie between them", () => {
    const work = new KnownWork();
    work.scanned(10);
    work.committed(work.issued("a"), 14, true);
    expect(work.summary().seq).toBe(10);
  });

  test("W4: a list that is too long keeps the oldest, and begins below the first that it leaves out", () => {
    const work = new KnownWork();
    for (const n of [5, 3, 9, 1, 7]) work.seen(`k${n}`, n, true);
    work.scanned(20);
    expect(work.summary(3)).toEqual({
      seq: 6,
      live: [
        ["k1", 1],
        ["k3", 3],
        ["k5", 5],
      ],
      unlisted: 2,
    });
    expect(work.summary(0)).toEqual({ seq: 0, live: [], unlisted: 5 });
  });

  test("a value that a scan delivers late does not undo what was committed since", () => {
    const work = new KnownWork();
    work.scanned(3);
    work.committed(work.issued("a"), 8, false);
    work.seen("a", 5, true);
    work.committed(work.issued("b"), 9, true);
    work.seen("b", 6, false);
    work.scanned(12);
    expect(work.summary().live).toEqual([["b", 9]]);
  });

  test(`W1: whatever is in flight, lost, late or somebody else's, no work lies unlisted before the sequence (seeds ${SEED} to ${SEED + 199})`, () => {
    let listed = 0;
    for (let seed = SEED; seed < SEED + 200; seed += 1) {
      const model = new PartitionModel(seed);
      for (let step = 0; step < 300; step += 1) {
        model.step();
        const { missed, live } = model.look();
        expect(missed, `seed ${seed}, step ${step}`).toEqual([]);
        listed += live;
      }
    }
    expect(listed).toBeGreaterThan(1000); // there was something to be missed
  });
});

interface ModelCommit {
  readonly key: string;
  readonly issued: ReturnType<KnownWork["issued"]>;
  readonly expectedSeq: number;
  readonly needsWork: boolean;
  storedSeq: number | undefined;
  isWaitedFor: boolean;
}

/** A stream, an owner that tells its KnownWork what it learns, and a former owner that still writes. */
class PartitionModel {
  readonly #random: SeededRandom;
  readonly #work = new KnownWork();
  readonly #stored = new Map<string, { readonly seq: number; readonly needsWork: boolean }>();
  readonly #commits: ModelCommit[] = [];
  #scan: { readonly barrierSeq: number; cursor: number } | undefined;
  #scannedTo = 0;
  #seq = 0;

  constructor(seed: number) {
    this.#random = new SeededRandom(`known-work/${seed}`);
  }

  step(): void {
    switch (this.#random.below(8)) {
      case 0:
      case 1:
        return this.#issue();
      case 2:
      case 3:
        return this.#store();
      case 4:
        return this.#answer();
      case 5:
        return this.#foreign();
      default:
        return this.#read();
    }
  }

  #key(): string {
    return `k${this.#random.below(6)}`;
  }

  #issue(): void {
    const key = this.#key();
    if (this.#commits.some((commit) => commit.key === key && commit.isWaitedFor)) return;
    const needsWork = this.#random.chance(0.5);
    const expectedSeq = this.#stored.get(key)?.seq ?? 0;
    const issued = this.#work.issued(key);
    this.#commits.push({ key, issued, expectedSeq, needsWork, storedSeq: undefined, isWaitedFor: true });
  }

  /** Bytes of an own commit arrive, at last. */
  #store(): void {
    const commit = this.#commits[this.#random.below(Math.max(1, this.#commits.length))];
    if (commit === undefined || commit.storedSeq !== undefined) return;
    if ((this.#stored.get(commit.key)?.seq ?? 0) !== commit.expectedSeq) return;
    commit.storedSeq = this.#put(commit.key, commit.needsWork);
  }

  #answer(): void {
    const commit = this.#commits.find(({ isWaitedFor }) => isWaitedFor && this.#random.chance(0.5));
    if (commit === undefined) return;
    commit.isWaitedFor = false;
    const isLost = this.#random.chance(0.3);
    if (commit.storedSeq !== undefined && !isLost) {
      this.#work.committed(commit.issued, commit.storedSeq, commit.needsWork);
    } else {
      const isStale = (this.#stored.get(commit.key)?.seq ?? 0) !== commit.expectedSeq && commit.storedSeq === undefined;
      this.#work.notStored(commit.issued, !isStale);
    }
  }

  #foreign(): void {
    if (this.#random.chance(0.5)) this.#put(this.#key(), this.#random.chance(0.7));
  }

  /** A scan goes on, or begins. It reads the live bucket: what was replaced before it came there it does not see. */
  #read(): void {
    if (this.#scan === undefined) {
      this.#scan = { barrierSeq: (this.#seq += 1), cursor: this.#scannedTo };
      return;
    }
    const { barrierSeq, cursor } = this.#scan;
    const next = [...this.#stored]
      .filter(([, { seq }]) => seq >= cursor && seq < barrierSeq)
      .toSorted(([, a], [, b]) => a.seq - b.seq)[0];
    if (next === undefined) {
      this.#work.scanned(barrierSeq);
      this.#scannedTo = barrierSeq;
      this.#scan = undefined;
      return;
    }
    const [key, { seq, needsWork }] = next;
    this.#work.seen(key, seq, needsWork);
    this.#scan.cursor = seq + 1;
  }

  #put(key: string, needsWork: boolean): number {
    this.#seq += 1;
    this.#stored.set(key, { seq: this.#seq, needsWork });
    return this.#seq;
  }

  /** What the summary says, and which work it would make a successor overlook. */
  look(): { readonly missed: readonly unknown[]; readonly live: number } {
    const { seq, live } = this.#work.summary(3);
    const keys = new Set(live.map(([key]) => key));
    const missed = [...this.#stored].filter(
      (entry) => entry[1].needsWork && entry[1].seq <= seq && !keys.has(entry[0]),
    );
    return { missed, live: live.length };
  }
}
