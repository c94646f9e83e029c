import { z } from "zod";

/** Namespace: separates whole installations inside one NATS account. */
export const Namespace = z
  .string()
  .regex(/^[a-z][a-z0-9]{0,11}$/, "1 to 12 characters of a-z and 0-9, starting with a letter");
export type Namespace = z.infer<typeof Namespace>;

/** An id that a person or a service chooses. */
export const ExternalId = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "1 to 64 characters of A-Z, a-z, 0-9, _ and -");
export type ExternalId = z.infer<typeof ExternalId>;

/** The id token of any actor: an external id, or `<label>-<hash>` for a child. One NATS token, never dots. */
export const ActorId = z.string().regex(/^[A-Za-z0-9_-]{1,80}$/, "1 to 80 characters of A-Z, a-z, 0-9, _ and -");
export type ActorId = z.infer<typeof ActorId>;

/** Name of a kind of actor, e.g. `conversation`. Chosen by its author, stable for ever. */
export const ActorType = z
  .string()
  .regex(/^[a-z][A-Za-z0-9]{0,31}$/, "1 to 32 letters and digits, starting with a small letter");
export type ActorType = z.infer<typeof ActorType>;

/** `<pool>-<n>`. */
export const Partition = z.string().regex(/^[a-z][a-z0-9]{0,7}-(0|[1-9][0-9]{0,3})$/, "<pool>-<n>");
export type Partition = z.infer<typeof Partition>;

export const Pool = z
  .string()
  .regex(/^[a-z][a-z0-9]{0,7}$/, "1 to 8 characters of a-z and 0-9, starting with a letter");
export type Pool = z.infer<typeof Pool>;

/** `<inbox stream generation>:<sequence of the start message>`: tells two actors of the same key apart. */
export const Genesis = z.string().regex(/^[a-z0-9]{1,16}:[0-9]{1,16}$/, "<generation>:<sequence>");
export type Genesis = z.infer<typeof Genesis>;

/** `<partition>.<type>.<id>`: the address of an actor everywhere: KV key, end of its subjects, CLI, logs. */
export const ActorKey = z
  .string()
  .regex(
    /^[a-z][a-z0-9]{0,7}-(0|[1-9][0-9]{0,3})\.[a-z][A-Za-z0-9]{0,31}\.[A-Za-z0-9_-]{1,80}$/,
    "<partition>.<type>.<id>",
  );
export type ActorKey = z.infer<typeof ActorKey>;

/** Place of a runner: a sandbox, and the credentials it was given. One NATS token, also part of a user's name. */
export const Seat = z.string().regex(/^[A-Za-z0-9_]{1,32}$/, "1 to 32 characters of A-Z, a-z, 0-9 and _");
export type Seat = z.infer<typeof Seat>;

export const NodeName = z.string().regex(/^[A-Za-z0-9_-]{1,32}$/, "1 to 32 characters of A-Z, a-z, 0-9, _ and -");
export type NodeName = z.infer<typeof NodeName>;
