/** Where a command of the documents is really run. */
export interface CommandProof {
  /** File that runs it. */
  readonly file: string;
  /** How it stands there; the test looks for it. */
  readonly as: string;
}

const CI = ".ci/run";
export const COMMANDS_TEST = "test/integration/documented-commands.test.ts";

const inCi = (as: string): CommandProof => ({ file: CI, as });
const inTest: CommandProof = { file: COMMANDS_TEST, as: "DOCUMENTED_COMMANDS" };

/**
 * Every command that stands in a `sh` block of the README or of `docs`, and what runs it. A command that is not here fails the test of the
 * documents: write down what runs it, or leave the command out.
 */
export const DOCUMENTED_COMMANDS: Readonly<Record<string, CommandProof>> = {
  "npm install && npm test": inCi("npm test"),
  "npm run verify": inCi("npm run verify"),
  "npm run --silent scenario -- all": inCi("npm run --silent scenario -- all"),
  "npm install && npm start": inTest,
  "npm start -- docs --kill": inTest,
  "npm start -- docs --answer title --stay": inTest,
  "npx holdfast doctor": inTest,
  "npx holdfast fleet": inTest,
  "npx holdfast stuck": inTest,
  "npx holdfast conversation list": inTest,
  "npx holdfast task list": inTest,
  "npx holdfast wait list --all": inTest,
  "npx holdfast budget set global --usd 50": inTest,
  "npx holdfast budget set survey --usd 5 --tokens 2000000": inTest,
  "npx holdfast budget list": inTest,
  "npx holdfast budget show survey": inTest,
  'npx holdfast events "task.*.*.completed"': inTest,
};
