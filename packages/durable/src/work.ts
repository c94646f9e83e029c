import { IDLE_TAG, isTerminal, type ActorRecord } from "@holdfast/protocol";
import type { CompiledMachine } from "./compile.ts";
import type { LocalEffect } from "./step-types.ts";

/**
 * Whether somebody has to look after this record at all: something waits to be sent, or the actor is not final and has a timer or a
 * child that has not settled. A sleeping actor that only waits for messages has no work.
 */
export function needsWork(record: ActorRecord): boolean {
  if (record.outbox.length > 0) return true; // also of a terminal record: its parent may not know yet
  if (isTerminal(record.status)) return false;
  if (Object.keys(record.timers).length > 0) return true;
  return Object.values(record.snapshot.children).some(({ status }) => status === "active");
}

/**
 * Whether something has to come to an actor that needs no work: a message that nobody is known to send, or, for a child at rest, the
 * question of whether its parent still waits for it.
 */
export const waitsForOthers = (compiled: CompiledMachine, record: ActorRecord): boolean =>
  !isTerminal(record.status) && (record.parent !== undefined || !isIdle(compiled, record));

/**
 * What a node that takes over this record has to do itself: arm its timers, run its jobs and hosts.
 * A job is to be adopted or run again by its crash policy, which is not decided here.
 */
export function localEffectsOf(record: ActorRecord): LocalEffect[] {
  if (record.status !== "active") return [];
  const local: LocalEffect[] = [];
  for (const [childId, { kind, status, key, src, input, blobs }] of Object.entries(record.snapshot.children)) {
    if (kind === "actor" || status !== "active") continue;
    const outside = blobs === undefined ? {} : { blobs };
    local.push({ kind: kind === "job" ? "startJob" : "startHost", childKey: key, childId, src, input, ...outside });
  }
  for (const [timer, { gen, dueAtMs }] of Object.entries(record.timers)) {
    local.push({ kind: "schedule", timer, gen, dueAtMs });
  }
  return local;
}

/** Whether the record's state exists in this version of the machine. */
export const fits = (compiled: CompiledMachine, record: ActorRecord): boolean => compiled.engine.fits(record.snapshot);

/** Tags of the active states. Empty when the state does not exist in this version. */
export const tagsOf = (compiled: CompiledMachine, record: ActorRecord): ReadonlySet<string> =>
  fits(compiled, record) ? compiled.engine.expectation(record.snapshot).tags : new Set();

/** Whether the author declared that the actor may rest in its state for ever. */
export const isIdle = (compiled: CompiledMachine, record: ActorRecord): boolean =>
  record.status === "active" && tagsOf(compiled, record).has(IDLE_TAG);

/** Something that will move an actor on, each of which can be checked. */
export type Wake =
  | { readonly kind: "timer"; readonly timer: string; readonly dueAtMs: number }
  | {
      readonly kind: "child";
      readonly childId: string;
      readonly childKind: "actor" | "job" | "host";
      readonly childKey: string;
    }
  /** An effect of its own is still on the way. */
  | { readonly kind: "outbox"; readonly effects: number }
  /** Nothing needs to: its state is tagged as idle, or it is final. */
  | { readonly kind: "rest" };

/** All that is expected to move the actor on. Empty: it is stuck, unless a message comes from somewhere. */
export function expectedWake(compiled: CompiledMachine, record: ActorRecord): readonly Wake[] {
  const wakes: Wake[] = [];
  if (isTerminal(record.status) || isIdle(compiled, record)) wakes.push({ kind: "rest" });
  for (const [timer, { dueAtMs }] of Object.entries(record.timers)) wakes.push({ kind: "timer", timer, dueAtMs });
  for (const [childId, { kind, key, status }] of Object.entries(record.snapshot.children)) {
    if (status === "active") wakes.push({ kind: "child", childId, childKind: kind, childKey: key });
  }
  if (record.outbox.length > 0) wakes.push({ kind: "outbox", effects: record.outbox.length });
  return wakes;
}
