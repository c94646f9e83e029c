/** `npm run bench -- transition [--quick]`: people read standard error, machines the last line of standard output. */
import { machineFacts } from "./machine-facts.ts";
import { judge, type ReportLine } from "./report.ts";
import { runTransitionBench, type TransitionFindings } from "./transition-bench.ts";
import { FULL_PLAN, QUICK_PLAN, targetsOf } from "./transition-plan.ts";

const USAGE = "usage: npm run bench -- transition [--quick]";
/** A run that takes longer hangs. ms */
const LONGEST_RUN_MS = 7.5 * 60_000;

const say = (line: string): void => void process.stderr.write(`${line}\n`);

async function main([bench, ...flags]: readonly string[]): Promise<ReportLine> {
  const findings: TransitionFindings = { machine: machineFacts(), results: [], reached: new Map() };
  const isKnown = bench === "transition" && flags.every((flag) => flag === "--quick");
  const plan = flags.includes("--quick") ? QUICK_PLAN : FULL_PLAN;
  let failure: string | undefined;
  try {
    if (!isKnown) throw new Error(USAGE);
    const { cpus, model, node, loadBefore } = findings.machine;
    say(`transition: ${cpus} x ${model}, Node ${node}, load ${loadBefore.toFixed(1)} before the run`);
    await Promise.race([runTransitionBench(plan, findings, say), giveUp()]);
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
    say(`failed: ${error instanceof Error ? (error.stack ?? failure) : failure}`);
  }
  const { machine, results, reached } = findings;
  const targets = isKnown ? judge(targetsOf(plan), reached) : [];
  for (const { name, op, target, reached: figure, unit, held } of targets)
    say(`${held ? "held  " : "MISSED"} ${name} ${op} ${target}${unit}: ${figure ?? "not measured"}`);
  const pass = failure === undefined && targets.every(({ held }) => held);
  return { bench: bench ?? "", pass, machine, results, targets, ...(failure !== undefined && { error: failure }) };
}

const giveUp = (): Promise<never> =>
  new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not done after ${LONGEST_RUN_MS} ms`)), LONGEST_RUN_MS).unref();
  });

const line = await main(process.argv.slice(2));
process.stdout.write(`${JSON.stringify(line)}\n`, () => process.exit(line.pass ? 0 : 1));
