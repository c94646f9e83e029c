export { connectToRunner, listenForHosts, type NatsCarrierOptions } from "./carrier/nats-carrier.ts";
export type { Connection } from "./connection.ts";
export { claimFact, type FactStore } from "./host/claim-fact.ts";
export { RunnerReader, type RunnerReaderOptions } from "./host/runner-reader.ts";
export {
  DEFAULT_JOURNAL_BYTES,
  RunnerJournal,
  type AppendOutcome,
  type JournalReader,
  type RunnerJournalOptions,
} from "./journal/runner-journal.ts";
export { RunnerFault } from "./runner-fault.ts";
export { RunnerSeat, type Engine, type RunnerSeatOptions } from "./seat/runner-seat.ts";
export { admitSpeaker, isAttached, type Attachment, type AttachOutcome } from "./state/attachment.ts";
export {
  assertSameFact,
  claimKeyOf,
  ENGINE_MESSAGE,
  factOf,
  type FactPayload,
  type RunnerFact,
} from "./state/fact-claim.ts";
export { advance, greet, nextOf, passGap, type HostCursor, type RunnerGreeting } from "./state/host-cursor.ts";
export { COMPACTION_THRESHOLD, RetainedWindow, type ReplayGap } from "./state/retained-window.ts";
export { admitOpening, destroySlot, EMPTY_SLOT, type Admission, type AdmissionFacts, type Slot } from "./state/slot.ts";
export { contractMismatches, EngineContract, EngineRequirements, RUNNER_PROTOCOL } from "./wire/contract.ts";
export { EnvelopeSeq, ReplayCursor, RunnerEpoch, StoreSeq } from "./wire/coordinates.ts";
export { EnvelopeDraft, isDurable, MAX_ENVELOPE_BYTES, placeEnvelope, RunnerEnvelope } from "./wire/envelope.ts";
export { Opening, SlotId, Speaker, TranscriptStore, type OpeningOf } from "./wire/opening.ts";
export { HostFrame, RunnerFrame } from "./wire/frame.ts";
