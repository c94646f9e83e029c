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

/**
 * Groups, one after the other; the runs of a group side by side. Contracts mostly wait for their server, which leaves the cores to the unit
 * tests; real processes that are killed must not fight over them with anybody.
 */
async function plannedRuns(): Promise<readonly (readonly Run[])[]> {
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
  return [[plain("unit"), ...contracts], [plain("architecture")], [plain("integration")]];
}

/** @param isAlone  its lines are shown as they come; of several they are shown when it has ended */
function runProject({ title, project, env }: Run, report: string, isAlone: boolean): Promise<number> {
  const args = ["run", "--project", project, "--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  return new Promise((resolve) => {
    if (isAlone) say(`── ${title}`);
    const child = spawn(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), ...args], {
      cwd: root,
      stdio: ["ignore", isAlone ? "inherit" : "pipe", isAlone ? "inherit" : "pipe"],
      env: { ...process.env, ...env },
    });
    const lines: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => lines.push(chunk));
    child.once("close", (code) => {
      if (!isAlone) say(`── ${title}`);
      process.stdout.write(Buffer.concat(lines));
      resolve(code ?? 1);
    });
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
for (const [index, group] of (await plannedRuns()).entries()) {
  const run = async (each: Run, place: number): Promise<void> => {
    const report = join(folder, `${index}-${place}.json`);
    const code = await runProject(each, report, group.length === 1);
    const results = readResults(report);
    passed += results?.numPassedTests ?? 0;
    skipped += (results?.numPendingTests ?? 0) + (results?.numTodoTests ?? 0);
    // A run that failed without a failed test (a file that does not load, an unhandled rejection) counts as one failure.
    const failures = results?.numFailedTests ?? 0;
    failed += failures === 0 && code !== 0 ? 1 : failures;
  };
  await Promise.all(group.map(run));
}
rmSync(folder, { recursive: true, force: true });
say(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
