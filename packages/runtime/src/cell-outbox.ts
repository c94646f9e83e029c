import type { ActorRecord } from "@holdfast/protocol";
import { pause } from "./abortable-pause.ts";
import type { CellHost, NodeServices, ServedType } from "./cell-host.ts";
import { undeliverableItem } from "./cell-items.ts";
import { createSender } from "./cell-sending.ts";
import type { MailboxItem } from "./mailbox.ts";
import { OutboxDispatcher } from "./outbox-dispatcher.ts";

export interface CellOutboxOptions {
  readonly key: string;
  readonly services: NodeServices;
  readonly host: CellHost;
  readonly served: ServedType;
  /** The record as last committed. */
  readonly record: () => ActorRecord | undefined;
  readonly acked: () => void;
  /** Takes what becomes of a child that could not be started. */
  readonly enqueue: (item: MailboxItem) => void;
}

/** The outbox of one actor, with the ways of its node out into the world. */
export function createOutbox(options: CellOutboxOptions): OutboxDispatcher {
  const { key, services, host, served, record, acked, enqueue } = options;
  const { telemetry } = services;
  return new OutboxDispatcher({
    send: createSender(services, served, record, host.signal, async (effect, reason) => {
      telemetry.error("outbox.undeliverable", { key, effect: effect.id, kind: effect.kind, reason });
      const item = undeliverableItem(record(), effect, reason);
      if (item !== undefined) enqueue(item);
    }),
    pause: (ms) => pause(services.clock, ms, host.signal),
    acked,
    linger: (flush) => services.journalLinger.wait(flush),
    failing: (effect, reason, tries) => {
      if (tries !== 3) return;
      telemetry.warn("outbox.delayed", { key, effect: effect.id, kind: effect.kind, reason });
    },
  });
}
