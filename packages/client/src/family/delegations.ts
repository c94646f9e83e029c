import { isTerminal, type JournalEntry, type RecordStatus } from "@holdfast/protocol";
import { offeredChildOf, settledChildOf } from "./family-order.ts";

/** What became of one call of a conversation. Times are broker times, Unix ms; what has not happened yet is absent. */
export interface Delegation {
  /** Key of the conversation whose model made the call. */
  readonly conversation: string;
  readonly callId: string;
  /** Source in the machine: `task`, `ownerWait`, `tool.run.…`. */
  readonly src: string;
  /** Key of the actor that was started, or the idempotency key of the job. */
  readonly key: string;
  /** The commit that decided it. */
  readonly decided: { readonly rev: number; readonly atMs: number };
  /** First commit of the actor; jobs have none. */
  readonly created?: { readonly atMs: number; readonly node: string };
  /** Of a task: conversations it was worked on in. Of a job: attempts, known from its outcome on. Of a question: 0. */
  readonly attempts: number;
  /** Jobs of it that ran in another process than the one that decided them, or again: after a crash, or when the actor moved while they waited. */
  readonly reissued: number;
  /** Last commit of the actor; of a job: its outcome. */
  readonly settled?: { readonly atMs: number; readonly status: RecordStatus };
  /** The commit of the conversation that applied the result. */
  readonly applied?: { readonly rev: number; readonly atMs: number; readonly outcome: "done" | "error" };
  /** How often the result was applied: never more than once. */
  readonly appliedTimes: number;
}

type Row = { -readonly [K in keyof Delegation]: Delegation[K] };

interface Start {
  readonly key: string;
  /** Call that it belongs to, if any. */
  readonly row: Row | undefined;
  /** Incarnation that committed it. */
  readonly decider: string | undefined;
  readonly isCall: boolean;
}

/** Child of a conversation that carries out a call, or is one of the group that does: `<call id>-<index>` then. */
const CALL_CHILD = /^(?:call|group)-\d+-(.+)$/s;

/** The calls of a family, in the order in which they were decided. Pure. @param entries  of the family, in its order */
export function foldDelegations(entries: Iterable<JournalEntry>): readonly Delegation[] {
  const rows: Row[] = [];
  /** Actor → the call that it belongs to. */
  const callOf = new Map<string, Row>();
  /** Actor and child id → its last start. */
  const starts = new Map<string, Start>();
  /** Questions whose outcome was applied before they ended. */
  const offered = new Set<Start>();
  for (const entry of entries) {
    const { key, rev, atMs, node, status } = entry;
    const own = callOf.get(key);
    if (own?.key === key) {
      if (rev === 1) own.created = { atMs, node };
      if (isTerminal(status)) own.settled = { atMs, status };
    }
    const childId = settledChildOf(entry);
    const settled = childId === undefined ? undefined : starts.get(placeOf(key, childId));
    if (settled !== undefined && !offered.has(settled)) applyOutcome(entry, settled);
    const offer = starts.get(placeOf(key, offeredChildOf(entry) ?? ""));
    if (offer !== undefined && !offered.has(offer)) {
      offered.add(offer);
      applyOutcome(entry, offer);
    }
    for (const started of entry.starts ?? []) {
      const callId = CALL_CHILD.exec(started.childId)?.[1];
      const row = callId === undefined ? own : callRow(entry, callId, started);
      if (row !== undefined && callId !== undefined) rows.push(row);
      if (row !== undefined) callOf.set(started.key, row);
      if (own?.key === key && callId === undefined && isActor(started.key)) own.attempts += 1;
      const decider = entry.writer?.incarnation;
      starts.set(placeOf(key, started.childId), { key: started.key, row, decider, isCall: callId !== undefined });
    }
  }
  return rows;
}

function callRow(
  { key, rev, atMs }: JournalEntry,
  callId: string,
  started: { readonly key: string; readonly src: string },
): Row {
  return {
    conversation: key,
    callId,
    src: started.src,
    key: started.key,
    decided: { rev, atMs },
    attempts: 0,
    reissued: 0,
    appliedTimes: 0,
  };
}

function applyOutcome({ rev, atMs, event, ran }: JournalEntry, { key, row, decider, isCall }: Start): void {
  if (row === undefined) return;
  const isReissued = ran !== undefined && (ran.attempt > 1 || (decider !== undefined && ran.runner !== decider));
  if (isReissued) row.reissued += 1;
  if (!isCall) return;
  const outcome = event.type.startsWith("xstate.error.") ? "error" : "done";
  row.appliedTimes += 1;
  row.applied ??= { rev, atMs, outcome };
  if (isActor(key)) return;
  row.settled ??= { atMs, status: outcome };
  row.attempts = Math.max(ran?.attempt ?? 1, isReissued ? 2 : 1);
}

const isActor = (key: string): boolean => key.includes(".");
const placeOf = (key: string, childId: string): string => `${key} ${childId}`;
