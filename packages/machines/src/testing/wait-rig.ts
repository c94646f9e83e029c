import type { PlainEvent, Principal } from "@holdfast/protocol";
import { noEffectOf } from "../no-effect.ts";
import { ownerWaitMachine } from "../owner-wait.machine.ts";
import { startChild, type ChildRig } from "./child-rig.ts";

export const ANNA: Principal = { kind: "person", id: "anna", roles: [] };
export const BEN: Principal = { kind: "person", id: "ben", roles: [] };
export const CARA: Principal = { kind: "person", id: "cara", roles: [] };
export const AGENT: Principal = { kind: "agent", id: "chief", roles: [] };

/** A question that was asked by a conversation: it says itself when it waits for the answer, and that it has it. */
export const askAs = (changes: object = {}): ChildRig =>
  startChild(ownerWaitMachine, {
    conversationId: "c1",
    agent: "chief",
    callId: "c",
    childId: "call-1-c",
    question: "Ship it?",
    options: ["yes", "no"],
    ...changes,
  });

export const answer = (principal: Principal, value: unknown = "yes", answerId = `a-${principal.id}`): PlainEvent => ({
  type: "answer",
  answerId,
  value,
  principal,
});
export const decline = (principal: Principal, answerId = `d-${principal.id}`): PlainEvent => ({
  type: "decline",
  answerId,
  principal,
});
export const revoke = (principal: Principal, answerId = `a-${principal.id}`): PlainEvent => ({
  type: "revoke",
  answerId,
  principal,
});

/** What its asker was told of the outcome. */
export const offers = (rig: ChildRig): readonly unknown[] =>
  rig.received.filter(({ type }) => type === "waitSettled").map((event) => event["output"]);

/** Why an event changes nothing now. */
export function whyNot(rig: ChildRig, event: PlainEvent): ReturnType<typeof noEffectOf> {
  const { context, value } = rig.child.getSnapshot();
  return noEffectOf("ownerWait", context, value, event);
}
