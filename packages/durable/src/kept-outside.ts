import {
  ALL_FIELDS,
  BLOB_THRESHOLD_BYTES,
  CHILD_INPUT_LIMIT_BYTES,
  type BlobFields,
  type PlainEvent,
} from "@holdfast/protocol";
import type { Spawned } from "./step-scope.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Names the fields of a payload that are kept outside of the record, so that what is left takes at most `limitBytes`.
 * A function of the content alone: the same decision names the same blobs, for ever (I4).
 * @returns undefined when all of it may stay
 */
export type KeepOutside = (fields: Fields, limitBytes: number) => BlobFields | undefined;

/** A payload without the fields that are kept outside, and their references. */
export interface Kept<T> {
  readonly rest: T;
  readonly blobs?: BlobFields;
}

/** @returns the very same object when all of it stays */
export function keep(payload: Fields, outside: KeepOutside | undefined): Kept<Fields> {
  const blobs = outside?.(payload, BLOB_THRESHOLD_BYTES);
  return blobs === undefined ? { rest: payload } : { rest: without(payload, blobs), blobs };
}

/** An event stays an event: its type is never kept outside. */
export function keepEvent(
  event: PlainEvent,
  outside: KeepOutside | undefined,
  limitBytes = BLOB_THRESHOLD_BYTES,
): Kept<PlainEvent> {
  if (outside === undefined) return { rest: event };
  const { type, ...fields } = event;
  const blobs = outside(fields, limitBytes);
  return blobs === undefined ? { rest: event } : { rest: { type, ...without(fields, blobs) }, blobs };
}

/** Children with the references of the inputs that are too large for the record of their parent (F27). */
export function withInputsOutside(spawned: readonly Spawned[], outside: KeepOutside | undefined): readonly Spawned[] {
  if (outside === undefined || spawned.length === 0) return spawned;
  return spawned.map((child) => {
    const blobs = child.input === undefined ? undefined : outside({ input: child.input }, CHILD_INPUT_LIMIT_BYTES);
    return blobs === undefined ? child : { ...child, blobs };
  });
}

function without(payload: Fields, blobs: BlobFields): Fields {
  const all = Object.hasOwn(blobs, ALL_FIELDS);
  return Object.fromEntries(Object.entries(payload).filter(([name]) => !all && !Object.hasOwn(blobs, name)));
}
