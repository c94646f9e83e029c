// The takeover bench: what a node's death costs, and that sleepers add nothing to it.
//
// Owns: the order of the takeovers, the comparison.  Does not own: the processes, what one takeover is (takeover-run.ts).
//   T1  takeovers with and without sleepers take turns; each store is filled once
//   T2  every figure of time is in broker time, read from what was stored, but for the moment of SIGKILL and what nodes report of themselves

import type { CpuUse } from "./cpu-use.ts";
import { measureFsyncUs } from "./machine-facts.ts";
import { median } from "./measure-window.ts";
import { round, type BenchFindings, type TakeoverResult } from "./report.ts";
import type { TakeoverPlan } from "./takeover-plan.ts";
import { runTakeover, type Takeover } from "./takeover-run.ts";
import { TakeoverWorld } from "./takeover-world.ts";

/** A slow machine measures the many once: the whole command ends within ten minutes. */
const REPEAT_UNTIL_MS = 6.5 * 60_000;

/** @throws Error when a live actor did not commit again */
export async function runTakeoverBench(
  plan: TakeoverPlan,
  findings: BenchFindings<TakeoverResult>,
  say: (line: string) => void,
): Promise<void> {
  const { durabilityClass, live, sleepers, pairs, manyLive, manyRounds } = plan;
  const startedMs = performance.now();
  await using without = await TakeoverWorld.start(durabilityClass, 0, say);
  await using beside = await TakeoverWorld.start(durabilityClass, sleepers, say);
  const fsyncUs = measureFsyncUs(beside.folder);
  findings.machine = { ...findings.machine, natsServer: beside.nats.version, fsyncUs };

  const take = async (world: TakeoverWorld, number: number, name: string): Promise<Takeover> => {
    const takeover = await runTakeover(world, number, name);
    say(`  ${name}: ${takeoverLine(takeover)}`);
    return takeover;
  };
  const alone: Takeover[] = [];
  const crowded: Takeover[] = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    const first = async (): Promise<void> => void alone.push(await take(without, live, `alone-${pair}`));
    const second = async (): Promise<void> => void crowded.push(await take(beside, live, `beside-${pair}`));
    for (const each of pair % 2 === 0 ? [first, second] : [second, first]) await each(); // T1
  }
  const many: Takeover[] = [];
  const isEarly = (): boolean => performance.now() - startedMs < REPEAT_UNTIL_MS;
  for (let n = 0; n < manyRounds && (n === 0 || isEarly()); n += 1) {
    many.push(await take(beside, manyLive, `many-${n}`));
  }

  const results = [summary(plan, 0, live, alone), summary(plan, sleepers, live, crowded)];
  if (many.length > 0) results.push(summary(plan, sleepers, manyLive, many));
  for (const result of results) say(`medians, ${result.name}: ${takeoverLine(result)}${cpuLine(result)}`);
  findings.results.push(...results);
  const [base, full, most] = results;
  if (base === undefined || full === undefined) return;
  findings.reached.set("sleepers-ratio", full.totalMs / base.totalMs);
  findings.reached.set("read-ms", full.readMs);
  if (most !== undefined) findings.reached.set(`live-${manyLive}-s`, most.fromClaimMs / 1000);
  say(`with sleepers over without: ${(full.totalMs / base.totalMs).toFixed(2)}x`);
}

/** Medians. */
function summary(
  { durabilityClass }: TakeoverPlan,
  sleepers: number,
  live: number,
  takeovers: readonly Takeover[],
): TakeoverResult {
  const over = (of: (takeover: Takeover) => number): number => round(median(takeovers.map(of)));
  const cpus = takeovers.flatMap(({ cpu }) => cpu ?? []);
  const overCpu = (of: (cpu: CpuUse) => number): number => round(median(cpus.map(of)));
  return {
    name: `live-${live}-sleepers-${sleepers}`,
    class: durabilityClass,
    totalMs: over(({ totalMs }) => totalMs),
    fromClaimMs: over(({ fromClaimMs }) => fromClaimMs),
    detectMs: over(({ detectMs }) => detectMs),
    claimMs: over(({ claimMs }) => claimMs),
    readMs: over(({ readMs }) => readMs),
    restoreMs: over(({ restoreMs }) => restoreMs),
    reissueMs: over(({ reissueMs }) => reissueMs),
    scanned: over(({ scanned }) => scanned),
    partitions: over(({ partitions }) => partitions),
    totals: takeovers.map(({ totalMs }) => Math.round(totalMs)),
    ...(cpus.length > 0 && {
      cpuUs: { node: overCpu(({ nodeUs }) => nodeUs / live), server: overCpu(({ serverUs }) => serverUs / live) },
      othersShare: overCpu(({ othersShare }) => othersShare),
    }),
  };
}

const cpuLine = ({ cpuUs, othersShare = 0 }: TakeoverResult): string =>
  cpuUs === undefined
    ? ""
    : `; processor per live actor: node ${cpuUs.node} µs, server ${cpuUs.server} µs; others took ${Math.round(othersShare * 100)} % of the machine`;

const takeoverLine = (takeover: Omit<Takeover, "cpu">): string =>
  `total ${ms(takeover.totalMs)} = detect ${ms(takeover.detectMs)} + ${ms(takeover.fromClaimMs)} from the first claim ` +
  `(claim ${ms(takeover.claimMs)}, read ${ms(takeover.readMs)}, restore ${ms(takeover.restoreMs)}, reissue ${ms(takeover.reissueMs)}); ` +
  `${takeover.partitions} partitions, ${takeover.scanned} records scanned`;

const ms = (value: number): string => `${Math.round(value)} ms`;
