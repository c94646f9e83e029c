import { streamPosition, type Link, type StreamPosition } from "@holdfast/jetstream";
import { RuntimeFault } from "@holdfast/protocol";
import type { NamespaceStreams } from "./namespace-streams.ts";

/**
 * Where a stream of the namespace ends and how full it is, told by its leader.
 *
 * @throws RuntimeFault HF-4006 when the stream is missing or not the recorded one
 */
export async function recordedPosition(link: Link, streams: NamespaceStreams, stream: string): Promise<StreamPosition> {
  const position = await streamPosition(link, stream);
  const recorded = streams.created(stream);
  if (recorded === undefined || recorded === position.created) return position;
  throw new RuntimeFault(
    "HF-4006",
    `Stream ${stream}: expected the one created at ${recorded}, found one created at ${position.created}. Renew its generation with all nodes stopped.`,
    { facts: { stream } },
  );
}
