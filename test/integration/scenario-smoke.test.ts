import { spawn } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ResultLine } from "../scenarios/scenario.ts";

const CLI = join(import.meta.dirname, "../scenarios/cli.ts");

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `npm run scenario -- …` as it is. */
function scenario(...args: readonly string[]): Promise<Ran> {
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (stderr += chunk));
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, stdout, stderr })));
}

/** The lines of a run; nothing else may be on standard output. */
const linesOf = ({ stdout }: Ran): readonly ResultLine[] =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => ResultLine.parse(JSON.parse(line)));

/** Names of the rows that do not hold. */
const failed = ({ rows }: ResultLine): readonly string[] => Object.keys(rows).filter((row) => rows[row] !== true);

describe("a scenario prints one line and passes", () => {
  test("delegation-restart, one variant with short leases", async () => {
    const ran = await scenario("delegation-restart", "--quick", "--variant", "takeover", "--seed", "7");
    const [line, ...more] = linesOf(ran);
    expect(more).toEqual([]);
    expect(line, ran.stderr).toMatchObject({
      scenario: "delegation-restart",
      pass: true,
      seed: 7,
      rows: { takeover: true },
      variants: { takeover: { decided: 2, created: 2, applied: 2, duplicates: 0, lost: 0 } },
    });
    expect(Object.keys(line?.leftOut ?? {}).toSorted()).toEqual([
      "before-parent-commit",
      "double-restart",
      "one-finished",
      "restart",
    ]);
    expect(ran.code).toBe(0);
  });

  test("fencing: an owner stopped before a create, and two processes with one name", async () => {
    const ran = await scenario("fencing", "--quick");
    const [line, ...more] = linesOf(ran);
    expect(more).toEqual([]);
    expect(line, ran.stderr).toMatchObject({ scenario: "fencing", rows: { "before-create": true, "same-name": true } });
    expect(ran.code).toBe(0);
  });

  test("rolling-restart, each node once: nothing lost, doubled or ambiguous, whatever the machine's load does to the times", async () => {
    const [line] = linesOf(await scenario("rolling-restart", "--quick"));
    const timed = ["answersInTime", "handedOverWithoutLeaseTime"];
    expect(line === undefined ? ["no line"] : failed(line).filter((row) => !timed.includes(row))).toEqual([]);
    expect(line).toMatchObject({ restarts: 3, lost: 0, duplicated: 0, ambiguous: 0 });
  });

  test("openhands, one row across the death of its node, with short leases", async () => {
    const ran = await scenario("openhands", "--quick", "--variant", "task-result-once", "--seed", "5");
    const [line, ...more] = linesOf(ran);
    expect(more).toEqual([]);
    expect(line, ran.stderr).toMatchObject({ scenario: "openhands", pass: true, rows: { "task-result-once": true } });
    expect(line).toMatchObject({
      evidence: { "task-result-once": expect.arrayContaining([expect.stringContaining(".conversation.")]) },
    });
    expect(ran.code).toBe(0);
  });

  test("main-job, on a few documents", async () => {
    const ran = await scenario("main-job", "--quick");
    const [line, ...more] = linesOf(ran);
    expect(more).toEqual([]);
    expect(line === undefined ? ["no line"] : failed(line), ran.stderr).toEqual([]);
    expect(line).toMatchObject({ scenario: "main-job", pass: true, seed: 1, documents: 3 });
    expect(ran.code).toBe(0);
  });
});

describe("more commands than a node can work off at once", () => {
  test("flow-control: nothing grows with them, and nothing is lost", async () => {
    const ran = await scenario("flow-control", "--quick", "--seed", "3");
    const [line, ...more] = linesOf(ran);
    expect(more).toEqual([]);
    expect(line === undefined ? ["no line"] : failed(line), ran.stderr).toEqual([]);
    expect(line).toMatchObject({ scenario: "flow-control", pass: true, seed: 3 });
    expect(Object.keys(line?.rows ?? {})).toEqual(
      expect.arrayContaining([
        "withinConcurrency",
        "withinMemory",
        "noTakeoverUnderLoad",
        "busyIsTyped",
        "allAppliedOnce",
      ]),
    );
    expect(ran.code).toBe(0);
  });
});

describe("a command that does not fit ends in a line, too", () => {
  test.each([
    ["an unknown scenario", ["nothing"]],
    ["no scenario", []],
    ["an unknown variant", ["delegation-restart", "--variant", "nothing"]],
    ["a seed that is none", ["main-job", "--seed", "x"]],
    ["an unknown option", ["main-job", "--sed", "1"]],
  ])("%s", async (_what, args) => {
    const ran = await scenario(...args);
    expect(linesOf(ran)).toMatchObject([{ pass: false, rows: { known: false } }]);
    expect(ran.code).toBe(1);
  });
});
