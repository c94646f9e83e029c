import { z } from "zod";

/** Node identity: name plus boot nonce. Another incarnation of the same name is a stranger. */
export const Incarnation = z.string().regex(/^[A-Za-z0-9_-]{1,32}:[a-z0-9]{8,32}$/, "<node>:<nonce>");
export type Incarnation = z.infer<typeof Incarnation>;

/** Name of the node of an incarnation. */
export const nodeOf = (incarnation: Incarnation): string => incarnation.slice(0, incarnation.indexOf(":"));
