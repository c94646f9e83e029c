import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** One process that has something to do with a folder. */
export interface FoundProcess {
  readonly pid: number;
  readonly command: string;
}

/** Whether this machine can tell: it needs /proc. */
export const canListProcesses = (): boolean => existsSync("/proc/self/fd");

/** Processes that name a folder on their command line or in their environment, or have a file below it open. This process is left out. */
export function processesOf(folder: string): readonly FoundProcess[] {
  const pids = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  return pids
    .filter((pid) => pid !== process.pid && isAbout(pid, folder))
    .map((pid) => ({ pid, command: read(pid, "cmdline").replaceAll("\0", " ").trim() }));
}

function isAbout(pid: number, folder: string): boolean {
  if (read(pid, "cmdline").includes(folder) || read(pid, "environ").includes(folder)) return true;
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => linkOf(join(`/proc/${pid}/fd`, fd)).startsWith(folder));
  } catch {
    return false; // It ended, or belongs to somebody else.
  }
}

function read(pid: number, file: "cmdline" | "environ"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
