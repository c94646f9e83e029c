import type { Codec } from "@holdfast/codec";
import { blobBucket, type BlobBucket, type Link } from "@holdfast/jetstream";
import {
  RuntimeFault,
  sha256Hex,
  withBlobFields,
  type BlobFields,
  type BlobRef,
  type Subjects,
} from "@holdfast/protocol";

const KEPT_BYTES = 4 * 1024 * 1024;

/**
 * Payloads that are kept outside of records and journals.
 *
 * Owns: the bytes read lately. A blob is checked against its name and size, and refused when it does not fit (HF-3007).
 */
export class PayloadReader {
  readonly #codec: Pick<Codec, "decodeValue">;
  readonly #bucket: BlobBucket;
  /** Oldest first. */
  readonly #kept = new Map<string, Uint8Array>();
  #keptBytes = 0;

  constructor(link: Link, codec: Pick<Codec, "decodeValue">, subjects: Subjects) {
    this.#codec = codec;
    this.#bucket = blobBucket(link, subjects.blobsBucket);
  }

  /**
   * @returns the payload itself when nothing of it is kept outside
   * @throws RuntimeFault HF-3007 when a blob is missing or damaged, HF-4008 when nobody answered
   */
  async whole<T extends object>(payload: T, blobs: BlobFields | undefined): Promise<T> {
    if (blobs === undefined) return payload;
    const values: Record<string, unknown> = {};
    for (const [name, ref] of Object.entries(blobs)) values[name] = this.#codec.decodeValue(await this.#bytes(ref));
    return withBlobFields(payload, values);
  }

  async #bytes({ sha256, size }: BlobRef): Promise<Uint8Array> {
    const kept = this.#kept.get(sha256);
    if (kept !== undefined) return kept;
    const bytes = await this.#bucket.get(sha256);
    if (bytes === undefined || bytes.length !== size || sha256Hex(bytes) !== sha256) {
      throw new RuntimeFault(
        "HF-3007",
        `Blob ${sha256}: expected ${size} bytes with this SHA-256, found none or others. Restore the bucket of blobs from a backup.`,
        { facts: { sha256, sizeBytes: size } },
      );
    }
    this.#keep(sha256, bytes);
    return bytes;
  }

  #keep(sha256: string, bytes: Uint8Array): void {
    this.#kept.set(sha256, bytes);
    this.#keptBytes += bytes.length;
    for (const [oldest, { length }] of this.#kept) {
      if (this.#keptBytes <= KEPT_BYTES) return;
      this.#kept.delete(oldest);
      this.#keptBytes -= length;
    }
  }
}
