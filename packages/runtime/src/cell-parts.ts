import type { ActorRecord } from "@holdfast/protocol";
import { CellChildren } from "./cell-children.ts";
import type { CellHost, NodeServices, ServedType } from "./cell-host.ts";
import { ambiguousItem, failedItem, hostItem } from "./cell-items.ts";
import { CellMail } from "./cell-mail.ts";
import { createOutbox } from "./cell-outbox.ts";
import { CellStepper } from "./cell-stepper.ts";
import { storeMark, type CellStores } from "./cell-stores.ts";
import { Mailbox, type MailboxItem } from "./mailbox.ts";
import { CellQuarantine } from "./quarantine/cell-quarantine.ts";
import { RecordHolder } from "./record-holder.ts";

/** Where an actor lives, and as what. */
export interface CellPlace {
  readonly key: string;
  readonly services: NodeServices;
  readonly host: CellHost;
  readonly served: ServedType;
}

/** What one actor in memory is made of. */
export interface CellParts extends CellPlace {
  readonly mailbox: Mailbox;
  readonly mail: CellMail;
  readonly quarantine: CellQuarantine;
  readonly children: CellChildren;
  readonly stores: CellStores;
  readonly stepper: CellStepper;
}

/** What the parts tell the loop of their actor. */
export interface CellCallbacks {
  readonly enqueue: (item: MailboxItem) => void;
  /** Something of its outbox was acknowledged. */
  readonly acked: () => void;
  /** Its copy in memory is no longer what is stored. */
  readonly forget: () => void;
}

/** Wires the parts of one actor. */
export function createCellParts(place: CellPlace, { enqueue, acked, forget }: CellCallbacks): CellParts {
  const { key, services, host, served } = place;
  const holder = new RecordHolder(key, services, host, served);
  const record = (): ActorRecord | undefined => holder.record;
  const dispatcher = createOutbox({ ...place, record, acked, enqueue });
  const stores = { services, served, holder, dispatcher };
  const settle = (make: (current: ActorRecord) => MailboxItem): void => {
    const current = record();
    if (current !== undefined) enqueue(make(current));
  };
  const children = new CellChildren({
    ...place,
    record,
    whenJournaled: (rev) => dispatcher.whenJournaled(rev),
    mark: async (childId, attempt) => {
      const isStored = await storeMark(stores, childId, attempt);
      if (!isStored) forget();
      return isStored;
    },
    fromHost: (childKey, event) => enqueue(hostItem(childKey, event, record())),
    settleAmbiguous: (childId, entry) => settle((current) => ambiguousItem(current, childId, entry)),
    settleFailed: (childId, entry, fault) => settle((current) => failedItem(current, childId, entry.key, fault)),
  });
  const mail = new CellMail(key, services, host);
  return {
    ...place,
    mailbox: new Mailbox(key, services.log, services.flow.memory, served.definition.limits),
    mail,
    quarantine: new CellQuarantine(key, services, host, mail),
    children,
    stores,
    stepper: new CellStepper({ key, host, stores, children, mail }),
  };
}
