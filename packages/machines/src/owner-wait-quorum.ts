import { z } from "zod";
import { canonicalText } from "./canonical-text.ts";

/** The reply of one person that stands. */
export const Vote = z.object({
  answerId: z.string(),
  /** `<kind>-<id>` of who gave it. */
  principal: z.string(),
  /** What was done about the question, where it says what may be. */
  action: z.enum(["accept", "edit", "respond", "reject"]).optional(),
  /** Absent: declined. */
  value: z.json().optional(),
  reason: z.string().optional(),
});
export type Vote = Readonly<z.infer<typeof Vote>>;

export interface Electorate {
  /** Equal answers that it takes. Absent: 1. */
  readonly quorum?: number | undefined;
  /** Those who may answer, when they are few. */
  readonly approvers?: readonly string[] | undefined;
}

export type Standing =
  | { readonly kind: "open" }
  | { readonly kind: "answered"; readonly vote: Vote; readonly approvals: readonly string[] }
  | { readonly kind: "declined"; readonly vote: Vote; readonly reason?: string };

/**
 * Where a question stands by the replies of distinct people, in the order in which they came.
 *
 * `answered`: as many equal answers as the quorum takes. `declined`: among named approvers no answer can come to that any more; among
 * everybody, as many have declined as would have had to agree.
 */
export function standingOf({ quorum = 1, approvers }: Electorate, votes: readonly Vote[]): Standing {
  const last = votes.at(-1);
  if (last === undefined) return { kind: "open" };
  const agreeing = new Map<string, Vote[]>();
  for (const vote of votes) {
    if (vote.value === undefined) continue;
    const text = canonicalText([vote.action ?? "respond", vote.value]);
    agreeing.set(text, [...(agreeing.get(text) ?? []), vote]);
  }
  const best = [...agreeing.values()].reduce<readonly Vote[]>(
    (most, one) => (one.length > most.length ? one : most),
    [],
  );
  const decisive = best[quorum - 1];
  if (decisive !== undefined) {
    return { kind: "answered", vote: decisive, approvals: best.map(({ principal }) => principal) };
  }
  const declines = votes.filter(({ value }) => value === undefined);
  const isHopeless =
    approvers === undefined ? declines.length >= quorum : best.length + approvers.length - votes.length < quorum;
  if (!isHopeless) return { kind: "open" };
  const decline = declines.at(-1) ?? last;
  const said = decline.reason ?? (declines.length > 0 ? undefined : `no answer can have ${quorum} approvals any more`);
  return { kind: "declined", vote: decline, ...(said !== undefined && { reason: said }) };
}
