import { parseActorKey } from "@holdfast/protocol";
import { pause } from "./abortable-pause.ts";
import type { CellHost, NodeServices } from "./cell-host.ts";
import { encodeParked } from "./parked-message.ts";
import type { InboxMessage } from "./ports/index.ts";

/** A type this build does not serve: its messages wait, parked, for a node that does. */
export async function parkUnserved(services: NodeServices, host: CellHost, message: InboxMessage): Promise<void> {
  const { codec, log, telemetry, clock } = services;
  const { key, seq } = message;
  const bytes = encodeParked(codec, message);
  for (let tries = 0; !host.signal.aborted; tries += 1) {
    const outcome = await log.publish("parked", key, bytes, `parked:${message.messageId}`);
    if (outcome.kind === "accepted") break;
    await pause(clock, Math.min(2000, 50 * 2 ** Math.min(tries, 6)), host.signal).catch(() => undefined);
  }
  if (host.signal.aborted) return; // perhaps not stored: its new owner reads it again
  host.parked(key);
  reportUnserved(host, key);
  host.count("parked");
  telemetry.error("message.unknown-type", { key, seq });
  host.considered(message);
}

/** The lease says what is missing: a node that serves the type then asks for the partition. */
export function reportUnserved(host: CellHost, key: string): void {
  const { type } = parseActorKey(key);
  host.report(key, {
    kind: "unserved",
    why: `this node does not serve type ${type}; a node that does takes it over`,
  });
  void host.listNeeds({ formats: [], machines: { [type]: "" } });
}
