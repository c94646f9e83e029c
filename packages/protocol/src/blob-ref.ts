import { z } from "zod";

/**
 * A payload that is kept outside of what names it: content-addressed, stored before the commit that names it.
 * `kind` says how to read its bytes; `value`: one value in msgpack with tagged values.
 */
export const BlobRef = z.object({
  kind: z.literal("value"),
  /** Bytes. */
  size: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type BlobRef = z.infer<typeof BlobRef>;

/**
 * Fields that are kept outside, by name. Beside the payload and never inside it, so that no content of a message passes for a reference.
 * The name `*` stands for an object with all fields but `type`: of a payload that has too many for one blob each.
 */
export const BlobFields = z.record(z.string(), BlobRef);
export type BlobFields = z.infer<typeof BlobFields>;

export const ALL_FIELDS = "*";

/** A payload with the fields back that were kept outside. */
export function withBlobFields<T extends object>(payload: T, values: Readonly<Record<string, unknown>>): T {
  const { [ALL_FIELDS]: all, ...single } = values;
  return { ...payload, ...(typeof all === "object" ? all : {}), ...single };
}
