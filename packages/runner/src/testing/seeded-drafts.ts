import { StoreSeq } from "../wire/coordinates.ts";
import type { EnvelopeDraft } from "../wire/envelope.ts";

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

/** What stands at a place: a function of the place alone, so that a reader can tell what was invented. Every fifth is durable, every eleventh a result. */
export function draftOf(seq: number): EnvelopeDraft {
  const message = { uuid: `u${seq}`, text: "ä\u0000\uffff".repeat((seq * 37) % 90), nothing: null };
  if (seq % 11 === 0) return { op: "result", messageType: "Result", message, storeSeq: StoreSeq.parse(seq) };
  return seq % 5 === 0
    ? { op: "event", messageType: "TaskUpdated", message, requiresPersistence: true }
    : { op: "event", messageType: "Delta", message };
}
