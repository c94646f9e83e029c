import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

const root = join(import.meta.dirname, "../..");

/** Files with property tests whose titles begin with the invariant that they are about. */
const FILES = ["packages/machines/src/owner-wait.properties.test.ts"];

const Assertion = z.looseObject({ title: z.string(), status: z.string(), failureMessages: z.array(z.string()) });
const Report = z.looseObject({ testResults: z.array(z.looseObject({ assertionResults: z.array(Assertion) })) });
type Assertion = z.infer<typeof Assertion>;

let running: Promise<readonly Assertion[]> | undefined;

/** The property tests, run once in a process of their own for everybody who asks. */
async function runProperties(): Promise<readonly Assertion[]> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-properties-"));
  try {
    const report = join(folder, "report.json");
    const vitest = fileURLToPath(new URL("vitest.mjs", import.meta.resolve("vitest/package.json")));
    const args = [vitest, "run", "--root", root, "--project", "unit", "--reporter", "json", "--outputFile", report];
    // What failed stands in the report; without one it did not run.
    const ended = new Promise<string>((resolve) => {
      execFile(process.execPath, [...args, ...FILES], { cwd: root }, (_error, stdout, stderr) =>
        resolve(stdout + stderr),
      );
    });
    const said = await ended;
    const text = await readFile(report, "utf8").catch((cause: unknown) => {
      throw new Error(`the property tests did not run: ${said.slice(-400)}`, { cause });
    });
    return Report.parse(JSON.parse(text)).testResults.flatMap(({ assertionResults }) => assertionResults);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** @throws Error unless there are property tests of the invariant, and all of them passed in this run */
export async function propertiesHold(invariant: string): Promise<void> {
  running ??= runProperties();
  const own = (await running).filter(({ title }) => title.startsWith(`${invariant}:`));
  if (own.length === 0) throw new Error(`there is no property test of ${invariant}`);
  for (const { title, status, failureMessages } of own)
    if (status !== "passed") throw new Error(`${title}: ${failureMessages[0] ?? status}`);
}
