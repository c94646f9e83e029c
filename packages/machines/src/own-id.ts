import { ActorKey, parseActorKey } from "@holdfast/protocol";

/**
 * Id under which an actor is known outside: of a durable actor that of its key, which XState calls the session; in memory,
 * where there is no key, its name among its siblings.
 */
export function ownIdOf(self: { readonly id: string; readonly sessionId: string }): string {
  return ActorKey.safeParse(self.sessionId).success ? parseActorKey(self.sessionId).id : self.id;
}
