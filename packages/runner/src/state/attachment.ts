// Attachment — which host a runner listens to.
//   A1 greater-wins   an attach wins against any of a smaller lease epoch, in one step with the comparison
//   A2 fenced         frames of a host that is not attached now are refused, one by one
//   A3 exclusive      an observer displaces nobody

import type { Speaker } from "../wire/opening.ts";

export interface Attachment {
  /** Counts the attachments of a runner's incarnation: frames carry it, so that one host that attached twice fences its own older connection. */
  readonly n: number;
  readonly speaker: Speaker;
}

export type AttachOutcome =
  | { readonly kind: "attached"; readonly attachment: Attachment }
  | { readonly kind: "fenced"; readonly by: Speaker }
  | { readonly kind: "observed"; readonly by: Speaker };

/**
 * Who is attached after `speaker` asked (A1). A host may attach again under the epoch it has; another host may not share it.
 *
 * @param last  the last attachment of this incarnation, also when its connection has closed
 * @param connected  whether that connection is open, a handshake under way included
 */
export function admitSpeaker(
  last: Attachment | undefined,
  speaker: Speaker,
  how: "attach" | "observe",
  connected: boolean,
): AttachOutcome {
  if (last !== undefined) {
    const { epoch, host } = last.speaker;
    if (speaker.epoch < epoch || (speaker.epoch === epoch && speaker.host !== host))
      return { kind: "fenced", by: last.speaker };
    if (how === "observe" && connected) return { kind: "observed", by: last.speaker }; // A3
  }
  return { kind: "attached", attachment: { n: (last?.n ?? 0) + 1, speaker } };
}

/** Whether a frame of attachment `n` is of the host that is attached now (A2). */
export const isAttached = (current: Attachment | undefined, n: number): boolean => current?.n === n;
