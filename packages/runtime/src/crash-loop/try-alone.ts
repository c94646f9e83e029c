import { RuntimeFault } from "@holdfast/protocol";
import type { CellParts } from "../cell-parts.ts";
import type { MailboxItem } from "../mailbox.ts";
import { nameOf } from "../quarantine/cell-quarantine.ts";
import type { PartitionTrial } from "./partition-trial.ts";

/** A job that has not taken its node down within this time goes on beside others, ms. */
const JOB_WATCHED_MS = 2000;

/** Works an item off alone. @returns false when it must be tried again; `setAside` when it was not tried: it has taken down too many nodes */
export async function tryAlone(
  { key, quarantine }: CellParts,
  trial: PartitionTrial,
  item: MailboxItem,
  work: () => Promise<boolean>,
): Promise<boolean | "setAside"> {
  const what = nameOf(item);
  const judged = await trial.run(key, what, work);
  if (judged.kind === "survived") return judged.value;
  if (!(await quarantine.condemn(item, judged.attempts))) return false;
  await trial.acquit(key, what);
  return "setAside";
}

/** Runs a job alone. @throws RuntimeFault HF-3102 instead, when it has taken down too many nodes: that is its outcome */
export const jobAlone =
  (trial: PartitionTrial, actorKey: string, jobKey: string) =>
  async <T>(work: () => Promise<T>): Promise<T> => {
    const what = `job ${jobKey}`;
    const judged = await trial.run(actorKey, what, work, JOB_WATCHED_MS);
    if (judged.kind === "survived") return judged.value;
    await trial.acquit(actorKey, what);
    throw new RuntimeFault(
      "HF-3102",
      `Job ${jobKey} of ${actorKey}: ${judged.attempts.length} nodes ended while it ran alone. Deploy a build that survives it, then ask again.`,
    );
  };
