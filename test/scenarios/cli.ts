/**
 * `npm run scenario -- <name|all> [--seed N] [--variant v] [--quick]`
 *
 * One line of JSON per scenario, last on standard output, also when it fails; everything else goes to standard error.
 * Exit status 0 only when every row of every line is true.
 */
import { parseArgs } from "node:util";
import { z } from "zod";
import { delegationRestart } from "./delegation-restart.ts";
import { mainJob } from "./main-job.ts";
import { brokenLine, resultLine, type ResultLine, type Scenario } from "./scenario.ts";

const SCENARIOS: readonly Scenario[] = [delegationRestart, mainJob];
const Seed = z.coerce.number().int().min(0).max(0xffff_ffff);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  strict: false,
  options: { seed: { type: "string" }, variant: { type: "string" }, quick: { type: "boolean" } },
});
const name = positionals[0] ?? "";
const seed = Seed.safeParse(values["seed"] ?? 1);
const asked = {
  seed: seed.success ? seed.data : 0,
  quick: values["quick"] === true,
  variant: typeof values["variant"] === "string" ? values["variant"] : undefined,
  say: (line: string) => void process.stderr.write(`${line}\n`),
};

let running = name === "" ? "none" : name;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    print(brokenLine(running, asked.seed, new Error(`stopped by ${signal}`)));
    process.exit(1);
  });
}

/** What is wrong with the command; undefined when nothing is. */
function complaint(chosen: readonly Scenario[]): string | undefined {
  const known = SCENARIOS.map((scenario) => scenario.name).join(", ");
  if (chosen.length === 0) return `Scenario "${name}": there is none. Name one of ${known}, or all.`;
  if (!seed.success) return `--seed ${String(values["seed"])}: expected a whole number from 0.`;
  const { variant } = asked;
  if (variant === undefined || chosen.every(({ variants }) => variants.includes(variant))) return undefined;
  const variants = chosen.map((scenario) => `${scenario.name}: ${scenario.variants.join(", ") || "none"}`).join("; ");
  return `--variant ${variant}: expected one that every chosen scenario has (${variants}).`;
}

async function run(scenario: Scenario): Promise<ResultLine> {
  running = scenario.name;
  asked.say(`scenario ${scenario.name}, SEED=${asked.seed}`);
  try {
    return resultLine(scenario.name, asked.seed, await scenario.run(asked));
  } catch (error) {
    asked.say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return brokenLine(scenario.name, asked.seed, error);
  }
}

function print(line: ResultLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

async function main(): Promise<void> {
  const chosen = name === "all" ? SCENARIOS : SCENARIOS.filter((scenario) => scenario.name === name);
  const wrong = complaint(chosen);
  if (wrong !== undefined) {
    asked.say(wrong);
    const line = resultLine(running, asked.seed, { rows: { known: false }, leftOut: {}, details: { error: wrong } });
    print(line);
    process.exitCode = 1;
    return;
  }
  const lines: ResultLine[] = [];
  for (const scenario of chosen) {
    const line = await run(scenario);
    lines.push(line);
    print(line);
  }
  if (name === "all") {
    const rows = Object.fromEntries(lines.map(({ scenario, pass }) => [scenario, pass]));
    print(resultLine("all", asked.seed, { rows, leftOut: {}, details: {} }));
  }
  process.exitCode = lines.every(({ pass }) => pass) ? 0 : 1;
}

await main();
