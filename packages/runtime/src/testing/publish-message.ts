import type { PublishOutcome } from "../ports/index.ts";
import type { BrokerState } from "./broker-state.ts";
import type { MemoryStream } from "./memory-stream.ts";
import type { NodeLink, WriteRequest } from "./node-link.ts";

export interface Publication {
  readonly operation: WriteRequest<unknown>["operation"];
  readonly stream: MemoryStream;
  readonly subject: string;
  readonly bytes: Uint8Array;
  readonly messageId: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Publishes once, without trying again: the outcome is what the caller of the port has to live with. */
export async function publishMessage(
  state: BrokerState,
  link: NodeLink,
  publication: Publication,
): Promise<PublishOutcome> {
  const { operation, stream, subject, messageId, headers = {} } = publication;
  const bytes = new Uint8Array(publication.bytes);
  if (bytes.length > state.maxPayloadBytes) {
    const reason = `${bytes.length} bytes, the broker takes at most ${state.maxPayloadBytes}`;
    return { kind: "refused", reason, retryable: false };
  }
  const answer = await link.request({
    operation,
    about: subject,
    apply: () => {
      const result = stream.append({ subject, bytes, messageId, headers });
      if (link.dice.hits("duplicateStoreRate")) stream.append({ subject, bytes, messageId, headers, forgetId: true });
      return result;
    },
  });
  switch (answer.kind) {
    case "silent":
      return { kind: "unknown", reason: answer.reason };
    case "refused":
      return { kind: "refused", reason: answer.reason, retryable: answer.retryable };
    case "answered":
      break;
  }
  const result = answer.value;
  switch (result.kind) {
    case "stored":
      return { kind: "accepted", seq: result.seq, duplicate: false };
    case "duplicate":
      return { kind: "accepted", seq: result.seq, duplicate: true };
    case "full":
      return { kind: "refused", reason: result.reason, retryable: true };
    case "conflict":
      return { kind: "refused", reason: "no expectation was given, yet it failed", retryable: false };
  }
}
