import { RuntimeFault } from "@holdfast/protocol";
import { z } from "zod";
import { API_CODE } from "./api-codes.ts";
import { apiRequest } from "./api-request.ts";
import type { Link } from "./link.ts";

/** Answer of `STREAM.INFO` and `STREAM.CREATE`, as far as it is used. */
export const StreamInfo = z.object({
  created: z.string(),
  /** The server's time, RFC 3339. */
  ts: z.string().optional(),
  config: z.record(z.string(), z.unknown()),
  state: z.object({ messages: z.number(), bytes: z.number(), first_seq: z.number(), last_seq: z.number() }),
});
export type StreamInfo = z.infer<typeof StreamInfo>;

/**
 * Where a stream stands, told by its leader. `created` is the server's own time stamp in RFC 3339: another value means another stream of the
 * same name. `maxBytes` is -1 when unlimited.
 */
export interface StreamPosition {
  readonly lastSeq: number;
  readonly firstSeq: number;
  readonly messages: number;
  readonly bytes: number;
  readonly maxBytes: number;
  readonly created: string;
}

/** @returns undefined when there is no such stream */
export async function findStream(link: Link, stream: string, signal?: AbortSignal): Promise<StreamInfo | undefined> {
  const result = await apiRequest(link, { api: `STREAM.INFO.${stream}`, answer: StreamInfo, signal });
  if (result.kind === "ok") return result.value;
  if (result.code === API_CODE.streamNotFound) return undefined;
  throw new RuntimeFault(
    "HF-4003",
    `Stream ${stream}: its state was refused (${result.reason}). Look at the server's log.`,
    {
      facts: { stream, apiCode: result.code },
    },
  );
}

/**
 * @throws RuntimeFault HF-4006 when the stream does not exist
 */
export async function streamPosition(link: Link, stream: string, signal?: AbortSignal): Promise<StreamPosition> {
  const info = await findStream(link, stream, signal);
  if (info === undefined) throw streamMissing(stream);
  const maxBytes = info.config["max_bytes"];
  return {
    lastSeq: info.state.last_seq,
    firstSeq: info.state.first_seq,
    messages: info.state.messages,
    bytes: info.state.bytes,
    maxBytes: typeof maxBytes === "number" ? maxBytes : -1,
    created: info.created,
  };
}

export function streamMissing(stream: string): RuntimeFault {
  return new RuntimeFault(
    "HF-4006",
    `Stream ${stream}: expected to exist, found none. Restore it from a backup, or give the namespace a new generation for it.`,
    { facts: { stream } },
  );
}
