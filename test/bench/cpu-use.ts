import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** Processor time, µs, used since some moment in the past. */
export interface CpuReading {
  readonly client: number;
  readonly node: number;
  readonly server: number;
  /** All processes of the machine. */
  readonly machine: number;
  readonly atMs: number;
}

/** Where the processor time of a window went. `othersShare`: part of the machine that processes outside this run took, 0 to 1. */
export interface CpuUse {
  readonly clientUs: number;
  readonly nodeUs: number;
  readonly serverUs: number;
  readonly othersShare: number;
}

/** The kernel counts in hundredths of a second everywhere Node runs. */
const US_PER_TICK = 10_000;

/** @returns undefined where there is no /proc */
export function readCpu(pids: { readonly node: number; readonly server: number }): CpuReading | undefined {
  try {
    const { user, system } = process.cpuUsage();
    return {
      client: user + system,
      node: processUs(pids.node),
      server: processUs(pids.server),
      machine: machineUs(),
      atMs: performance.now(),
    };
  } catch {
    return undefined; // another operating system: the figures are left out
  }
}

/** Use between two readings. @returns undefined when one of them is missing */
export function cpuBetween(before: CpuReading | undefined, after: CpuReading | undefined): CpuUse | undefined {
  if (before === undefined || after === undefined) return undefined;
  const clientUs = after.client - before.client;
  const nodeUs = after.node - before.node;
  const serverUs = after.server - before.server;
  const capacityUs = (after.atMs - before.atMs) * 1000 * availableParallelism();
  const othersUs = after.machine - before.machine - clientUs - nodeUs - serverUs;
  return { clientUs, nodeUs, serverUs, othersShare: Math.max(0, othersUs / capacityUs) };
}

function processUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The command name is in parentheses and may hold anything; user and system time are fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * US_PER_TICK;
}

function machineUs(): number {
  const [, ...ticks] = (readFileSync("/proc/stat", "utf8").split("\n")[0] ?? "").trim().split(/\s+/);
  const [user, nice, system, , , irq, softIrq, steal] = ticks.map(Number);
  return [user, nice, system, irq, softIrq, steal].reduce<number>((sum, value) => sum + (value ?? 0), 0) * US_PER_TICK;
}
