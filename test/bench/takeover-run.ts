import { partitionOf, type RecoveryReport } from "@holdfast/protocol";
import { cpuBetween, readCpu, type CpuUse } from "./cpu-use.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { TakeoverWatch } from "./takeover-watch.ts";
import { VICTIM, type TakeoverWorld } from "./takeover-world.ts";

/** One takeover, in ms. */
export interface Takeover {
  /** From SIGKILL to the last live actor's next commit. */
  readonly totalMs: number;
  /** From the first claim to the last live actor's next commit. */
  readonly fromClaimMs: number;
  /** From SIGKILL to the first claim. */
  readonly detectMs: number;
  /** From the first claim to the last one. */
  readonly claimMs: number;
  /** Longest checkpoint, barrier and scan of a partition. */
  readonly readMs: number;
  /** Longest loading of what a partition's scan found. */
  readonly restoreMs: number;
  /** From the first partition that was taken up, whose jobs then start, to the last next commit. */
  readonly reissueMs: number;
  /** Records that the scans came by. */
  readonly scanned: number;
  readonly partitions: number;
  /** From SIGKILL to the last next commit; absent where the system does not tell. */
  readonly cpu?: CpuUse;
}

const STARTS_AT_ONCE = 128;
const AFTER_KILL_MS = 60_000;

/** Kills a node with `live` actors at work, and watches the other one take over. `round` names the actors: never the same twice. */
export async function runTakeover(world: TakeoverWorld, live: number, round: string): Promise<Takeover> {
  const { holdfast } = world.client;
  const { survivor } = world;
  await using stack = new AsyncDisposableStack();
  const victim = stack.adopt(await world.startVictim(), (node) => node.kill());
  const incarnation = String(victim.hello["incarnation"]);
  const ids = idsOn(world, live, round);
  const keys = new Set(ids.map((id) => holdfast.key("duty", id)));
  const survivorIncarnation = String(survivor.hello["incarnation"]);
  const claim = { by: survivorIncarnation, partitions: world.victimsPartitions };
  await using watch = await TakeoverWatch.start(world.link, holdfast.manifest, keys, claim);
  await startAll(world, ids);
  await waitUntil(
    `${live} jobs run on the victim`,
    async () => (await holdfast.read.fleet()).nodes.find((node) => node.incarnation === incarnation)?.jobs === live,
    { timeoutMs: 30_000, tickMs: 100, dump: () => victim.log() },
  );
  await watch.allAtWork(30_000, () => victim.log());
  await watch.heartbeat(VICTIM);
  const killedAtMs = Date.now();
  await victim.kill("SIGKILL");
  const pids = { node: survivor.pid, server: world.nats.pid };
  const before = readCpu(pids);
  await watch.allCommitted(AFTER_KILL_MS, () => survivor.log().slice(-2000));
  const cpu = cpuBetween(before, readCpu(pids));
  const reports = await waitUntil("every partition was reported", async () => {
    const found = (await holdfast.read.fleet()).reports.filter(
      (report) => report.incarnation === survivorIncarnation && report.previousHolder === incarnation,
    );
    return found.length === world.victimsPartitions.length ? found : undefined;
  });
  const firstClaimMs = Math.min(...watch.claims.values());
  const lastCommitMs = Math.max(...watch.commits.values());
  const longest = (of: (report: RecoveryReport) => number | undefined): number =>
    Math.max(...reports.map((report) => of(report) ?? 0));
  return {
    totalMs: lastCommitMs - killedAtMs,
    fromClaimMs: lastCommitMs - firstClaimMs,
    detectMs: firstClaimMs - killedAtMs,
    claimMs: Math.max(...watch.claims.values()) - firstClaimMs,
    readMs: longest(({ readMs }) => readMs),
    restoreMs: longest(({ restoreMs }) => restoreMs),
    reissueMs: lastCommitMs - Math.min(...reports.map(({ atMs }) => atMs)),
    scanned: reports.reduce((sum, { scanned }) => sum + scanned, 0),
    partitions: reports.length,
    ...(cpu !== undefined && { cpu }),
  };
}

/** Ids of actors in partitions of the victim. */
function idsOn({ client, victimsPartitions }: TakeoverWorld, live: number, round: string): readonly string[] {
  const { manifest } = client.holdfast;
  const wanted = new Set(victimsPartitions);
  const ids: string[] = [];
  for (let n = 0; ids.length < live; n += 1) {
    const id = `${round}-${n}`;
    if (wanted.has(partitionOf(manifest, "d", "duty", id))) ids.push(id);
  }
  return ids;
}

async function startAll({ client }: TakeoverWorld, ids: readonly string[]): Promise<void> {
  const rest = ids.values();
  const run = async (): Promise<void> => {
    for (const id of rest) {
      const started = await client.holdfast.start("duty", id, { isAwake: true }, { timeoutMs: 30_000 });
      // `accepted`: stored, and the answer came too late. That it was applied shows in the number of jobs.
      if (started.kind === "refused") throw new Error(`start of ${id}: ${started.code} ${started.reason}`);
    }
  };
  await Promise.all(Array.from({ length: STARTS_AT_ONCE }, run));
}
