/**
 * `npm run scenario -- <name|all> [--seed N] [--variant v] [--quick]`
 *
 * One line of JSON per scenario, last on standard output, also when it fails; everything else goes to standard error.
 * Exit status 0 only when every row of every line is true.
 */
import { parseArgs } from "node:util";
import { z } from "zod";
import { chaosBreaks } from "./chaos-breaks.ts";
import { chaos } from "./chaos.ts";
import { delegationRestart } from "./delegation-restart.ts";
import { fencing } from "./fencing.ts";
import { flowControl } from "./flow-control.ts";
import { mainJob } from "./main-job.ts";
import { openhands } from "./openhands.ts";
import { ouroboros } from "./ouroboros.ts";
import { rollingRestart } from "./rolling-restart.ts";
import { brokenLine, resultLine, type ResultLine, type Scenario } from "./scenario.ts";

const SCENARIOS: readonly Scenario[] = [
  chaos,
  chaosBreaks,
  delegationRestart,
  fencing,
  mainJob,
  flowControl,
  rollingRestart,
  openhands,
];
/** Those with rows that no test shows yet: run by their name only. */
const UNFINISHED: readonly Scenario[] = [ouroboros];
const EVERY = [...SCENARIOS, ...UNFINISHED];
const Seed = z.coerce.number().int().min(0).max(0xffff_ffff);

const { values, positionals, unreadable } = readArguments();
const name = positionals[0] ?? "";
const seed = Seed.safeParse(values.seed);
const asked = {
  seed: seed.success ? seed.data : 0,
  quick: values.quick,
  variant: values.variant,
  say: (line: string) => void process.stderr.write(`${line}\n`),
};

let running = name === "" ? "none" : name;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    print(brokenLine(running, asked.seed, new Error(`stopped by ${signal}`)));
    process.exit(1);
  });
}

/** The command's arguments; what cannot be read becomes a line as well, not an exception. */
function readArguments() {
  const options = {
    seed: { type: "string", default: "1" },
    variant: { type: "string" },
    quick: { type: "boolean", default: false },
  } as const;
  try {
    return { ...parseArgs({ allowPositionals: true, options }), unreadable: undefined };
  } catch (error) {
    const { values, positionals } = parseArgs({ allowPositionals: true, args: [], options });
    return { values, positionals, unreadable: error instanceof Error ? error.message : String(error) };
  }
}

/** What is wrong with the command; undefined when nothing is. */
function complaint(chosen: readonly Scenario[]): string | undefined {
  if (unreadable !== undefined) return unreadable;
  const known = EVERY.map((scenario) => scenario.name).join(", ");
  if (chosen.length === 0) return `Scenario "${name}": there is none. Name one of ${known}, or all.`;
  if (!seed.success) return `--seed ${values.seed}: expected a whole number from 0.`;
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
  const chosen = name === "all" ? SCENARIOS : EVERY.filter((scenario) => scenario.name === name);
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
