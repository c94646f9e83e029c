import type { JournalEntry } from "@holdfast/protocol";
import { settledChildOf, type FamilyMember } from "./family-order.ts";

/**
 * What an entry of a family is. `message`: something was said to the member, by a person, a service or another actor. `result`: the outcome of
 * a child or a job was applied. `wait`: a step of a question to a person. `transition`: any other step. `absent`: a member that was started
 * and has neither a record nor a journal: retention removed them, or it could never be started.
 */
export type FamilyEntry =
  | {
      readonly kind: "message" | "result" | "wait" | "transition";
      readonly key: string;
      readonly parent: FamilyMember["parent"];
      /** As the journal has it: large fields of its event stay references, which `read.eventOf` fetches. */
      readonly entry: JournalEntry;
      /** The position behind it. Of the entry handed over last; read it before the next one is asked for. */
      readonly cursor: string;
    }
  | {
      readonly kind: "absent";
      readonly key: string;
      readonly parent: FamilyMember["parent"];
      readonly cursor: string;
    };

/** Actor type of questions. */
const WAIT_TYPE = "ownerWait";

export function kindOf(entry: JournalEntry): Exclude<FamilyEntry["kind"], "absent"> {
  if (entry.key.split(".")[1] === WAIT_TYPE) return "wait";
  if (settledChildOf(entry) !== undefined) return "result";
  return entry.cause.kind === "event" && (entry.principal !== undefined || entry.sender !== undefined)
    ? "message"
    : "transition";
}
