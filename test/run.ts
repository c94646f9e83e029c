/** `npm test`: every layer once, then one closing line that people and machines read. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";

const Results = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number(),
});
const root = join(import.meta.dirname, "..");
const folder = mkdtempSync(join(tmpdir(), "holdfast-test-"));

function run(args: readonly string[]): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
    child.once("exit", (code) => resolve(code ?? 1));
  });
}

/** Runs projects one after the other: those with a server and real processes must not fight over two cores. */
async function main(): Promise<void> {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  for (const project of ["unit", "architecture", "contract", "integration"]) {
    const report = join(folder, `${project}.json`);
    const code = await run([
      join(root, "node_modules/vitest/vitest.mjs"),
      "run",
      "--project",
      project,
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
      "--passWithNoTests",
    ]);
    const counted = readResults(report);
    passed += counted.passed;
    skipped += counted.skipped;
    // A run that failed without a failed test (a file that does not load, an unhandled rejection) counts as one failure.
    failed += counted.failed === 0 && code !== 0 ? 1 : counted.failed;
  }
  rmSync(folder, { recursive: true, force: true });
  process.stdout.write(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}\n`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}

function readResults(report: string): { readonly passed: number; readonly failed: number; readonly skipped: number } {
  try {
    const results = Results.parse(JSON.parse(readFileSync(report, "utf8")));
    return {
      passed: results.numPassedTests,
      failed: results.numFailedTests,
      skipped: results.numPendingTests + results.numTodoTests,
    };
  } catch {
    return { passed: 0, failed: 0, skipped: 0 };
  }
}

await main();
