import { writeSync } from "node:fs";
import { CRASH_POINTS, type CrashPoint, type CrashPoints } from "@holdfast/runtime/ports";
import { z } from "zod";

/** One place on the way of a process, and what happens to it there. Steps are passed one after the other. */
export const FaultStep = z.object({
  point: z.enum(CRASH_POINTS),
  /** Counts only when the detail of the point contains this. */
  match: z.string().default(""),
  /** Which of those occasions. */
  nth: z.int().min(1).default(1),
  /**
   * `freeze`: SIGSTOP, until somebody else sends SIGCONT. `hang`: what came here never goes on, everything else does.
   * `pass`: nothing, only the next step is looked for from here on.
   */
  act: z.enum(["kill", "freeze", "hang", "pass"]),
});
export type FaultStep = z.infer<typeof FaultStep>;
/** As a test writes it. */
export type FaultPlan = readonly z.input<typeof FaultStep>[];

/** What a process says on standard output right before it stops itself. */
export const Frozen = z.object({ frozen: z.enum(CRASH_POINTS), detail: z.string() });
export type Frozen = z.infer<typeof Frozen>;

/** What a process under test is told on its standard input, one JSON line each: `arm` steps behind those that wait, or instead of them. */
const FaultCommand = z.object({ arm: z.array(FaultStep), instead: z.boolean().default(false) });

/** Crash points that are lethal, or stop the process right where it is: nothing of it runs between the point and what comes after it. */
export class FaultPoints implements CrashPoints {
  readonly #ahead: FaultStep[] = [];
  #hits = 0;

  /** @param plan  steps to be passed one after the other, behind those that wait already */
  arm(plan: FaultPlan): void {
    this.#ahead.push(...plan.map((step) => FaultStep.parse(step)));
  }

  /** Takes one line of standard input. */
  tell(line: string): void {
    const { arm, instead } = FaultCommand.parse(JSON.parse(line));
    if (instead) {
      this.#ahead.length = 0;
      this.#hits = 0;
    }
    this.#ahead.push(...arm);
  }

  reach(point: CrashPoint, detail: string): void | Promise<void> {
    const next = this.#ahead[0];
    if (next?.point !== point || !detail.includes(next.match)) return;
    this.#hits += 1;
    if (this.#hits < next.nth) return;
    this.#hits = 0;
    this.#ahead.shift();
    if (next.act === "kill") process.kill(process.pid, "SIGKILL");
    if (next.act === "hang") return new Promise(() => undefined);
    if (next.act !== "freeze") return;
    writeSync(1, `${JSON.stringify({ frozen: point, detail } satisfies Frozen)}\n`);
    process.kill(process.pid, "SIGSTOP");
  }
}
