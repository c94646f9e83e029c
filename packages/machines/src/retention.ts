import { z } from "zod";
import type { ListFields } from "./list-fields.ts";

const Ended = z.looseObject({ isDeleted: z.boolean().optional(), forks: z.array(z.string()).optional() });

/** What is to become of an actor that has ended: its content goes soon when it was deleted, and not before its forks. */
export function retentionOf(
  type: string,
  context: unknown,
): { readonly erase?: boolean; readonly sharedWith?: readonly string[] } {
  const ended = type === "conversation" ? Ended.safeParse(context).data : undefined;
  return { erase: ended?.isDeleted === true, sharedWith: ended?.forks ?? [] };
}

const KEPT_FIELDS = ["status", "agent", "task", "waitingOn", "cause", "assignee", "forkOf", "aside"];

/** What lists still show of an actor that was deleted with the conversation it worked for: what a deleted conversation shows. */
export const erasedFieldsOf = (fields: ListFields): ListFields => ({
  ...Object.fromEntries(Object.entries(fields).filter(([field]) => KEPT_FIELDS.includes(field))),
  deleted: true,
});
