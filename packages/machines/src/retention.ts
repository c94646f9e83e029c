import { z } from "zod";

const Ended = z.looseObject({ isDeleted: z.boolean().optional(), forks: z.array(z.string()).optional() });

/** What is to become of an actor that has ended: its content goes soon when it was deleted, and not before its forks. */
export function retentionOf(
  type: string,
  context: unknown,
): { readonly erase?: boolean; readonly sharedWith?: readonly string[] } {
  const ended = type === "conversation" ? Ended.safeParse(context).data : undefined;
  return { erase: ended?.isDeleted === true, sharedWith: ended?.forks ?? [] };
}
