/** `npm run bench -- transition|takeover|wallet [--quick]`: people read standard error, machines the last line of standard output. */
import { machineFacts, type MachineFacts } from "./machine-facts.ts";
import {
  judge,
  type BenchFindings,
  type LoadResult,
  type ReportLine,
  type TakeoverResult,
  type Target,
} from "./report.ts";
import { runTakeoverBench } from "./takeover-bench.ts";
import { FULL_TAKEOVER, QUICK_TAKEOVER, takeoverTargets } from "./takeover-plan.ts";
import { runTransitionBench } from "./transition-bench.ts";
import { FULL_PLAN, QUICK_PLAN, targetsOf } from "./transition-plan.ts";
import { runWalletBench } from "./wallet-bench.ts";
import { FULL_WALLET_PLAN, QUICK_WALLET_PLAN, WALLET_TARGETS } from "./wallet-plan.ts";

const USAGE = "usage: npm run bench -- transition|takeover|wallet [--quick]";

/** One run: what it is to reach, how long it may take before it counts as hanging, and how it is done. */
interface Bench<Result> {
  readonly targets: readonly Target[];
  readonly longestRunMs: number;
  readonly run: (findings: BenchFindings<Result>) => Promise<void>;
}

const say = (line: string): void => void process.stderr.write(`${line}\n`);

function transition(isQuick: boolean): Bench<LoadResult> {
  const plan = isQuick ? QUICK_PLAN : FULL_PLAN;
  const run = (findings: BenchFindings<LoadResult>): Promise<void> => runTransitionBench(plan, findings, say);
  return { targets: targetsOf(plan), longestRunMs: 7.5 * 60_000, run };
}

function takeover(isQuick: boolean): Bench<TakeoverResult> {
  const plan = isQuick ? QUICK_TAKEOVER : FULL_TAKEOVER;
  const run = (findings: BenchFindings<TakeoverResult>): Promise<void> => runTakeoverBench(plan, findings, say);
  return { targets: takeoverTargets(plan), longestRunMs: 9.5 * 60_000, run };
}

function wallet(isQuick: boolean): Bench<LoadResult> {
  const plan = isQuick ? QUICK_WALLET_PLAN : FULL_WALLET_PLAN;
  const run = (findings: BenchFindings<LoadResult>): Promise<void> => runWalletBench(plan, findings, say);
  return { targets: WALLET_TARGETS, longestRunMs: 58_000, run };
}

async function main([bench = "", ...flags]: readonly string[]): Promise<ReportLine> {
  const machine = machineFacts();
  const isQuick = flags.includes("--quick");
  const isKnown = flags.every((flag) => flag === "--quick");
  if (isKnown && bench === "transition") return report(bench, machine, transition(isQuick));
  if (isKnown && bench === "takeover") return report(bench, machine, takeover(isQuick));
  if (isKnown && bench === "wallet") return report(bench, machine, wallet(isQuick));
  say(USAGE);
  return { bench, pass: false, machine, results: [], targets: [], error: USAGE };
}

async function report<Result extends LoadResult | TakeoverResult>(
  name: string,
  machine: MachineFacts,
  bench: Bench<Result>,
): Promise<ReportLine> {
  const findings: BenchFindings<Result> = { machine, results: [], reached: new Map() };
  let failure: string | undefined;
  try {
    say(
      `${name}: ${machine.cpus} x ${machine.model}, Node ${machine.node}, load ${machine.loadBefore.toFixed(1)} before the run`,
    );
    await Promise.race([bench.run(findings), giveUp(bench.longestRunMs)]);
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
    say(`failed: ${error instanceof Error ? (error.stack ?? failure) : failure}`);
  }
  const targets = judge(bench.targets, findings.reached);
  for (const { name: target, op, target: limit, reached, unit, held } of targets)
    say(`${held ? "held  " : "MISSED"} ${target} ${op} ${limit}${unit}: ${reached ?? "not measured"}`);
  const pass = failure === undefined && targets.every(({ held }) => held);
  return {
    bench: name,
    pass,
    machine: findings.machine,
    results: findings.results,
    targets,
    ...(failure !== undefined && { error: failure }),
  };
}

const giveUp = (afterMs: number): Promise<never> =>
  new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not done after ${afterMs} ms`)), afterMs).unref();
  });

const line = await main(process.argv.slice(2));
process.stdout.write(`${JSON.stringify(line)}\n`, () => process.exit(line.pass ? 0 : 1));
