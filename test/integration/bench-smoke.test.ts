import { spawn } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";

const cli = join(import.meta.dirname, "../bench/cli.ts");

const Machine = z.strictObject({
  cpus: z.number().int().min(1),
  model: z.string(),
  node: z.string().startsWith("v"),
  natsServer: z.string().optional(),
  fsyncUs: z.number().positive().optional(),
  loadBefore: z.number().nonnegative(),
});
const Comparison = z.strictObject({ rate: z.number().positive(), p50: z.number().positive() });
const TakeoverResult = z.strictObject({
  name: z.string(),
  class: z.enum(["F", "P"]),
  totalMs: z.number().positive(),
  fromClaimMs: z.number().positive(),
  detectMs: z.number().positive(),
  claimMs: z.number().nonnegative(),
  readMs: z.number().positive(),
  restoreMs: z.number().positive(),
  reissueMs: z.number(),
  scanned: z.number().int(),
  partitions: z.number().int(),
  totals: z.array(z.number()).min(1),
  cpuUs: z.strictObject({ node: z.number(), server: z.number() }).optional(),
  othersShare: z.number().optional(),
});
const Result = z.strictObject({
  name: z.string(),
  class: z.enum(["F", "P"]),
  perSecond: z.number().positive(),
  p50Ms: z.number().positive(),
  p99Ms: z.number().positive(),
  windows: z.array(z.number()).min(1),
  cpuUs: z.strictObject({ client: z.number(), node: z.number(), server: z.number() }).optional(),
  othersShare: z.number().optional(),
  overRaw: Comparison.optional(),
  overOwnRaw: Comparison.optional(),
});
const JudgedTarget = z.strictObject({
  name: z.string(),
  op: z.enum([">=", "<="]),
  target: z.number(),
  unit: z.enum(["x", "ms", "s"]),
  reached: z.number().nullable(),
  held: z.boolean(),
});
const lineOf = <T extends z.ZodType>(result: T) =>
  z.strictObject({
    bench: z.string(),
    pass: z.boolean(),
    machine: Machine,
    results: z.array(result),
    targets: z.array(JudgedTarget),
    error: z.string().optional(),
  });

/** Runs the bench as `npm run bench` does. @returns its exit code and the last line on its standard output */
async function runBench(args: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  const child = spawn(process.execPath, [cli, ...args], { stdio: ["ignore", "pipe", "pipe"], env });
  let output = "";
  let log = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (output += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (log += chunk));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  const last = output.trimEnd().split("\n").at(-1) ?? "";
  expect(last, log).toMatch(/^\{/);
  return { code, last: JSON.parse(last) as unknown, log };
}

async function bench(args: readonly string[], env?: NodeJS.ProcessEnv) {
  const { code, last, log } = await runBench(args, env);
  return { code, line: lineOf(Result).parse(last), log };
}

describe("the transition bench", () => {
  test("ends with one line that says what it measured, what it should reach and whether it did", async () => {
    const { code, line, log } = await bench(["transition", "--quick"]);

    expect(line.error, log).toBeUndefined();
    expect(line.bench).toBe("transition");
    expect(line.machine.natsServer).toMatch(/^\d+\.\d+\.\d+/);
    expect(line.machine.fsyncUs).toBeGreaterThan(0);
    expect(line.results.map((result) => `${result.name} ${result.class}`)).toEqual([
      "raw-1 P",
      "own-raw-1 P",
      "e2e-1 P",
      "raw-32 P",
      "own-raw-32 P",
      "e2e-32 P",
    ]);
    for (const { name, overRaw, overOwnRaw } of line.results) {
      const isCompared = overRaw !== undefined && overOwnRaw !== undefined;
      expect(isCompared, name).toBe(name.startsWith("e2e-"));
    }
    expect(line.targets.map(({ name, op, target }) => ({ name, op, target }))).toEqual([
      { name: "serial-p50-P", op: "<=", target: 6 },
      { name: "ratio-32-P", op: ">=", target: 0.2 },
    ]);
    for (const { op, target, reached, held } of line.targets) {
      expect(reached).toBeGreaterThan(0);
      expect(held).toBe(op === ">=" ? (reached ?? 0) >= target : (reached ?? Infinity) <= target);
    }
    expect(line.pass).toBe(line.targets.every(({ held }) => held));
    expect(code).toBe(line.pass ? 0 : 1);
  });

  test("ends with the same line when it cannot run, and with exit code 1", async () => {
    const env = { ...process.env, HOLDFAST_NATS_SERVER: "/nowhere/nats-server" };
    const { code, line } = await bench(["transition", "--quick"], env);

    expect(code).toBe(1);
    expect(line).toMatchObject({ bench: "transition", pass: false, results: [] });
    expect(line.error).toContain("HOLDFAST_NATS_SERVER");
    expect(line.targets.map(({ reached, held }) => ({ reached, held }))).toEqual([
      { reached: null, held: false },
      { reached: null, held: false },
    ]);
  });

  test("refuses a bench it does not know with a line that says how it is called", async () => {
    const { code, line } = await bench(["transitions"]);

    expect(code).toBe(1);
    expect(line).toMatchObject({ bench: "transitions", pass: false, results: [], targets: [] });
    expect(line.error).toContain("usage:");
  });
});

test("the wallet bench says what it measured, and that no reservation was lost", async () => {
  const { code, line, log } = await bench(["wallet", "--quick"]);

  expect(line.error, log).toBeUndefined();
  expect(line.results.map(({ name }) => name)).toEqual(["counter-30", "one-root-30", "all-roots-30"]);
  expect(line.targets.map(({ name, op, target }) => ({ name, op, target }))).toEqual([
    { name: "messages-one-wallet", op: ">=", target: 0.4 },
    { name: "reservations-all-roots", op: ">=", target: 1.5 },
  ]);
  for (const { reached } of line.targets) expect(reached).toBeGreaterThan(0);
  expect(code).toBe(line.pass ? 0 : 1);
});

describe("the takeover bench", () => {
  test("kills nodes on both stores, reads nothing but the live actors there, and prints its phases", async () => {
    const { code, last, log } = await runBench(["takeover", "--quick"]);
    const line = lineOf(TakeoverResult).parse(last);

    expect(line.error, log).toBeUndefined();
    expect(line).toMatchObject({ bench: "takeover", pass: true, targets: [] });
    expect(line.results.map(({ name }) => name)).toEqual(["live-100-sleepers-0", "live-100-sleepers-10000"]);
    for (const { partitions, scanned, totalMs, detectMs, fromClaimMs } of line.results) {
      expect(partitions).toBe(16);
      expect(scanned).toBe(100); // the checkpoint hides 5,000 sleepers of these partitions
      expect(Math.abs(totalMs - detectMs - fromClaimMs)).toBeLessThan(50);
    }
    expect(log).toMatch(/detect \d+ ms .*claim \d+ ms, read \d+ ms, restore \d+ ms, reissue -?\d+ ms/);
    expect(code).toBe(0);
  });
});
