import { writeFile } from "node:fs/promises";
import { agentDefinitions } from "@holdfast/node-app";
import { RuntimeFault, type ActorRecord } from "@holdfast/protocol";
import type { Command } from "commander";
import {
  compileActors,
  differences,
  NOT_COMPARED,
  readForReplay,
  replayStored,
  type Difference,
  type StoredReplay,
} from "holdfast";
import { changeText, endText, stepText, stepViews } from "../replay/replay-view.ts";
import { readSavedState, savedStateOf } from "../replay/saved-state.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";
import { targetOf } from "./target.ts";

interface ReplayCommandOptions extends GlobalOptions {
  readonly to?: string;
  readonly assert?: string;
  readonly save?: string;
}

/** What is stored contradicts the transitions. Any other failure ends with 1. */
const MISMATCH_EXIT_CODE = 10;
const CONTRADICTIONS: readonly StoredReplay["end"]["kind"][] = ["mismatch", "contradiction", "gap"];

/** `holdfast replay` */
export function replayCommand(program: Command, context: CommandContext): void {
  program
    .command("replay")
    .description(
      "runs the transitions of an actor's journal again; status 10 when they lead elsewhere than what is stored",
    )
    .argument("<type/id>")
    .option("--to <seq>", "stop after this sequence of the journal stream")
    .option("--assert <what>", "compare the end with the stored record (stored), or with a file of --save or --json")
    .option("--save <file>", "write the end to a file")
    .option("--json")
    .action((target: string, options: ReplayCommandOptions) =>
      withClient(context, options, "operator", async ({ holdfast }, output) => {
        const toSeq = sequenceOf(options);
        const key = targetOf(target, (type, id) => holdfast.key(type, id));
        const stored = await readForReplay(holdfast.read, key);
        if (stored === undefined) throw new RuntimeFault("HF-3001", `${key}: there is no such actor.`);
        const machines = compileActors(agentDefinitions());
        const result = replayStored(stored, { machines, scheme: holdfast.manifest, toSeq });
        const end = result.steps.at(-1)?.record;
        const found = await assertedDifferences(options.assert, key, end, result);
        const saved = end === undefined ? undefined : savedStateOf(end);
        if (options.save !== undefined && saved !== undefined)
          await writeFile(options.save, `${JSON.stringify(saved)}\n`);
        const steps = stepViews(result.steps);
        const isContradicted = CONTRADICTIONS.includes(result.end.kind) || (found ?? []).length > 0;
        if (isContradicted) process.exitCode = MISMATCH_EXIT_CODE;
        else if (result.end.kind !== "complete") process.exitCode = 1;
        const asserted = found && { against: options.assert, differences: found, notCompared: NOT_COMPARED };
        const pass = !isContradicted && result.end.kind === "complete";
        output.result(
          { key, pass, steps, end: result.end, repeated: result.repeated, asserted, saved },
          [...steps.map(stepText), endText(result.end, steps.length), ...assertionText(options.assert, found)].join(
            "\n",
          ),
        );
      }),
    );
}

function sequenceOf({ to, assert }: ReplayCommandOptions): number | undefined {
  if (to === undefined) return undefined;
  if (!/^[1-9][0-9]{0,15}$/.test(to)) {
    throw new RuntimeFault(
      "HF-1001",
      `--to ${to}: expected a sequence of the journal, from 1. Look it up with "holdfast replay".`,
    );
  }
  if (assert === "stored") {
    throw new RuntimeFault(
      "HF-1001",
      "--assert stored: expected the whole journal, found --to. Leave one of them out.",
    );
  }
  return Number(to);
}

/** @returns undefined when nothing was asserted, or the replay did not come that far */
async function assertedDifferences(
  against: string | undefined,
  key: string,
  end: ActorRecord | undefined,
  { differences: found, end: { kind } }: StoredReplay,
): Promise<readonly Difference[] | undefined> {
  if (against === undefined) return undefined;
  if (against === "stored") return found;
  const saved = await readSavedState(against, key);
  return kind === "complete" ? differences(saved.state, end === undefined ? {} : savedStateOf(end).state) : undefined;
}

function assertionText(against: string | undefined, found: readonly Difference[] | undefined): readonly string[] {
  if (against === undefined) return [];
  const what = against === "stored" ? "what is stored" : against;
  if (found === undefined) return [`not compared with ${what}`];
  if (found.length === 0) return [`equal to ${what}`, ...NOT_COMPARED.map((part) => `  not compared: ${part}`)];
  return [`differs from ${what}`, ...found.map((difference) => `  ${changeText(difference)}`)];
}
