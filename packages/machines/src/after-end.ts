import { ConversationContext } from "./conversation-context.ts";
import { ConversationEvent } from "./conversation-event.ts";
import { judgeFork } from "./judge-fork.ts";

/** A conversation without what it held: what is left says who it was. */
export const withoutContent = (context: ConversationContext): ConversationContext => ({
  ...context,
  isDeleted: true,
  title: undefined,
  tags: {},
  lastText: "",
  agent: { ...context.agent, instructions: "" },
});

/**
 * What an ended actor still notes of an event from outside: a conversation, that it is about to be forked, and that it was deleted.
 *
 * @returns its context with that; undefined when there is nothing to note
 */
export function afterEndOf(type: string, context: unknown, event: { readonly type: string }): unknown {
  if (type !== "conversation") return undefined;
  const { data: told } = ConversationEvent.safeParse(event);
  const { data: known } = ConversationContext.safeParse(context);
  if (told === undefined || known === undefined || known.isDeleted === true) return undefined;
  if (told.type === "delete") return withoutContent(known);
  if (told.type !== "forked" || judgeFork(known.forks ?? [], told.fork).kind !== "ok") return undefined;
  return { ...known, forks: [...(known.forks ?? []), told.fork] };
}
