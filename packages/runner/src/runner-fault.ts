import { RuntimeFault } from "@holdfast/protocol";

/** Anything a runner, or a host that speaks to one, throws. */
export class RunnerFault extends RuntimeFault {}

/** The two sides disagree about the order of envelopes: going on would lose or invent some. */
export const orderFault = (subject: string, problem: string, facts: Readonly<Record<string, number | string>>) =>
  new RunnerFault(
    "HF-9002",
    `${subject}: ${problem}. Nothing was applied. Attach again from the last envelope that was stored; if it comes back, keep the journal and report it.`,
    { facts },
  );
