/** `npm test`: every layer once, the contracts on every supported server, then one closing line that people and machines read. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provideNatsServers } from "@holdfast/process";
import { z } from "zod";

const Results = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number(),
});
const root = join(import.meta.dirname, "..");
const folder = mkdtempSync(join(tmpdir(), "holdfast-test-"));
const say = (line: string): void => void process.stdout.write(`\n${line}\n`);

interface Run {
  readonly title: string;
  readonly project: string;
  readonly env: Readonly<Record<string, string>>;
}

/** One after the other: those with a server and real processes must not fight over two cores. */
async function plannedRuns(): Promise<readonly Run[]> {
  const plain = (project: string): Run => ({ title: project, project, env: {} });
  const servers = await provideNatsServers({
    cacheDir: join(root, ".holdfast"),
    env: { PATH: process.env["PATH"], HOLDFAST_NATS_SERVER: process.env["HOLDFAST_NATS_SERVER"] },
  });
  const contracts = servers.map(({ path, version, source }) => ({
    title: `contract on nats-server ${version} (${source})`,
    project: "contract",
    env: { HOLDFAST_NATS_SERVER: path },
  }));
  if (servers.length < 2)
    say(`only one nats-server can be had (${servers[0]?.notes.join("; ") ?? ""}): contracts run once`);
  return [plain("unit"), plain("architecture"), ...contracts, plain("integration")];
}

function runProject({ project, env }: Run, report: string): Promise<number> {
  const args = ["run", "--project", project, "--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), ...args], {
      cwd: root,
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...process.env, ...env },
    });
    child.once("exit", (code) => resolve(code ?? 1));
  });
}

function readResults(report: string): z.infer<typeof Results> | undefined {
  try {
    return Results.parse(JSON.parse(readFileSync(report, "utf8")));
  } catch {
    return undefined;
  }
}

let passed = 0;
let failed = 0;
let skipped = 0;
for (const [index, run] of (await plannedRuns()).entries()) {
  say(`── ${run.title}`);
  const report = join(folder, `${index}.json`);
  const code = await runProject(run, report);
  const results = readResults(report);
  passed += results?.numPassedTests ?? 0;
  skipped += (results?.numPendingTests ?? 0) + (results?.numTodoTests ?? 0);
  // A run that failed without a failed test (a file that does not load, an unhandled rejection) counts as one failure.
  const failures = results?.numFailedTests ?? 0;
  failed += failures === 0 && code !== 0 ? 1 : failures;
}
rmSync(folder, { recursive: true, force: true });
say(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
