import { compareWithStored, replay, unsentEntries, type Difference, type ReplayEnd } from "@holdfast/durable";
import type { JournalEntry } from "@holdfast/protocol";
import { chooseBlobs } from "../blobs/choose-blobs.ts";
import { compileTypes } from "../served-types.ts";
import { JobDesk } from "./job-desk.ts";
import type { MemoryFleet } from "./memory-fleet.ts";
import { testActors } from "./test-actors.ts";

/** Every entry that the journal of an actor stored, repeated ones included, in stored order. */
export const storedEntries = (fleet: MemoryFleet, key: string): readonly JournalEntry[] =>
  fleet.broker.journalOf(key).flatMap(({ bytes }) => fleet.codec.decodeJournalBatch(bytes));

/** Replays an actor from what its journal stored and its record still has to send, and compares it with that record. */
export function replayOf(
  fleet: MemoryFleet,
  key: string,
): { readonly end: ReplayEnd; readonly differences: readonly Difference[] } {
  const record = fleet.record(key);
  if (record === undefined) throw new Error(`no record of ${key}`);
  const machines = [...compileTypes(testActors(new JobDesk())).values()].map(({ compiled }) => compiled);
  const { outside } = chooseBlobs(fleet.codec);
  const entries = [...storedEntries(fleet, key), ...unsentEntries(record)];
  const { steps, end } = replay(entries, { machines, scheme: fleet.broker.scheme, outside });
  return { end, differences: compareWithStored(steps, record) };
}
