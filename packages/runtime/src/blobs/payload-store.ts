import type { Codec } from "@holdfast/codec";
import { RuntimeFault, type BlobFields, type BlobRef } from "@holdfast/protocol";
import type { BlobStore, Clock } from "../ports/index.ts";
import { inParallel } from "../rehydration/in-parallel.ts";
import { chooseBlobs, type ChosenBlobs } from "./choose-blobs.ts";

export interface PayloadStoreOptions {
  readonly codec: Pick<Codec, "encodeValue" | "decodeValue">;
  readonly blobs: BlobStore;
  readonly clock: Pick<Clock, "monotonicMs">;
}

interface Known {
  readonly bytes: Uint8Array;
  /** When this node stored it; undefined when it only read it. */
  readonly storedAtMs: number | undefined;
}

const KNOWN_BYTES = 8 * 1024 * 1024;
/** A blob this node stored so recently is there: what sweeps blobs leaves young ones alone. */
const STORED_FOR_MS = 600_000;
const AT_ONCE = 8;

/**
 * Payloads that are kept outside of records and messages.
 *
 * Owns: which blobs this node knows to be stored, and their bytes for a while. Does not own: what names them.
 *   B1 a blob is stored before the commit, or the message, that names it (I1, F6)
 *   B2 what is read has the kind, the size and the SHA-256 of its reference, or is refused with HF-3007
 *   B3 where nothing is large nothing is asked, stored or waited for
 */
export class PayloadStore {
  readonly #options: PayloadStoreOptions;
  /** Least recently used first. */
  readonly #known = new Map<string, Known>();
  #knownBytes = 0;

  constructor(options: PayloadStoreOptions) {
    this.#options = options;
  }

  /** Begins one macrostep, or one message. */
  choose(): ChosenBlobs {
    return chooseBlobs(this.#options.codec);
  }

  /** B1. @throws RuntimeFault HF-4004 or HF-4008 when one of them could not be stored: nothing that names it may leave */
  async store({ chosen }: ChosenBlobs): Promise<void> {
    if (chosen.size === 0) return;
    const now = this.#options.clock.monotonicMs();
    const missing = [...chosen].filter(([sha256]) => {
      const storedAtMs = this.#known.get(sha256)?.storedAtMs;
      return storedAtMs === undefined || now - storedAtMs > STORED_FOR_MS;
    });
    await inParallel(missing, AT_ONCE, async ([sha256, bytes]) => {
      await this.#options.blobs.put(sha256, bytes);
      this.#remember(sha256, { bytes, storedAtMs: now });
    });
  }

  /**
   * The values of fields that are kept outside.
   * @throws RuntimeFault HF-3007 when a blob is missing or damaged, HF-4008 when nobody answered
   */
  async fetch(fields: BlobFields): Promise<Readonly<Record<string, unknown>>> {
    const found = await Promise.all(
      Object.entries(fields).map(async ([name, ref]) => [name, await this.#value(ref)] as const),
    );
    return Object.fromEntries(found);
  }

  async #value(ref: BlobRef): Promise<unknown> {
    const known = this.#known.get(ref.sha256);
    const bytes = known?.bytes ?? (await this.#options.blobs.get(ref.sha256));
    if (bytes === undefined || bytes.length !== ref.size) throw unusable(ref, bytes); // B2
    this.#remember(ref.sha256, { bytes, storedAtMs: known?.storedAtMs });
    return this.#options.codec.decodeValue(bytes);
  }

  #remember(sha256: string, known: Known): void {
    this.#knownBytes += known.bytes.length - (this.#known.get(sha256)?.bytes.length ?? 0);
    this.#known.delete(sha256);
    this.#known.set(sha256, known);
    for (const [oldest, { bytes }] of this.#known) {
      if (this.#knownBytes <= KNOWN_BYTES) return;
      this.#known.delete(oldest);
      this.#knownBytes -= bytes.length;
    }
  }
}

function unusable({ sha256, size }: BlobRef, found: Uint8Array | undefined): RuntimeFault {
  const what = found === undefined ? "none, or damaged bytes" : `${found.length} bytes`;
  return new RuntimeFault(
    "HF-3007",
    `Blob ${sha256}: expected ${size} bytes with this SHA-256, found ${what}. Nothing runs from it; restore the bucket of blobs from a backup.`,
    { facts: { sha256, sizeBytes: size } },
  );
}
