import type { ActorRecord } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import type { CellMail } from "../cell-mail.ts";
import type { ReadMessage } from "../message-reading.ts";
import type { InboxMessage } from "../ports/index.ts";
import { freshStartMs, judgeOldStart, unwantedStart } from "./wanted-start.ts";

/** F9: what an old start began may have ended, and left memory and store, long ago. @param record  what is there, if anything is */
export async function judgeStart(
  services: NodeServices,
  record: ActorRecord | undefined,
  key: string,
  { step, envelope }: ReadMessage,
): ReturnType<typeof judgeOldStart> {
  if (step.kind !== "start" || envelope.kind !== "start" || record !== undefined) return "wanted";
  const { parent } = step;
  const ageMs = services.time.nowMs() - (envelope.atMs ?? Number.POSITIVE_INFINITY);
  if (parent === undefined || ageMs < freshStartMs(services.settings)) return "wanted";
  return judgeOldStart(services, key, parent);
}

/** A start that must not begin anything any more goes; one of which nobody knows waits. */
export function keepOut(
  mail: CellMail,
  message: InboxMessage,
  isReoffered: boolean,
  verdict: "unwanted" | "unknown",
): Promise<boolean> {
  if (verdict === "unwanted") return mail.drop(message, isReoffered, unwantedStart(message.key));
  return mail.park(message, isReoffered, "its start is old, its parent unreadable");
}
