// Slot — a runner from its start to the conversation it serves: empty → prepared → active, one way.
//   S1 token-first     nothing that a slot holds is compared or named before the token fitted
//   S2 bound-once      a slot becomes active for one conversation, once; a half-done activation destroys it
//   S3 undisturbed     a refused opening changes nothing

import { canonicalJson } from "./canonical-json.ts";
import { contractMismatches, RUNNER_PROTOCOL, type EngineContract } from "../wire/contract.ts";
import type { Opening, OpeningOf, SlotId, TranscriptStore } from "../wire/opening.ts";

export type Slot =
  | { readonly kind: "empty" }
  | {
      readonly kind: "prepared";
      readonly slotId: SlotId;
      readonly claim: OpeningOf<"prepare">["claim"] | undefined;
    }
  | {
      readonly kind: "active";
      readonly slotId: SlotId;
      readonly conversation: string;
      readonly store: TranscriptStore | undefined;
    }
  | { readonly kind: "destroyed" };

export const EMPTY_SLOT: Slot = { kind: "empty" };

/** Why an opening was refused. None of them says more than the sender knows, as long as its token does not fit. */
export type RefusalReason =
  | "token"
  | "protocol"
  | "contract"
  | "slot-taken"
  | "slot-not-prepared"
  | "slot-other"
  | "slot-destroyed"
  | "conversation-other"
  | "store-other"
  | "sequence-used";

export type Admission =
  | { readonly kind: "admitted"; readonly slot: Slot }
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly detail: string };

export interface AdmissionFacts {
  /** Whether the token of the opening is the one of this seat; compared in constant time by the caller. */
  readonly tokenFits: boolean;
  /** What this image has. */
  readonly contract: EngineContract;
  /** Last place an envelope took; 0 when none did. */
  readonly lastSeq: number;
}

/** What becomes of a slot by an opening. Pure; a refusal leaves `slot` as it is (S3). */
export function admitOpening(slot: Slot, opening: Opening, facts: AdmissionFacts): Admission {
  if (!facts.tokenFits) return refused("token", "the token is not the one of this seat"); // S1
  if (opening.protocol !== RUNNER_PROTOCOL)
    return refused("protocol", `${opening.protocol} spoken, ${RUNNER_PROTOCOL} understood`);
  const mismatches = contractMismatches(opening.requirements, facts.contract);
  if (mismatches.length > 0) return refused("contract", mismatches.join("; "));
  if (slot.kind === "destroyed") return refused("slot-destroyed", "an activation of this slot failed half-way");
  switch (opening.op) {
    case "prepare":
      return admitPrepare(slot, opening);
    case "activate":
      return admitActivate(slot, opening, facts.lastSeq);
    case "attach":
    case "observe":
      return admitReader(slot, opening);
  }
}

/** The slot after an activation that began and did not succeed (S2): nobody can tell what the engine has seen. */
export const destroySlot = (): Slot => ({ kind: "destroyed" });

function admitPrepare(slot: Slot, { slotId, claim }: OpeningOf<"prepare">): Admission {
  if (slot.kind !== "empty") return refused("slot-taken", `the slot is ${slot.kind}`);
  return { kind: "admitted", slot: { kind: "prepared", slotId, claim } };
}

function admitActivate(slot: Slot, opening: OpeningOf<"activate">, lastSeq: number): Admission {
  const { slotId, conversation, store } = opening;
  if (slot.kind !== "prepared") return refused("slot-not-prepared", `the slot is ${slot.kind}`);
  if (slot.slotId !== slotId) return refused("slot-other", `slot ${slotId} was named, another one is prepared`);
  if (lastSeq > 0) return refused("sequence-used", `${lastSeq} envelopes were numbered before the activation`);
  if (slot.claim !== undefined) {
    if (slot.claim.conversation !== conversation)
      return refused("conversation-other", "the slot was prepared for another conversation");
    if (store !== undefined && !sameJson(store, slot.claim.store))
      return refused("store-other", "the slot was prepared with another store");
  }
  return { kind: "admitted", slot: { kind: "active", slotId, conversation, store: store ?? slot.claim?.store } };
}

function admitReader(slot: Slot, { conversation }: OpeningOf<"attach" | "observe">): Admission {
  if (slot.kind !== "active") return refused("slot-not-prepared", `the slot is ${slot.kind}, no conversation runs`);
  if (slot.conversation !== conversation) return refused("conversation-other", "another conversation runs here");
  return { kind: "admitted", slot };
}

const refused = (reason: RefusalReason, detail: string): Admission => ({ kind: "refused", reason, detail });

const sameJson = (left: unknown, right: unknown): boolean => canonicalJson(left) === canonicalJson(right);
