import type { Effect } from "@holdfast/protocol";
import { isMessage } from "../effect-envelopes.ts";
import type { Counterpart, WaitingActor } from "./counterpart.ts";

/** What a node can do itself about a counterpart that is not there. */
export type Repair =
  /** Loads the actor, which sends its outbox and starts its jobs. */
  | { readonly kind: "load" }
  | { readonly kind: "arm"; readonly timer: string; readonly gen: string; readonly dueAtMs: number }
  /** Tells the actor again what became of its child. */
  | {
      readonly kind: "resettle";
      readonly child: { readonly key: string; readonly genesis: string };
      readonly settled: Effect;
    };

export type FindingKind =
  | "child-missing"
  | "child-ended"
  | "child-set-aside"
  | "parent-gone"
  | "unsent"
  | "overdue"
  | "unrun"
  | "unwoken";

/** One thing that will not go on by itself, as far as one look tells. */
export interface Finding {
  readonly kind: FindingKind;
  /** What it is about: the same thing found twice has the same one. */
  readonly subject: string;
  readonly why: string;
  /** What a person can do. */
  readonly fix: string;
  readonly repair?: Repair | undefined;
  /** A message that waits for the actor may be what it waits for. */
  readonly mayBeMail: boolean;
}

/** How late a deadline may be before that is worth a word, ms: what falls due is acted on after the inbox was read up to then. */
const LATE_MS = 5000;

/**
 * What of an actor has no counterpart (I9). One look is no verdict: everything that is on its way looks like that for a moment. Pure.
 *
 * @param nowMs  broker time
 */
export function judgeActor(actor: WaitingActor, nowMs: number): readonly Finding[] {
  if (actor.counterparts.every(({ kind }) => kind === "parent")) return [unwoken(actor), ...judgeAll(actor, nowMs)];
  return judgeAll(actor, nowMs);
}

const judgeAll = (actor: WaitingActor, nowMs: number): readonly Finding[] =>
  actor.counterparts.flatMap((counterpart) => judge(actor.key, counterpart, nowMs) ?? []);

function judge(key: string, counterpart: Counterpart, nowMs: number): Finding | undefined {
  switch (counterpart.kind) {
    case "child":
      return judgeChild(key, counterpart);
    case "parent":
      return counterpart.isWaiting ? undefined : orphan(key, counterpart.parentKey);
    case "timer":
      return judgeTimer(key, counterpart, nowMs);
    case "work":
      return counterpart.isRun ? undefined : unrun(key, counterpart);
    case "outbox":
      return unsent(counterpart);
    case "rest":
      return undefined;
  }
}

function judgeChild(
  key: string,
  { childId, childKey, state }: Extract<Counterpart, { kind: "child" }>,
): Finding | undefined {
  switch (state.kind) {
    case "alive":
      return undefined;
    case "missing":
      return {
        kind: "child-missing",
        subject: childKey,
        why: `child ${childId} (${childKey}) has no record, and no start for it is on the way: ${state.why}`,
        fix: `send ${key} what ends its wait, or restore the bucket that had the record`,
        mayBeMail: true,
      };
    case "ended":
      return {
        kind: "child-ended",
        subject: childKey,
        why: `child ${childId} (${childKey}) has ended (${state.status}), and its parent does not take note`,
        fix: `holdfast stuck retry ${key}; if that does not help, send it what ends its wait`,
        repair:
          state.settled === undefined
            ? undefined
            : { kind: "resettle", child: { key: childKey, genesis: state.genesis }, settled: state.settled },
        mayBeMail: true,
      };
    case "setAside":
      return {
        kind: "child-set-aside",
        subject: childKey,
        why: `child ${childId} (${childKey}) was set aside: ${state.why}`,
        fix: `holdfast stuck retry ${childKey}, once its cause is dealt with`,
        mayBeMail: false,
      };
  }
}

const orphan = (key: string, parentKey: string): Finding => ({
  kind: "parent-gone",
  subject: parentKey,
  why: `its parent ${parentKey} is gone or does not wait for it: nobody takes its result, or its answer`,
  fix: `end it with a message of its type, or stop it: holdfast stuck park ${key}`,
  mayBeMail: true,
});

function judgeTimer(
  key: string,
  { timer, gen, dueAtMs, isHeld }: Extract<Counterpart, { kind: "timer" }>,
  nowMs: number,
): Finding | undefined {
  const lateMs = nowMs - dueAtMs;
  if (lateMs < LATE_MS && (isHeld || lateMs >= 0)) return undefined;
  return {
    kind: "overdue",
    subject: `${timer}/${gen}`,
    why: isHeld || lateMs >= 0 ? `timer ${timer} was due at ${iso(dueAtMs)}` : `timer ${timer} is held by no node`,
    fix: `holdfast stuck retry ${key}: it arms its timers anew`,
    repair: isHeld ? undefined : { kind: "arm", timer, gen, dueAtMs },
    mayBeMail: true,
  };
}

const unrun = (key: string, { childId, childKey }: Extract<Counterpart, { kind: "work" }>): Finding => ({
  kind: "unrun",
  subject: childKey,
  why: `job ${childId} has not settled, and no node runs it`,
  fix: `holdfast stuck retry ${key}: it asks for its jobs anew`,
  repair: { kind: "load" },
  mayBeMail: true,
});

function unsent({ oldest, effects, isInMemory }: Extract<Counterpart, { kind: "outbox" }>): Finding {
  const target = isMessage(oldest) ? ` to ${oldest.to}` : "";
  return {
    kind: "unsent",
    subject: oldest.id,
    why: `${effects} effects have not left, the oldest is ${oldest.kind} ${oldest.id}${target}`,
    fix: `look whether its stream takes messages: holdfast doctor`,
    repair: isInMemory ? undefined : { kind: "load" },
    mayBeMail: false,
  };
}

const unwoken = ({ key, seq }: WaitingActor): Finding => ({
  kind: "unwoken",
  subject: String(seq),
  why: "it waits for a message and nothing else, and no state of it is tagged as one in which it may rest",
  fix: `send ${key} what it waits for; give the state an expiry, or the tag "idle" if it may rest for ever`,
  mayBeMail: true,
});

const iso = (ms: number): string => new Date(ms).toISOString();
