import type { CommitOutcome } from "../ports/index.ts";
import type { AppendResult, MemoryStream, StreamMessage } from "./memory-stream.ts";
import type { NodeLink, RawAnswer, WriteRequest } from "./node-link.ts";

export interface CompareAndSet {
  readonly operation: WriteRequest<unknown>["operation"];
  readonly about: string;
  readonly stream: MemoryStream;
  readonly subject: string;
  readonly bytes: Uint8Array;
  readonly needsWork: boolean;
  readonly waits?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly expectedSeq: number;
  readonly token: string;
  readonly tokenOf: (bytes: Uint8Array) => string | undefined;
  readonly maxAttempts: number;
}

/**
 * One compare-and-set under I7: the same bytes with the same expectation until acknowledged or in conflict; a conflict is settled by the token
 * of the stored value, read from the leader. When an earlier try may have been stored and replaced since, the answer is `unknown`: `stale`
 * promises that nothing was stored. A removed key counts as absent: its marker is then what is replaced.
 */
export async function compareAndSet(link: NodeLink, set: CompareAndSet): Promise<CommitOutcome> {
  const bytes = new Uint8Array(set.bytes);
  let expectedSeq = set.expectedSeq;
  let wasAmbiguous = false;
  let reason = "no try was made";
  for (let attempt = 1; attempt <= set.maxAttempts; attempt += 1) {
    const answer = await attemptOnce(link, set, bytes, expectedSeq);
    if (answer.kind === "answered" && answer.value.kind === "stored")
      return { kind: "committed", seq: answer.value.seq };
    if (answer.kind === "answered" && answer.value.kind === "conflict") {
      const stored = await readBack(link, set);
      if (stored === "no answer") return { kind: "unknown", reason: "the conflict could not be read back" };
      if (stored?.removed !== true || set.expectedSeq !== 0) return settleConflict(set, stored, wasAmbiguous);
      expectedSeq = stored.seq;
      continue;
    }
    reason = answer.kind === "answered" ? answer.value.kind : answer.reason;
    wasAmbiguous ||= answer.kind === "silent";
    if (answer.kind !== "answered" && answer.giveUp) break;
    await link.backOff(attempt);
  }
  return { kind: "unknown", reason };
}

const attemptOnce = (
  link: NodeLink,
  set: CompareAndSet,
  bytes: Uint8Array,
  expectedSeq: number,
): Promise<RawAnswer<AppendResult>> =>
  link.request({
    operation: set.operation,
    about: set.about,
    apply: () =>
      set.stream.append({
        subject: set.subject,
        bytes,
        needsWork: set.needsWork,
        waits: set.waits ?? false,
        ...(set.headers !== undefined && { headers: set.headers }),
        expectedSeq,
      }),
  });

function settleConflict(set: CompareAndSet, stored: StreamMessage | undefined, wasAmbiguous: boolean): CommitOutcome {
  const current = stored?.removed === true ? undefined : stored;
  if (current !== undefined && set.tokenOf(current.bytes) === set.token) return { kind: "committed", seq: current.seq };
  if (wasAmbiguous) return { kind: "unknown", reason: "an earlier try may have been stored and replaced since" };
  return { kind: "stale", currentSeq: current?.seq };
}

/** A read that times out leaves the question open, so it is asked again. */
async function readBack(link: NodeLink, set: CompareAndSet): Promise<StreamMessage | undefined | "no answer"> {
  for (let attempt = 1; attempt <= set.maxAttempts; attempt += 1) {
    try {
      return await link.read(set.about, () => set.stream.last(set.subject));
    } catch {
      await link.backOff(attempt);
    }
  }
  return "no answer";
}
