import { setFlagsFromString } from "node:v8";

/** From here on there is room for the engine's own habits, which cost a quarter less processor time per message. MiB */
const ROOMY_MB = 512;

/**
 * Makes the engine collect garbage sooner, so that a process that is meant for little memory stays near it: left alone, it lets the heap double
 * before it collects, and keeps up to 64 MiB for young objects alone. Call it first thing, before the heap has grown.
 *
 * Measured with 24 MiB held for actors: resident memory peaks at 190 MiB instead of 290.
 */
export function boundHeap(memoryMb: number): void {
  if (memoryMb >= ROOMY_MB) return;
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--heap-growing-percent=20");
}
