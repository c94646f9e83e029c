import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { join } from "node:path";
import { median } from "./measure-window.ts";

/** What figures depend on. */
export interface MachineFacts {
  readonly cpus: number;
  readonly model: string;
  readonly node: string;
  /** Undefined until a server was started. */
  readonly natsServer: string | undefined;
  /** Median of a 1 KiB append and fsync where the server stores, µs. */
  readonly fsyncUs: number | undefined;
  /** Processes that wanted to run in the last minute, before this run. */
  readonly loadBefore: number;
}

const FSYNCS = 64;

export function machineFacts(): MachineFacts {
  return {
    cpus: availableParallelism(),
    model: cpus()[0]?.model ?? "unknown",
    node: process.version,
    natsServer: undefined,
    fsyncUs: undefined,
    loadBefore: loadavg()[0] ?? 0,
  };
}

/** Median time of a 1 KiB append that reaches the disk, µs. */
export function measureFsyncUs(folder: string): number {
  const file = join(folder, "fsync-probe");
  const bytes = Buffer.alloc(1024, 1);
  const handle = openSync(file, "a");
  try {
    const times = Array.from({ length: FSYNCS }, () => {
      const startedMs = performance.now();
      writeSync(handle, bytes);
      fsyncSync(handle);
      return (performance.now() - startedMs) * 1000;
    });
    return Math.round(median(times));
  } finally {
    closeSync(handle);
    rmSync(file);
  }
}
