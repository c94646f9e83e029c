import { foldTranscript, forkPointOf, inheritedTranscript, type ForkPoint } from "@holdfast/machines";
import { RuntimeFault, type JournalEntry, type PlainEvent, type TranscriptMessage } from "@holdfast/protocol";
import type { NodeContext } from "holdfast";

type Reader = Pick<NodeContext["read"], "journal">;

/** Forks of forks of forks: more is no history but a mistake. */
const MAX_FORK_DEPTH = 32;

/**
 * The transcript of a conversation from the journals: its own, and of a fork those it shares a past with.
 *
 * @param wanted  `throughRev`: default as far as its journal is stored; `messagesTaken`: user messages to show, default all
 * @throws RuntimeFault HF-4008 when the journal does not reach that far yet, HF-3013 when what a fork shares is gone
 */
export async function readTranscript(
  read: Reader,
  conversation: string,
  wanted: { readonly throughRev?: number; readonly messagesTaken?: number; readonly signal?: AbortSignal } = {},
): Promise<readonly TranscriptMessage[]> {
  const { throughRev, messagesTaken, signal } = wanted;
  const entries = await read.journal(conversation, signal);
  const last = entries.at(-1);
  if (throughRev !== undefined && (last === undefined || last.rev < throughRev)) {
    // Everything up to the revision that decided a job is stored before it starts: what is missing is on its way.
    throw new RuntimeFault(
      "HF-4008",
      `Journal of ${conversation}: expected revision ${throughRev}, found ${last?.rev ?? "none"}. It is read again.`,
    );
  }
  const events = eventsThrough(entries, throughRev ?? last?.rev ?? 0);
  return foldTranscript(events, await sharedBy(read, events, signal, 1), messagesTaken);
}

async function sharedBy(
  read: Reader,
  events: readonly PlainEvent[],
  signal: AbortSignal | undefined,
  depth: number,
): Promise<readonly TranscriptMessage[]> {
  const fork = forkPointOf(events);
  if (fork === undefined) return [];
  if (depth > MAX_FORK_DEPTH) throw gone(fork, `it is shared over more than ${MAX_FORK_DEPTH} forks`);
  const entries = await read.journal(fork.conversation, signal);
  if (entries[0]?.genesis !== fork.genesis || entries[0].rev !== 1) throw gone(fork, "it is not stored any more");
  if ((entries.at(-1)?.rev ?? 0) < fork.rev) throw gone(fork, "it does not reach that far");
  const shared = eventsThrough(entries, fork.rev);
  return inheritedTranscript(shared, await sharedBy(read, shared, signal, depth + 1));
}

const eventsThrough = (entries: readonly JournalEntry[], rev: number): readonly PlainEvent[] =>
  entries.filter((entry) => entry.rev <= rev).map(({ event }) => event);

const gone = ({ conversation, rev }: ForkPoint, why: string): RuntimeFault =>
  new RuntimeFault(
    "HF-3013",
    `Journal of ${conversation} up to revision ${rev}: a fork shares it, and ${why}. Start a conversation of its own.`,
    { facts: { conversation, rev } },
  );
