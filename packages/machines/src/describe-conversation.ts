import type { ConversationContext } from "./conversation-context.ts";

interface Description {
  readonly title?: ConversationContext["title"];
  readonly tags?: ConversationContext["tags"] | undefined;
}

/** What an event says of title and tags: only what is given replaces anything. */
export const descriptionOf = ({ title, tags }: Description): Partial<Pick<ConversationContext, "title" | "tags">> => ({
  ...(title !== undefined && { title }),
  ...(tags !== undefined && { tags }),
});

/** Whether a description says anything that is not so already. */
export function isOtherDescription(context: Description, { title, tags }: Description): boolean {
  return (title !== undefined && title !== context.title) || (tags !== undefined && text(tags) !== text(context.tags));
}

const text = (tags: Description["tags"]): string =>
  JSON.stringify(Object.entries(tags ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1)));
