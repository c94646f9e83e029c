import { MAX_DOCUMENT_BYTES } from "@holdfast/node-app";
import { untilSignalled } from "@holdfast/process";
import { RuntimeFault } from "@holdfast/protocol";
import type { Command } from "commander";
import { askPerson, type Question } from "../ask-person.ts";
import { agentNamed } from "@holdfast/agents";
import { createOutput, type Output } from "../output.ts";
import { startStack, type Stack } from "../stack/start-stack.ts";
import { countMainJob, mainJobResult } from "../survey/main-job.ts";
import { NodeKiller } from "../survey/node-killer.ts";
import { runSurvey } from "../survey/run-survey.ts";
import { surveyFolder } from "../survey/survey-folder.ts";
import type { CommandContext, GlobalOptions } from "./command-context.ts";
import { connect } from "./connect.ts";

interface DemoOptions extends GlobalOptions {
  readonly answer?: string;
  readonly kill?: boolean;
  readonly stay?: boolean;
  readonly timeout: string;
}

/** `holdfast demo [folder]`, which is what `npm start` runs. */
export function demoCommand(
  program: Command,
  context: CommandContext & { readonly systemEnv: { readonly PATH: string; readonly HOME: string } },
): void {
  program
    .command("demo")
    .description("starts NATS, a model and two agent nodes, and surveys a folder of documents")
    .argument("[folder]", "folder to survey", "docs")
    .option("--answer <value>", "answer to the one question, instead of asking at the terminal")
    .option("--kill", "kill the busiest node with SIGKILL while its tasks run")
    .option("--stay", "leave everything running until Ctrl-C")
    .option("--json", "print the result as one JSON line")
    .option("--timeout <seconds>", "give up after", "300")
    .action(async (given: string, options: DemoOptions) => {
      const output = createOutput(options.json === true);
      const signals = untilSignalled();
      const stopping = new AbortController();
      void signals.first.then(() => stopping.abort());
      let stack: Stack | undefined;
      try {
        const { folder } = await surveyFolder(given);
        const config = context.config();
        stack = await startStack({
          config,
          systemEnv: context.systemEnv,
          nodeNames: ["node-a", "node-b"],
          root: folder,
          say: output.say,
          signal: stopping.signal,
        });
        await using client = await connect(config, "client");
        const killer = options.kill === true ? new NodeKiller(stack, client.holdfast, output.say) : undefined;
        const outcome = await runSurvey({
          client,
          agent: agentNamed("surveyor", config.HOLDFAST_MODEL),
          folder,
          say: output.say,
          answer: (question) => answerOf(question, options, output),
          ...(killer !== undefined && { disturb: (progress) => killer.disturb(progress) }),
          timeoutMs: Number(options.timeout) * 1000,
          signal: stopping.signal,
        });
        output.say(`\n${outcome.finalText}`);
        if (outcome.failure !== undefined)
          throw new RuntimeFault(
            "HF-5003",
            `Survey ${outcome.conversationId} ended with ${outcome.status}: ${outcome.failure}. Send it a message to go on.`,
          );
        const recoveredMs = await killer?.recoveredMs();
        const figures = await countMainJob(stack, outcome, folder, MAX_DOCUMENT_BYTES);
        const result = mainJobResult(figures, outcome, { killed: killer?.killed, recoveredMs });
        output.result(result, summary(result));
        process.exitCode = result.pass ? 0 : 1;
        if (options.stay === true) {
          output.say(`\nThe stack stays up. Try: npx holdfast fleet · npx holdfast conversation list. Ctrl-C ends it.`);
          await signals.first;
        }
      } catch (error) {
        failResult(output, error);
      } finally {
        await stack?.stop();
      }
    });
}

/** The result line is printed also when the run fails. */
function failResult(output: Output, error: unknown): void {
  if (output.json) {
    const rows = { decidedEqualsApplied: false, noDuplicates: false, noneLost: false, reportMatchesFiles: false };
    createOutput(false).fail(error);
    output.result(
      {
        scenario: "main-job",
        pass: false,
        seed: 0,
        rows,
        leftOut: {},
        error: String(error instanceof Error ? error.message : error),
      },
      "",
    );
  } else output.fail(error);
  process.exitCode = 1;
}

async function answerOf(question: Question, options: DemoOptions, output: Output): Promise<string | undefined> {
  if (options.answer !== undefined) {
    output.say(`question: ${question.question} → ${options.answer} (given with --answer)`);
    return options.answer;
  }
  if (process.stdin.isTTY && !output.json) return askPerson(question, process.stdin, process.stderr);
  output.say(
    `question: ${question.question} → ${question.default ?? "(no default)"} (nobody at a terminal: the stated default)`,
  );
  return question.default;
}

function summary(result: ReturnType<typeof mainJobResult>): string {
  const mark = (row: boolean): string => (row ? "✓" : "✗");
  return [
    "",
    "ledger",
    `  delegations decided ${result.decided}, created ${result.created}, settled ${result.settled}, applied ${result.applied}`,
    `  attempts of tools ${result.attempts}`,
    `  duplicates ${result.duplicateEffects}, lost ${result.lost}`,
    ...(result.killed === undefined
      ? []
      : [`  killed ${result.killed} with SIGKILL, recovered in ${String(result.recoveredMs)} ms`]),
    `  took ${result.durationMs} ms`,
    `  report ${result.report}`,
    ...Object.entries(result.rows).map(([name, holds]) => `  ${mark(holds)} ${name}`),
    ...result.differences.map((difference) => `    ${difference}`),
  ].join("\n");
}
