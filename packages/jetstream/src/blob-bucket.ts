import { RuntimeFault } from "@holdfast/protocol";
import { nuid } from "@nats-io/transport-node";
import { createHash } from "node:crypto";
import { z } from "zod";
import { filteredHistory } from "./filtered-history.ts";
import { readLast } from "./leader-read.ts";
import type { Link } from "./link.ts";
import { backoffMs, pause } from "./pause.ts";
import { publishStored, type PublishRequest } from "./publish.ts";
import { purgeBelow } from "./purge.ts";

/**
 * Byte strings under their names, in the format of a NATS object store, so that its tools can list and fetch them.
 *
 * Not the client's own object store: that one reads its chunks with a consumer that does not notice a lost tail (see PushConsumer P2), and
 * publishes them without ids, so that a repeated chunk spoils the object.
 */
export interface BlobBucket {
  /**
   * Stores bytes under a name that is a function of them. Nothing is written when they are there; what is there and differs is damaged, and
   * replaced.
   *
   * @throws RuntimeFault HF-4004 when the store refused, HF-4008 when nobody answered
   */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /**
   * @returns undefined when there is none, or its chunks do not add up; the caller compares content and name
   * @throws RuntimeFault HF-4008 when nobody answered
   */
  get(name: string): Promise<Uint8Array | undefined>;
  /** Blobs from a sequence on that were last put before a moment (broker time, Unix ms), oldest first, at most `limit`. */
  olderThan(beforeMs: number, fromSeq: number, limit: number, signal?: AbortSignal): Promise<readonly StoredBlob[]>;
  /**
   * Removes this very copy. One that is put meanwhile stays: it has chunks of its own, and a later entry.
   *
   * Chunks first: a process that dies in between leaves an entry without them, which `get` and `put` take for nothing, and a later `remove`
   * finds.
   */
  remove(blob: StoredBlob): Promise<void>;
}

/** One copy of a blob. */
export interface StoredBlob {
  readonly name: string;
  readonly copy: string;
  readonly seq: number;
}

const CHUNK_BYTES = 128 * 1024;
const RETRY_FOR_MS = 20_000;
/** A blob that is put again after this time is stored anew, so that who removes old ones sees that it is young. ms */
const REFRESH_AFTER_MS = 12 * 3_600_000;

const ObjectMeta = z.object({
  name: z.string().default(""),
  nuid: z.string(),
  size: z.number(),
  chunks: z.number(),
  deleted: z.boolean().default(false),
});
type ObjectMeta = z.infer<typeof ObjectMeta>;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** @param bucket name of an object store whose stream exists */
export function blobBucket(
  link: Link,
  bucket: string,
  { refreshAfterMs = REFRESH_AFTER_MS }: { readonly refreshAfterMs?: number } = {},
): BlobBucket {
  const stream = `OBJ_${bucket}`;
  const metaSubject = (name: string): string => `$O.${bucket}.M.${base64UrlPadded(encoder.encode(name))}`;
  const metaSubjects = `$O.${bucket}.M.>`;
  const chunkSubject = (id: string): string => `$O.${bucket}.C.${id}`;
  const findMeta = async (name: string): Promise<(ObjectMeta & { readonly storedAtMs: number }) | undefined> => {
    const stored = await readLast(link, stream, metaSubject(name));
    const meta = stored === undefined ? undefined : parseMeta(stored.bytes);
    return stored === undefined || meta === undefined || meta.deleted
      ? undefined
      : { ...meta, storedAtMs: stored.storedAtMs };
  };

  const readChunks = async (meta: ObjectMeta): Promise<Uint8Array | undefined> => {
    const chunks = await filteredHistory(link, { stream, filters: [chunkSubject(meta.nuid)] });
    const bytes = new Uint8Array(Buffer.concat(chunks.map((chunk) => chunk.bytes)));
    return bytes.length === meta.size && chunks.length === meta.chunks ? bytes : undefined;
  };

  return {
    async put(name, bytes) {
      const present = await findMeta(name);
      const isYoung = present !== undefined && Date.now() - present.storedAtMs < refreshAfterMs;
      const stored = isYoung ? await readChunks(present) : undefined;
      if (stored !== undefined && Buffer.compare(stored, bytes) === 0) return;
      // A fresh id per call: two nodes that put the same blob at once never mix their chunks; the later meta wins, both are whole.
      const id = nuid.next();
      const chunks = Math.ceil(bytes.length / CHUNK_BYTES);
      for (let n = 0; n < chunks; n++) {
        const chunk = bytes.subarray(n * CHUNK_BYTES, (n + 1) * CHUNK_BYTES);
        await publishPatiently(link, { subject: chunkSubject(id), bytes: chunk, messageId: `${id}.${n}` });
      }
      const meta = {
        name,
        description: "",
        bucket,
        nuid: id,
        size: bytes.length,
        chunks,
        mtime: new Date().toISOString(),
        digest: `SHA-256=${base64UrlPadded(createHash("sha256").update(bytes).digest())}`,
        deleted: false,
        options: { max_chunk_size: CHUNK_BYTES },
        metadata: {},
      };
      await publishPatiently(link, {
        subject: metaSubject(name),
        bytes: encoder.encode(JSON.stringify(meta)),
        messageId: `${id}.meta`,
        headers: { "Nats-Rollup": "sub" },
      });
      if (present === undefined) return;
      await purgeBelow(link, { stream, filter: chunkSubject(present.nuid), belowSeq: Number.MAX_SAFE_INTEGER });
    },

    async olderThan(beforeMs, fromSeq, limit, signal) {
      const found: StoredBlob[] = [];
      const entries = await filteredHistory(link, { stream, filters: [metaSubjects], fromSeq, limit, signal });
      for (const { bytes, seq, storedAtMs } of entries) {
        const meta = parseMeta(bytes);
        if (storedAtMs < beforeMs && meta !== undefined) found.push({ name: meta.name, copy: meta.nuid, seq });
      }
      return found;
    },

    async remove({ name, copy, seq }) {
      await purgeBelow(link, { stream, filter: chunkSubject(copy), belowSeq: Number.MAX_SAFE_INTEGER });
      await purgeBelow(link, { stream, filter: metaSubject(name), belowSeq: seq + 1 });
    },

    async get(name) {
      const meta = await findMeta(name);
      return meta === undefined ? undefined : readChunks(meta);
    },
  };
}

/** Repeats refusals that may pass, such as a stream without a leader, under the same id. */
async function publishPatiently(link: Link, request: PublishRequest & { readonly messageId: string }): Promise<void> {
  const endMs = performance.now() + RETRY_FOR_MS;
  for (let attempt = 0; ; attempt++) {
    const outcome = await publishStored(link, request);
    if (outcome.kind === "accepted") return;
    const isFinal = outcome.kind === "refused" && !outcome.retryable;
    if (isFinal || performance.now() > endMs || link.closed.aborted) {
      throw new RuntimeFault(
        outcome.kind === "refused" ? outcome.code : "HF-4008",
        `Blob part ${request.subject}: expected to be stored, found ${outcome.reason}. Check the store's limits and the server, then put it again.`,
        { facts: { subject: request.subject } },
      );
    }
    await link.whenConnected(endMs - performance.now());
    await pause(backoffMs(attempt));
  }
}

function parseMeta(bytes: Uint8Array): ObjectMeta | undefined {
  try {
    return ObjectMeta.safeParse(JSON.parse(decoder.decode(bytes))).data;
  } catch {
    // Unreadable meta data is a damaged object: it is not there for the caller, and a put replaces it.
    return undefined;
  }
}

/** The object store pads, which Node's `base64url` does not. */
function base64UrlPadded(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString("base64url");
  return text.padEnd(Math.ceil(text.length / 4) * 4, "=");
}
