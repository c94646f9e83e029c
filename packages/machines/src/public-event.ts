import type { EventKind, PlainEvent } from "@holdfast/protocol";
import { z } from "zod";
import { presentFields } from "./present-fields.ts";

/** A lifecycle event as services see it: where it is published (`name`: the tokens after the kind), and what it says. */
export interface PublicEvent {
  readonly kind: EventKind;
  readonly name: readonly string[];
  /** CloudEvents type. */
  readonly type: string;
  readonly data: Readonly<Record<string, string>>;
}

/** Ids that the shell knows of the actor which announces something. */
export interface AnnouncerIds {
  /** Id of the actor. */
  readonly id: string;
}

// Everything that may leave. A field that is not listed here is dropped, so that no content slips out by a later change.
const Announced = z.object({
  agent: z.string().optional(),
  callId: z.string().optional(),
  cause: z.string().optional(),
  conversationId: z.string().optional(),
  waitId: z.string().optional(),
  assignee: z.string().optional(),
  by: z.string().optional(),
  scope: z.string().optional(),
  fenceId: z.string().optional(),
});

/**
 * The public event for something that a machine announced.
 *
 * Subjects: `task.<agent>.<taskId>.<event>`, `conversation.<agent>.<id>.<event>`, `wait.<waitId>.<event>`, `wallet.<walletId>.<event>`.
 *
 * @param type  type of the actor
 * @returns undefined when the event is not one of those the machines of this package announce
 */
export function publicEventOf(type: string, emitted: PlainEvent, ids: AnnouncerIds): PublicEvent | undefined {
  const [, kind, event] = /^(task|conversation|wait|wallet)([A-Z][A-Za-z]*)$/.exec(emitted.type) ?? [];
  const parsed = Announced.safeParse(emitted);
  if (event === undefined || !parsed.success) return undefined;
  const token = event.charAt(0).toLowerCase() + event.slice(1);
  const { agent, waitId } = parsed.data;
  const data = presentFields(parsed.data);
  const said = (name: readonly string[], own: Readonly<Record<string, string>>) => ({
    name: [...name, token],
    type: `holdfast.${kind ?? ""}.${token}`,
    data: { ...data, ...own },
  });
  if (kind === "task" && type === "task" && agent !== undefined) {
    return { kind, ...said([agent, ids.id], { taskId: ids.id }) };
  }
  if (kind === "conversation" && type === "conversation" && agent !== undefined) {
    return { kind, ...said([agent, ids.id], { conversationId: ids.id }) };
  }
  if (kind === "wallet" && type === "wallet") return { kind, ...said([ids.id], { walletId: ids.id }) };
  if (kind === "wait" && waitId !== undefined) {
    const own = type === "conversation" ? { conversationId: ids.id } : {};
    return type === "ownerWait" || type === "conversation" ? { kind, ...said([waitId], own) } : undefined;
  }
  return undefined;
}
