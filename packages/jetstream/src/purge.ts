import { RuntimeFault } from "@holdfast/protocol";
import { z } from "zod";
import { apiRequest } from "./api-request.ts";
import type { Link } from "./link.ts";

export interface PurgeOptions {
  readonly stream: string;
  /** Only messages of this subject; all when absent. */
  readonly filter?: string | undefined;
  /** Messages below this sequence go. */
  readonly belowSeq: number;
  readonly signal?: AbortSignal | undefined;
}

const PurgeAnswer = z.object({ purged: z.number() });

/**
 * Removes messages from the front of a stream. Doing it twice does no harm.
 *
 * @returns how many went
 * @throws RuntimeFault HF-4004 when the server refused, HF-4007 when it is not allowed, HF-4008 when nobody answered
 */
export async function purgeBelow(link: Link, options: PurgeOptions): Promise<number> {
  // The server reads 0 as "no limit" and would remove everything; below 1 there is nothing.
  if (options.belowSeq <= 1) return 0;
  const result = await apiRequest(link, {
    api: `STREAM.PURGE.${options.stream}`,
    body: { seq: options.belowSeq, ...(options.filter === undefined ? {} : { filter: options.filter }) },
    answer: PurgeAnswer,
    signal: options.signal,
  });
  if (result.kind === "ok") return result.value.purged;
  throw new RuntimeFault(
    "HF-4004",
    `Stream ${options.stream}: purge below ${options.belowSeq} was refused (${result.reason}). Check that the stream allows it.`,
    {
      facts: { stream: options.stream, apiCode: result.code },
    },
  );
}
