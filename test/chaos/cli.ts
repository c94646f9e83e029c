/**
 * `npm run chaos -- --minutes N --seed S [--json]`: a mixed workload under seeded misfortune, judged by the checker.
 * `npm run chaos -- --break <kind>`: what is aimed at one promise, on a build that breaks it. The checker must find it: rows are false, status 1.
 * `npm run chaos -- r3-leader`: replicated servers that lose their leader.
 *
 * Misfortunes that take longer than a test may. One line of JSON, last on standard output, also when it fails; everything else goes to
 * standard error, and nothing does with `--json`. Exit status 0 only when every row is true.
 */
import { parseArgs } from "node:util";
import { z } from "zod";
import { Cluster } from "../harness/cluster.ts";
import { PlantedBreak } from "../harness/planted-breaks.ts";
import { brokenLine, resultLine, type ResultLine, type Scenario, type ScenarioOutcome } from "../scenarios/scenario.ts";
import { mixedChaos } from "./mixed-chaos.ts";
import { playPlanted } from "./play-planted.ts";
import { r3Leader } from "./r3-leader.ts";

const NAMED: readonly Scenario[] = [r3Leader];

const Asked = z.object({
  name: z.enum(["chaos", ...NAMED.map(({ name }) => name)]).default("chaos"),
  minutes: z.coerce.number().positive().max(600).default(10),
  seed: z.coerce.number().int().min(0).max(0xffff_ffff).default(1),
  json: z.boolean().default(false),
  break: PlantedBreak.optional(),
});
type Asked = z.infer<typeof Asked>;

function readArguments(): Asked {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      minutes: { type: "string" },
      seed: { type: "string" },
      json: { type: "boolean" },
      break: { type: "string" },
    },
  });
  const parsed = Asked.safeParse({ ...values, ...(positionals[0] !== undefined && { name: positionals[0] }) });
  if (parsed.success) return parsed.data;
  throw new Error(parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; "));
}

async function run(asked: Asked, say: (line: string) => void): Promise<ScenarioOutcome> {
  const { minutes, seed, break: planted } = asked;
  const named = NAMED.find(({ name }) => name === asked.name);
  if (named !== undefined) return named.run({ seed, quick: false, variant: undefined, say });
  if (planted === undefined) return mixedChaos({ minutes, seed, say });
  const cluster = await Cluster.start();
  try {
    const { rows, ...details } = await playPlanted(cluster, planted, true);
    return { rows: rows ?? { completed: false }, leftOut: {}, details: { break: planted, ...details } };
  } finally {
    await cluster.stop();
  }
}

async function main(): Promise<ResultLine> {
  let asked: Asked;
  try {
    asked = readArguments();
  } catch (error) {
    process.stderr.write(`${String(error)}\n`);
    return brokenLine("chaos", 0, error);
  }
  const { name, seed, json } = asked;
  const say = (line: string): void => void (json || process.stderr.write(`${line}\n`));
  say(`${name}, SEED=${seed}`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      process.stdout.write(`${JSON.stringify(brokenLine(name, seed, new Error(`stopped by ${signal}`)))}\n`);
      process.exit(1);
    });
  }
  try {
    return resultLine(name, seed, await run(asked, say));
  } catch (error) {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return brokenLine(name, seed, error);
  }
}

const line = await main();
process.stdout.write(`${JSON.stringify(line)}\n`);
process.exitCode = line.pass ? 0 : 1;
