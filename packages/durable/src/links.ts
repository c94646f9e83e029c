// Links: the dense counters of plain sends between actors (sender^genesis → receiver).
//
// Owns: marks of the receiver, counters of the sender.  Does not own: start and settled, which records and living children guard.
//   L1 dense      n = mark + 1 applies; n ≤ mark is a duplicate; n beyond is a gap and changes nothing
//   L2 bounded    a child's mark lives and dies with its entry; at most `limit` other senders are known
//   L3 no replay  marks of closed links and of former children are kept for a while, so that a late duplicate is not a first message
// In `marks` a positive number is an open link, a negative one a closed link, and a key without a genesis a former child.
import type { ActorKey, ActorRecord, Genesis } from "@holdfast/protocol";
import type { DropReason } from "./step-types.ts";

/** Closed links and former children that a record remembers (L3). */
export const CLOSED_LINKS_REMEMBERED = 64;

export interface Sender {
  readonly key: ActorKey;
  readonly genesis: Genesis;
  readonly n: number;
}

export type LinkVerdict =
  | { readonly kind: "apply"; readonly childId: string | undefined }
  | {
      readonly kind: "dropped";
      readonly reason: DropReason;
      readonly gap?: { readonly expected: number; readonly got: number };
    };

export const linkKey = (key: string, genesis: string | undefined): string =>
  genesis === undefined ? key : `${key}^${genesis}`;

/** Whether a message on a link is the next one. */
export function judgeLink(record: ActorRecord, from: Sender, limit: number): LinkVerdict {
  const childId = childIdOf(record, from.key);
  if (childId !== undefined) return judge(record.snapshot.children[childId]?.mark ?? 0, from.n, childId);

  const former = record.marks[from.key];
  if (former !== undefined) return { kind: "dropped", reason: from.n <= former ? "duplicate" : "stale-child" };

  const mark = record.marks[linkKey(from.key, from.genesis)];
  if (mark !== undefined) {
    if (mark < 0) return { kind: "dropped", reason: "duplicate" };
    return judge(mark, from.n, undefined);
  }
  const verdict = judge(0, from.n, undefined);
  if (verdict.kind === "apply" && openLinks(record.marks) >= limit)
    return { kind: "dropped", reason: "too-many-links" };
  return verdict;
}

function judge(mark: number, n: number, childId: string | undefined): LinkVerdict {
  if (n <= mark) return { kind: "dropped", reason: "duplicate" };
  if (n === mark + 1) return { kind: "apply", childId };
  return { kind: "dropped", reason: "gap", gap: { expected: mark + 1, got: n } };
}

export function childIdOf(record: ActorRecord, key: string): string | undefined {
  const { children } = record.snapshot;
  for (const id in children) if (children[id]?.key === key) return id;
  return undefined;
}

const openLinks = (marks: Readonly<Record<string, number>>): number =>
  Object.entries(marks).reduce((count, [key, mark]) => (isOpen(key, mark) ? count + 1 : count), 0);

const isOpen = (key: string, mark: number): boolean => mark > 0 && key.includes("^");

/** Marks after message `n` of a sender that is no child was taken; `closed`: it was the last of its link. */
export function markForeign(record: ActorRecord, from: Sender, closed: boolean): Record<string, number> {
  const key = linkKey(from.key, from.genesis);
  if (!closed) return { ...record.marks, [key]: from.n };
  const { [key]: _open, ...others } = record.marks;
  return withoutOldestClosed({ ...others, [key]: -from.n });
}

/** Marks after children lost their entries. */
export function markFormerChildren(
  marks: Readonly<Record<string, number>>,
  former: readonly { readonly key: string; readonly mark?: number | undefined }[],
): Record<string, number> {
  const next: Record<string, number> = { ...marks };
  for (const { key, mark = 0 } of former) next[key] = mark;
  return withoutOldestClosed(next);
}

function withoutOldestClosed(marks: Record<string, number>): Record<string, number> {
  const closed = Object.keys(marks).filter((key) => !isOpen(key, marks[key] ?? 0));
  for (const key of closed.slice(0, Math.max(0, closed.length - CLOSED_LINKS_REMEMBERED))) delete marks[key];
  return marks;
}

/** Counters of the sending side during one step; copies only when something is sent. */
export class OutgoingLinks {
  #counters: Readonly<Record<string, number>>;

  constructor(counters: Readonly<Record<string, number>>) {
    this.#counters = counters;
  }

  get counters(): Record<string, number> {
    return this.#counters;
  }

  /** Number of the next message to a receiver. */
  next(key: string, genesis: string | undefined): number {
    const link = linkKey(key, genesis);
    const n = (this.#counters[link] ?? 0) + 1;
    this.#counters = { ...this.#counters, [link]: n };
    return n;
  }

  /** Forgets receivers that take no more messages. */
  forget(keys: readonly string[]): void {
    if (!keys.some((key) => key in this.#counters)) return;
    const counters = { ...this.#counters };
    for (const key of keys) delete counters[key];
    this.#counters = counters;
  }
}
