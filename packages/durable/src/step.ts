// step: one message, one macrostep, one new record. Pure: plain data in, plain data out, the same for the same arguments.
//
// Owns: which message may be applied at all.  Does not own: storing, sending, waiting.
//   P1 unharmed      a dropped or ignored message leaves the record exactly as it is
//   P2 once          duplicates, stale generations and other incarnations are dropped with a reason
//   P3 terminal      a final status is final: nothing more is taken but what a type notes about its ended actors, in their context alone
//   P4 outside       whether a message came from outside is told by the caller, who knows its subject; never by its content
import { isTerminal, parseActorKey, RuntimeFault, type ActorRecord, type ChildEntry } from "@holdfast/protocol";
import { ActorAddress } from "./actor-address.ts";
import { noteAfterEnd } from "./after-end.ts";
import { applyEvent, eventDropReason } from "./apply-event.ts";
import type { CompiledMachine } from "./compile.ts";
import { finishStep, type Macrostep } from "./finish-step.ts";
import { inputHash } from "./input-hash.ts";
import { digestOf, remember } from "./remembered-ids.ts";
import { DELIVER_EVENT, doneType, errorType } from "./reserved-events.ts";
import { runInitial, runTransition } from "./run-machine.ts";
import type {
  DropReason,
  SettledMessage,
  StartMessage,
  StepEnv,
  StepMessage,
  StepResult,
  StopMessage,
  TimerMessage,
} from "./step-types.ts";

const dropped = (reason: DropReason): StepResult => ({ kind: "dropped", reason });

/**
 * Applies one message to an actor.
 *
 * @param record  undefined when the actor does not exist; never changed, may be stepped again after a failed commit
 * @throws RuntimeFault HF-2005 when the record's state does not exist in this machine: park the actor, commit nothing
 * @throws RuntimeFault HF-1002 when the key of a start message is not valid, or the namespace lacks the pool of a child: commit nothing
 */
export function step(
  compiled: CompiledMachine,
  record: ActorRecord | undefined,
  message: StepMessage,
  env: StepEnv,
): StepResult {
  if (message.kind === "start")
    return record === undefined ? start(compiled, message, env) : dropped("already-started");
  if (record === undefined) return dropped("not-started");
  const isNotable = record.status !== "active" && message.kind === "event";
  const noted = isNotable ? noteAfterEnd(compiled, record, message, env) : undefined;
  if (noted !== undefined) return noted;
  if (isTerminal(record.status)) return dropped("terminal"); // P3
  switch (message.kind) {
    case "event":
      return applyEvent(compiled, record, message, env);
    case "settled":
      return applySettled(compiled, record, message, env);
    case "timer":
      return applyTimer(compiled, record, message, env);
    case "stop":
      return applyStop(compiled, record, message, env);
  }
}

function start(compiled: CompiledMachine, message: StartMessage, env: StepEnv): StepResult {
  const record = unstarted(compiled, message, env);
  return finishStep({
    compiled,
    env,
    record,
    ...runInitial(compiled, record, message.input, env),
    cause: { kind: "start", id: message.id },
    event: { type: "xstate.init", ...(message.input === undefined ? {} : { input: message.input }) },
    origin: {
      principal: message.principal,
      ...(message.parent === undefined ? {} : { parent: message.parent }),
    },
    from: undefined,
  });
}

function unstarted(compiled: CompiledMachine, message: StartMessage, { nowMs, textHash }: StepEnv): ActorRecord {
  const { key, genesis, parent, principal, generation } = message;
  const { type, id } = parseActorKey(key);
  if (type !== compiled.type) {
    throw new RuntimeFault(
      "HF-1002",
      `${key}: expected an actor of type "${compiled.type}". Step it with the machine that is registered for "${type}".`,
    );
  }
  return {
    format: 1,
    key,
    type,
    id,
    genesis,
    ...(parent === undefined ? {} : { parent }),
    principal,
    createdAtMs: nowMs,
    ...(parent === undefined && { inputHash: inputHash(message.input) }),
    machine: compiled.stamp,
    rev: 0,
    status: "active",
    snapshot: { status: "active", value: {}, context: undefined, historyValue: {}, children: {} },
    timers: {},
    outbox: [],
    linksOut: {},
    marks: {},
    messageIds: remember(new Uint8Array(0), digestOf(message.id, textHash)),
    considered: { generation, inbox: 0, control: 0 },
    directory: {},
  };
}

function applySettled(
  compiled: CompiledMachine,
  record: ActorRecord,
  { id, childId, childKey, event, toGenesis, ran }: SettledMessage,
  env: StepEnv,
): StepResult {
  if (toGenesis !== record.genesis) return dropped("other-incarnation");
  const child = livingChild(record, childId, childKey);
  if (child === undefined) return dropped("stale-child");
  const isDone = event.type === doneType(childId);
  if (!isDone && event.type !== errorType(childId)) return dropped("reserved-event");

  const settled = withSettledChild(record, childId, child, isDone ? "done" : "error");
  const common = {
    compiled,
    env,
    record: settled,
    cause: { kind: "settled", id },
    event,
    ...(ran === undefined ? {} : { origin: { ran } }),
    from: record.snapshot.value,
  } as const;
  if (record.status === "closing") return finishStep({ ...common, decisions: [], spawned: [] });
  return finishStep({ ...common, ...runTransition(compiled, record, event, env, settled.snapshot.children) });
}

function livingChild({ snapshot }: ActorRecord, childId: string, childKey: string): ChildEntry | undefined {
  const child = Object.hasOwn(snapshot.children, childId) ? snapshot.children[childId] : undefined;
  return child?.key === childKey && child.status === "active" ? child : undefined;
}

/**
 * Why `step` would drop a message whatever its content is: payloads that are kept outside need not be fetched for it.
 * @returns undefined when the machine may have to see it
 */
export function dropReasonOf(
  record: ActorRecord | undefined,
  message: StepMessage,
  env: StepEnv,
): DropReason | undefined {
  if (message.kind === "start") return record === undefined ? undefined : "already-started";
  if (record === undefined) return "not-started";
  if (isTerminal(record.status)) return "terminal"; // what is noted after the end is small
  switch (message.kind) {
    case "event":
      return eventDropReason(record, message, env);
    case "settled":
      if (message.toGenesis !== record.genesis) return "other-incarnation";
      return livingChild(record, message.childId, message.childKey) === undefined ? "stale-child" : undefined;
    case "timer":
    case "stop":
      return undefined;
  }
}

function withSettledChild(
  record: ActorRecord,
  childId: string,
  child: ChildEntry,
  status: "done" | "error",
): ActorRecord {
  const { input: _done, blobs: _outside, ...entry } = child; // needed to run it again, which will not happen
  const children = { ...record.snapshot.children, [childId]: { ...entry, status } };
  return { ...record, snapshot: { ...record.snapshot, children } };
}

function applyTimer(compiled: CompiledMachine, record: ActorRecord, message: TimerMessage, env: StepEnv): StepResult {
  const { timer, gen } = message;
  const entry = Object.hasOwn(record.timers, timer) ? record.timers[timer] : undefined;
  if (entry === undefined || entry.gen !== gen) return dropped("stale-timer");
  const { [timer]: _fired, ...timers } = record.timers;
  const { event } = entry;
  const common = {
    compiled,
    env,
    record: { ...record, timers },
    cause: { kind: "timer", id: `${timer}/${gen}` },
    event,
    from: record.snapshot.value,
  } as const;
  const delayedSend = delayedSendOf(entry, record);
  if (delayedSend === undefined) return finishStep({ ...common, ...runTransition(compiled, record, event, env) });
  const previous = compiled.live.get(record.snapshot);
  return finishStep({ ...common, previous, decisions: [delayedSend], spawned: [] });
}

/** A timer that is not for the machine itself but a send that was asked for earlier. */
function delayedSendOf(
  entry: ActorRecord["timers"][string],
  record: ActorRecord,
): Macrostep["decisions"][number] | undefined {
  const { to, toGenesis, event } = entry;
  if (to !== record.key) return { kind: "send", target: { to: new ActorAddress(to, to, toGenesis) }, event };
  if (event.type !== DELIVER_EVENT || typeof event["to"] !== "string") return undefined;
  return { kind: "send", target: { to: new ActorAddress(event["to"], event["to"]) }, event: event["event"] };
}

function applyStop(compiled: CompiledMachine, record: ActorRecord, { id }: StopMessage, env: StepEnv): StepResult {
  return finishStep({
    compiled,
    env,
    record,
    cause: { kind: "stop", id },
    event: { type: "xstate.stop" },
    decisions: [],
    spawned: [],
    from: record.snapshot.value,
    stopped: true,
  });
}
