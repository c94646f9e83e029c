/**
 * `npm run chaos -- <name>`
 *
 * Misfortunes that take longer than a test may. One line of JSON, last on standard output, also when it fails; everything else goes to
 * standard error. Exit status 0 only when every row is true.
 */
import { brokenLine, resultLine, type Scenario } from "../scenarios/scenario.ts";
import { r3Leader } from "./r3-leader.ts";

const CHAOS: readonly Scenario[] = [r3Leader];
const SEED = 0; // nothing here is random

const name = process.argv[2] ?? "";
const say = (line: string): void => void process.stderr.write(`${line}\n`);

async function main() {
  const chosen = CHAOS.find((chaos) => chaos.name === name);
  if (chosen === undefined)
    return brokenLine(
      name === "" ? "none" : name,
      SEED,
      new Error(`Name one of ${CHAOS.map((chaos) => chaos.name).join(", ")}.`),
    );
  try {
    return resultLine(name, SEED, await chosen.run({ seed: SEED, quick: false, variant: undefined, say }));
  } catch (error) {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return brokenLine(name, SEED, error);
  }
}

const line = await main();
process.stdout.write(`${JSON.stringify(line)}\n`);
process.exitCode = line.pass ? 0 : 1;
