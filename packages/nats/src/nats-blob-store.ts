import { blobBucket, type BlobBucket, type Link } from "@holdfast/jetstream";
import { RuntimeFault } from "@holdfast/protocol";
import type { BlobStore } from "@holdfast/runtime/ports";
import { createHash } from "node:crypto";
import type { NamespaceStreams } from "./namespace-streams.ts";

/** Content-addressed payloads in the object store of a namespace. */
export class NatsBlobStore implements BlobStore {
  readonly #bucket: BlobBucket;

  constructor(link: Link, streams: NamespaceStreams) {
    this.#bucket = blobBucket(link, streams.subjects.blobsBucket);
  }

  /** @throws RuntimeFault HF-3007 when the name is not that of the bytes, HF-4004 or HF-4008 when they were not stored */
  async put(sha256: string, bytes: Uint8Array): Promise<void> {
    if (nameOf(bytes) !== sha256) {
      throw new RuntimeFault("HF-3007", `Blob ${sha256}: the bytes have another SHA-256. Name it by its bytes.`, {
        facts: { sha256 },
      });
    }
    await this.#bucket.put(sha256, bytes);
  }

  /** @throws RuntimeFault HF-4008 when nobody answered */
  async get(sha256: string): Promise<Uint8Array | undefined> {
    const bytes = await this.#bucket.get(sha256);
    return bytes !== undefined && nameOf(bytes) === sha256 ? bytes : undefined;
  }
}

const nameOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
