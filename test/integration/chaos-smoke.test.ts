import { spawn } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ResultLine } from "../scenarios/scenario.ts";

const CLI = join(import.meta.dirname, "../chaos/cli.ts");

/** Runs `npm run chaos -- …` as it is. @returns its line, and its exit status */
async function chaos(...args: readonly string[]): Promise<{ readonly line: ResultLine; readonly code: number | null }> {
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (stdout += chunk));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  const lines = stdout.trimEnd().split("\n");
  expect(lines).toHaveLength(1);
  return { line: ResultLine.parse(JSON.parse(lines[0] ?? "")), code };
}

const red = ({ rows }: ResultLine): readonly string[] => Object.keys(rows).filter((row) => rows[row] !== true);

describe("chaos", () => {
  test(
    "a bounded run: a mixed workload under seeded misfortune leaves nothing lost, doubled or stuck",
    { timeout: 300_000 },
    async () => {
      const { line, code } = await chaos("--minutes", "0.2", "--seed", "11", "--json");
      expect(red(line), JSON.stringify(line)).toEqual([]);
      expect(line).toMatchObject({ scenario: "chaos", pass: true, seed: 11, minutes: 0.2 });
      expect(code).toBe(0);
    },
  );

  test("a build that forgets which messages it took is found", { timeout: 120_000 }, async () => {
    const { line, code } = await chaos("--break", "marks", "--json");
    expect(red(line), JSON.stringify(line)).toContain("acceptedAppliedOnce");
    expect(line).toMatchObject({ pass: false, break: "marks" });
    expect(code).toBe(1);
  });

  test.each([
    ["a break that there is not", ["--break", "everything"]],
    ["a name that there is not", ["nothing"]],
    ["no minutes", ["--minutes", "none"]],
    ["an unknown option", ["--minute", "1"]],
  ])("%s ends in a line, too", async (_what, args) => {
    const { line, code } = await chaos(...args, "--json");
    expect(line).toMatchObject({ pass: false, rows: { completed: false } });
    expect(code).toBe(1);
  });
});
