import { parseActorKey } from "@holdfast/protocol";
import type { StartedProcess } from "../harness/child-process.ts";
import type { FaultPlan } from "../harness/fault-points.ts";
import { waitUntil } from "../harness/wait-until.ts";
import type { FencingStage } from "./fencing-stage.ts";

/** One way in which somebody acts who no longer may. @returns what must be true; the stage then asks what is stored */
export type FencingCase = (stage: FencingStage) => Promise<Readonly<Record<string, boolean>>>;

const same = (found: readonly unknown[], expected: readonly unknown[]): boolean =>
  JSON.stringify(found) === JSON.stringify(expected);

/** The store did not take what this process had decided before it was stopped. */
const wasRefused = (node: StartedProcess, key: string): boolean =>
  node
    .log()
    .split("\n")
    .some((line) => line.includes("commit.not-stored") && line.includes(key));

const freezeAt = (point: FaultPlan[number]["point"], match: string, nth = 1): FaultPlan => [
  { point, match, nth, act: "freeze" },
];

/** By the place at which the owner is stopped: `n1` owns everything, `n2` takes it over meanwhile, then `n1` goes on. */
export const FENCING_CASES: Readonly<Record<string, FencingCase>> = {
  /** F5: the record of a child is about to be created, and the successor creates it meanwhile. */
  "before-create": async (stage) => {
    const first = await stage.alone("n1", freezeAt("before-create", ".item."));
    const order = stage.start("order", "o1", { items: 2, waitMs: 30 });
    const { detail: item } = await stage.stopped(first);
    const second = await stage.alone("n2");
    const { isExact, effects } = await stage.delivered(order);
    await stage.thawed(first);
    await waitUntil("its late create is refused", () => wasRefused(first, item));
    const attempts = await Promise.all(effects.map((key) => stage.attemptsOf(key)));
    return {
      appliedOnce: isExact,
      effectsOfSuccessorOnly: attempts.every((nodes) => same(nodes, ["n2"])),
      recordOfSuccessor: (await stage.header(item))?.writer === second.hello["incarnation"],
      rejoins: await stage.rejoins(first),
    };
  },

  /** The next state of an actor is about to be stored, and the successor applies the same message meanwhile. */
  "before-commit": async (stage) => {
    const first = await stage.alone("n1", freezeAt("before-commit", ".order.o1"));
    const order = stage.start("order", "o1", { items: 2, waitMs: 30 });
    await stage.stopped(first);
    await stage.alone("n2");
    const { isExact } = await stage.delivered(order);
    const before = await stage.header(order);
    await stage.thawed(first);
    await waitUntil("its late commit is refused", () => wasRefused(first, order));
    return {
      appliedOnce: isExact,
      recordUntouched: same([await stage.header(order)], [before]),
      rejoins: await stage.rejoins(first),
    };
  },

  /** F21: the mark of a job that must never run twice is about to be stored. There is none, so the successor may run it, and nobody else. */
  "before-mark": async (stage) => {
    const first = await stage.alone("n1", freezeAt("before-commit", ".parcel.once1"));
    stage.openGate();
    const parcel = stage.start("parcel", "once1", { kind: "once", gate: stage.gate });
    await stage.stopped(first);
    await stage.alone("n2");
    const packedBy = await stage.packedBy(parcel);
    await stage.thawed(first);
    await waitUntil("its late mark is refused", () => wasRefused(first, parcel));
    return {
      ranOnce: packedBy === "n2" && same(await stage.attemptsOf(parcel), ["n2"]),
      rejoins: await stage.rejoins(first),
    };
  },

  /** F21, F36: a job that must never run twice is about to start, its mark is stored; another one runs. */
  "before-job": async (stage) => {
    const first = await stage.alone("n1", freezeAt("before-job", "packOnce"));
    const sure = await stage.packing("sure1", "sure");
    const once = stage.start("parcel", "once1", { kind: "once", gate: stage.gate });
    const { detail: job } = await stage.stopped(first);
    await stage.alone("n2");
    const { snapshot } = await stage.ended(once);
    await waitUntil("the successor runs the other job", async () => (await stage.attemptsOf(sure)).includes("n2"));
    const abortedBefore = stage.aborted();
    await stage.thawed(first);
    await waitUntil("the running job of the former owner is aborted", () => stage.aborted().length > 0);
    stage.openGate();
    return {
      ambiguousNeverRan: snapshot.value === "lost" && same(await stage.attemptsOf(job), []),
      otherRanAgain: (await stage.packedBy(sure)) === "n2" && same(await stage.attemptsOf(sure), ["n1", "n2"]),
      abortedOnGreaterEpoch: abortedBefore.length === 0 && stage.aborted().every((line) => line.startsWith("n1 ")),
      rejoins: await stage.rejoins(first),
    };
  },

  /** A message and a journal entry are about to leave; their record is stored, and the successor sends them meanwhile. */
  "before-publish": async (stage) => {
    // Its first entry is the journal of its start, the second commit tells the order of its progress.
    const first = await stage.alone("n1", freezeAt("mid-dispatch", ".item.item-0-", 2));
    const order = stage.start("order", "o1", { items: 2, waitMs: 30 });
    const { detail: item } = await stage.stopped(first);
    const unsent = (await stage.record(item))?.outbox.filter(({ kind }) => kind === "send").length;
    await stage.alone("n2");
    const { isExact } = await stage.delivered(order);
    await stage.thawed(first);
    return { stoppedWithUnsent: unsent === 1, appliedOnce: isExact, rejoins: await stage.rejoins(first) };
  },

  /** F20: a job has run to its end, its outcome is about to leave. Whoever ran it may say so, but the call is over by then. */
  "before-outcome": async (stage) => {
    const first = await stage.alone("n1", freezeAt("job-done", "packSure"));
    stage.openGate();
    const parcel = stage.start("parcel", "sure1", { kind: "sure", gate: stage.gate });
    await stage.stopped(first);
    await stage.alone("n2");
    const packedBy = await stage.packedBy(parcel);
    const before = await stage.header(parcel);
    await stage.thawed(first);
    const rejoins = await stage.rejoins(first); // what it published has been read by then
    return {
      firstOutcomeStands: packedBy === "n2" && same(await stage.attemptsOf(parcel), ["n1", "n2"]),
      recordUntouched: same([await stage.header(parcel)], [before]),
      rejoins,
    };
  },

  /** F5, I14: the create lands after all, when the successor has already looked for what there is; then its writer dies. */
  "foreign-create": async (stage) => {
    const first = await stage.alone("n1", [
      { point: "before-create", match: ".item.", act: "freeze" },
      { point: "after-commit", match: ".item.", act: "kill" },
    ]);
    const order = stage.start("order", "o1", { items: 2, waitMs: 30 });
    const { detail: item } = await stage.stopped(first);
    const second = await stage.fleet.start("n2", freezeAt("after-barrier", parseActorKey(item).partition));
    await stage.stopped(second);
    first.thaw();
    await first.exited;
    const foreign = await stage.header(item);
    const jobs = Object.values((await stage.record(item))?.snapshot.children ?? {}).map(({ key }) => key);
    second.thaw();
    const { isExact } = await stage.delivered(order);
    return {
      foreignRecordLanded: foreign?.writer === first.hello["incarnation"] && foreign?.epoch === 1 && foreign.needsWork,
      itsWorkWasDone: jobs.length === 1 && same(await stage.attemptsOf(jobs[0] ?? ""), ["n2"]),
      appliedOnce: isExact,
    };
  },

  /** F19, I14: the same with a sleeper that nobody looks for at a takeover: its commit is accepted, and its writer dies before anything left. */
  "foreign-commit": async (stage) => {
    const first = await stage.alone("n1", [
      { point: "before-commit", match: ".order.sleeper", nth: 2, act: "freeze" }, // the first clears its outbox
      { point: "after-commit", match: ".order.sleeper", act: "kill" },
    ]);
    const sleeper = stage.start("order", "sleeper", { items: 0 });
    await waitUntil("it sleeps", async () => (await stage.header(sleeper))?.needsWork === false);
    stage.send(sleeper, { type: "PING" }, "ping1");
    await stage.stopped(first);
    const second = await stage.fleet.start("n2", freezeAt("after-barrier", parseActorKey(sleeper).partition));
    await stage.stopped(second);
    first.thaw();
    await first.exited;
    const foreign = await stage.header(sleeper);
    second.thaw();
    stage.send(sleeper, { type: "PING" }, "ping2");
    const pings = await waitUntil("the next message is applied", async () => {
      const record = await stage.record(sleeper);
      return record?.rev === 3 && record.outbox.length === 0
        ? Reflect.get(Object(record.snapshot.context), "pings")
        : false;
    });
    const journal = await stage.client.holdfast.read.journal(sleeper);
    return {
      foreignRecordLanded: foreign?.writer === first.hello["incarnation"] && foreign?.epoch === 1 && foreign.rev === 2,
      appliedOnce: pings === 2,
      itsJournalWasSent: same(
        journal.map(({ rev }) => rev),
        [1, 2, 3],
      ),
    };
  },

  /** F5, F19: an owner is stopped anywhere, in the middle of jobs, messages and timers. */
  "plain-freeze": async (stage) => {
    const first = await stage.alone("n1");
    const orders = ["o1", "o2"].map((id) => stage.start("order", id, { items: 2, waitMs: 1200 }));
    const parcels = await Promise.all(["sure1", "sure2", "sure3"].map((id) => stage.packing(id, "sure")));
    await first.freeze();
    await stage.alone("n2");
    for (const parcel of parcels)
      await waitUntil("the successor packs it", async () => (await stage.attemptsOf(parcel)).includes("n2"));
    await stage.thawed(first);
    await waitUntil("its jobs are aborted", () => stage.aborted().length === parcels.length);
    stage.openGate();
    const packers = await Promise.all(parcels.map((parcel) => stage.packedBy(parcel)));
    const attempts = await Promise.all(parcels.map((parcel) => stage.attemptsOf(parcel)));
    const delivered = await Promise.all(orders.map((order) => stage.delivered(order)));
    return {
      outcomesOfSuccessorOnly: packers.every((node) => node === "n2"),
      noThirdAttempt: attempts.every((nodes) => same(nodes, ["n1", "n2"])),
      abortedOnGreaterEpoch: stage.aborted().every((line) => line.startsWith("n1 ")),
      appliedOnce: delivered.every(({ isExact }) => isExact),
      rejoins: await stage.rejoins(first),
    };
  },

  /** F14: a second process under a living name is refused; one that came while the first was stopped replaces it for good. */
  "same-name": async (stage) => {
    const first = await stage.alone("n1");
    const parcel = await stage.packing("sure1", "sure");
    const before = await stage.epochs();
    const refusal = await stage.fleet.start("n1").then(
      () => "it started",
      (error: unknown) => String(error),
    );
    const afterRefusal = await stage.epochs();
    await first.freeze();
    const second = await stage.alone("n1");
    await waitUntil("the other one packs it", async () => (await stage.attemptsOf(parcel)).length === 2);
    const taken = await stage.epochs();
    await stage.thawed(first, "node.replaced");
    await waitUntil("its job is aborted", () => stage.aborted().length === 1);
    const order = stage.start("order", "o1", { items: 2, waitMs: 30 });
    const { isExact } = await stage.delivered(order);
    stage.openGate();
    const { status } = await stage.ended(parcel);
    return {
      secondWasRefused: refusal.includes("HF-3004") && same([...before], [...afterRefusal]),
      foreignLeasesWereTaken: [...taken].every(([partition, epoch]) => epoch === (before.get(partition) ?? 0) + 1),
      replacedForGood:
        same([...(await stage.epochs())], [...taken]) &&
        same([...(await stage.holders())], [second.hello["incarnation"]]),
      appliedOnce: isExact && status === "done" && (await stage.attemptsOf(parcel)).length === 2,
    };
  },
};
