import type { RunnerJournal } from "../journal/runner-journal.ts";
import type { ReplayGap } from "../state/retained-window.ts";
import type { ReplayCursor } from "../wire/coordinates.ts";
import type { RunnerEnvelope } from "../wire/envelope.ts";

export interface WhatWasRead {
  readonly gaps: readonly ReplayGap[];
  readonly envelopes: readonly RunnerEnvelope[];
}

/** Follows a journal from `cursor` until its present end. */
export async function readAll(journal: RunnerJournal, cursor: ReplayCursor = { seq: 0 }): Promise<WhatWasRead> {
  const gaps: ReplayGap[] = [];
  const envelopes: RunnerEnvelope[] = [];
  const end = new AbortController();
  const last = journal.lastSeq;
  const started = cursor.journal === journal.journal ? cursor.seq : 0;
  if (started >= last) end.abort();
  const reader = {
    gap: (gap: ReplayGap) => void gaps.push(gap),
    envelope: (envelope: RunnerEnvelope) => {
      envelopes.push(envelope);
      if (envelope.seq >= last) end.abort();
    },
  };
  await journal.follow(cursor, reader, end.signal);
  return { gaps, envelopes };
}
