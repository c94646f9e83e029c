import type { CaseFile, Objection } from "./case-file.ts";
import type { CheckedActor, CheckedMessage, CheckedRecord } from "./check-evidence.ts";

export interface StuckOptions {
  /** How late a timer may be, ms; default 5000. */
  readonly timerGraceMs?: number;
  /** Whether an actor that only waits for messages may do so for ever, by the states that its author tagged; default: yes. */
  readonly mayRest?: (record: CheckedRecord) => boolean;
}

const DEFAULT_GRACE_MS = 5000;

/**
 * Everything that waits has something checkable that will wake it. Judged of a namespace at rest: a job that runs counts as stuck,
 * so the evidence is to be read when nothing runs any more, and after the owners wrote their cursors (every 5 s).
 */
export function judgeStuck(file: CaseFile, options: StuckOptions): readonly Objection[] {
  const objections: Objection[] = [];
  for (const actor of file.actors.values()) objections.push(...ofActor(actor, file, options));
  for (const message of file.evidence.messages) objections.push(...ofMessage(message, file));
  for (const { partition, state } of file.evidence.leases) {
    if (state === "held") continue;
    objections.push({ code: "unowned", key: partition, expected: "a lease that somebody holds", found: state });
  }
  return objections;
}

function ofActor({ record, header }: CheckedActor, file: CaseFile, options: StuckOptions): readonly Objection[] {
  const { key, outbox, status, timers, snapshot } = record;
  const objections: Objection[] = [];
  const object = (code: string, expected: string, found: string): void =>
    void objections.push({ code, key, at: header.rev, expected, found });
  if (outbox.length > 0) object("unsent", "an empty outbox", outbox.map(({ kind, id }) => `${kind} ${id}`).join(", "));
  if (status !== "active" && status !== "closing") return objections;
  const dueBeforeMs = file.evidence.atMs - (options.timerGraceMs ?? DEFAULT_GRACE_MS);
  for (const [timer, { dueAtMs }] of Object.entries(timers)) {
    if (dueAtMs < dueBeforeMs) object("overdue", `timer ${timer} fired`, `due ${file.evidence.atMs - dueAtMs} ms ago`);
  }
  const living = Object.entries(snapshot.children).filter(([, child]) => child.status === "active");
  for (const [childId, child] of living) {
    if (child.kind === "job") object("job-pending", "no job that runs", `${childId} (${child.key})`);
    if (child.kind !== "actor") continue;
    const state = file.actors.get(child.key)?.record.status;
    if (state === undefined) object("child-missing", `a record of ${child.key}`, "none");
    else if (state !== "active" && state !== "closing")
      object("child-ended", `child ${childId} settled`, `it is ${state}`);
  }
  const isAsleep = living.length === 0 && Object.keys(timers).length === 0 && outbox.length === 0;
  if (status === "closing" && living.length === 0) object("closing", "a child that it waits for", "none");
  else if (isAsleep && options.mayRest?.(record) === false)
    object("no-wake", "something that wakes it", JSON.stringify(snapshot.value));
  return objections;
}

function ofMessage({ lane, key, seq, stream, messageId }: CheckedMessage, file: CaseFile): readonly Objection[] {
  if (lane === "parked") {
    return [{ code: "parked", key, at: seq, expected: "nothing set aside", found: `${messageId} in ${stream}` }];
  }
  const lease = file.evidence.leases.find(({ partition }) => key.startsWith(`${partition}.`));
  const record = file.actors.get(key)?.record;
  const generations = [lease?.generation, record?.considered.generation].filter((found) => found !== undefined);
  if (new Set(generations).size > 1) {
    return [
      { code: "generations", key, at: seq, expected: "one generation of its inbox", found: generations.join(", ") },
    ];
  }
  // The cursor also passes what nothing was stored for: refused messages, and those that changed nothing.
  const isConsidered = seq < (lease?.cursor ?? 0) || seq <= (record?.considered[lane] ?? 0);
  return isConsidered
    ? []
    : [{ code: "unread", key, at: seq, expected: "read by its owner", found: `${messageId} waits` }];
}
