/** Record size from which a warning is logged, bytes. */
export const RECORD_SOFT_LIMIT_BYTES = 64 * 1024;
/** Record size that refuses the message which would cause it, bytes. */
export const RECORD_HARD_LIMIT_BYTES = 512 * 1024;
/** Payloads above this become content-addressed blobs, bytes. */
export const BLOB_THRESHOLD_BYTES = 128 * 1024;
/** Child input above this becomes a blob, bytes. */
export const CHILD_INPUT_LIMIT_BYTES = 1024;
/** Child actors one commit may start. */
export const MAX_STARTS_PER_COMMIT = 64;
/** Unacknowledged effects above which an actor takes no more messages. */
export const MAX_CARRIED_EFFECTS = 64;
/** Senders without a parent-child relation one record may know. */
export const MAX_FOREIGN_LINKS = 256;
/** Ids of outside messages a record remembers; older ones are covered by the idempotency bucket. */
export const MAX_REMEMBERED_MESSAGE_IDS = 64;
/** Messages and bytes one actor may have waiting in memory. */
export const MAX_MAILBOX_MESSAGES = 64;
export const MAX_MAILBOX_BYTES = 1024 * 1024;
/** Characters in the type of an event from outside. */
export const MAX_OUTSIDE_EVENT_TYPE = 256;
