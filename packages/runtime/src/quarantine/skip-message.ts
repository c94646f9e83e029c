import { RuntimeFault } from "@holdfast/protocol";
import { errorEvent } from "../cell-items.ts";
import type { CellMail } from "../cell-mail.ts";
import type { CellPlace } from "../cell-parts.ts";
import { passOverMessage, type CellStores } from "../cell-stores.ts";
import type { CellStepper } from "../cell-stepper.ts";
import type { InboxMessage } from "../ports/index.ts";
import type { CellQuarantine } from "./cell-quarantine.ts";

/** The parts of a cell that deal with messages. */
export interface SkipParts {
  readonly stores: CellStores;
  readonly stepper: CellStepper;
  readonly mail: CellMail;
  readonly quarantine: CellQuarantine;
  readonly place: CellPlace;
  /** Offers again what was set aside. */
  readonly reoffer: () => Promise<boolean>;
}

/**
 * Passes over a message as an operator wants it. The rest of its link goes on; an outcome becomes the error of its child, a start the error
 * of its parent's child: somebody waits for those.
 * @returns false when it must be tried again
 */
export async function skipMessage(parts: SkipParts, message: InboxMessage, isReoffered: boolean): Promise<boolean> {
  const { mail, quarantine, reoffer } = parts;
  if (!(await passOver(parts, message))) return quarantine.skipLater(message);
  await mail.finish(message, isReoffered);
  await reoffer().catch(() => false); // the next one of its link may be among what waits
  return true;
}

async function passOver({ stores, stepper, mail }: SkipParts, message: InboxMessage): Promise<boolean> {
  const { key, messageId } = message;
  const fault = new RuntimeFault("HF-3105", `${key}: an operator skipped message ${messageId}. Ask them why.`);
  const read = mail.read(message);
  const step = read instanceof RuntimeFault ? undefined : read.step;
  if (step?.kind === "start" && stores.holder.record === undefined) {
    return step.parent === undefined || mail.startFailed(step.parent, fault);
  }
  if (stores.holder.record === undefined) return true;
  if (step?.kind === "event") return passOverMessage(stores, step, "skipped");
  if (step?.kind !== "settled") return true;
  return (await stepper.apply({ ...step, event: errorEvent(step.childId, fault) })).kind === "done";
}
