import { differences, type Difference, type ReplayEnd, type StoredStep } from "holdfast";

/** A step as it is shown. */
export interface StepView {
  /** Sequence in the journal stream; absent while the entry waits in the outbox of its record. */
  readonly seq: number | undefined;
  readonly rev: number;
  readonly cause: string;
  readonly event: string;
  readonly from: unknown;
  readonly to: unknown;
  readonly status: string;
  readonly effects: readonly { readonly id: string; readonly kind: string }[];
  readonly atMs: number;
  readonly writer: string | undefined;
  /** What it changed in the context, by path. */
  readonly changes: readonly Difference[];
}

export function stepViews(steps: readonly StoredStep[]): readonly StepView[] {
  return steps.map(({ seq, entry, record }, index) => {
    const { rev, cause, event, from, to, status, atMs, writer } = entry;
    const before = steps[index - 1]?.record.snapshot.context ?? {};
    return {
      seq,
      rev,
      cause: `${cause.kind} ${cause.id}`,
      event: event.type,
      from,
      to,
      status,
      effects: record.outbox.map(({ id, kind }) => ({ id, kind })),
      atMs,
      writer: writer === undefined ? undefined : `${writer.incarnation} epoch ${writer.epoch}`,
      changes: differences(before, record.snapshot.context, "context"),
    };
  });
}

/** A step for people: one line, and one more for each change. */
export function stepText({ seq, rev, cause, event, from, to, effects, changes }: StepView): string {
  const decided = effects.map(({ id, kind }) => `${kind} ${id}`).join(", ");
  const line = `${seq ?? "unsent"}  ${rev}  ${cause}  ${event}  ${stateText(from)} → ${stateText(to)}  ${decided}`;
  return [line, ...changes.map((change) => `      ${changeText(change)}`)].join("\n");
}

/** `+` appeared, `-` went, `~` changed. */
export function changeText({ path, ...sides }: Difference): string {
  if (!("before" in sides)) return `+ ${path} = ${valueText(sides.after)}`;
  if (!("after" in sides)) return `- ${path} (was ${valueText(sides.before)})`;
  return `~ ${path}: ${valueText(sides.before)} → ${valueText(sides.after)}`;
}

/** How a replay ended, for people. */
export function endText(end: ReplayEnd, steps: number): string {
  switch (end.kind) {
    case "complete":
      return `${steps} steps replayed`;
    case "mismatch":
      return `mismatch at revision ${end.rev}: ${end.path} is ${valueText(end.expected)} in the journal, the machine makes it ${valueText(end.found)}`;
    case "contradiction":
      return `contradiction at revision ${end.rev}: ${end.path} is stored as ${valueText(end.first)} and as ${valueText(end.second)}`;
    case "gap":
      return `gap: revision ${end.rev} is not in the journal, the next one is ${end.found}`;
    case "unknown-machine":
      return `revision ${end.rev} was decided by machine ${end.wanted}; this build has ${end.known.join(", ")}`;
    case "unreplayable":
      return `revision ${end.rev} cannot be replayed: ${end.why}`;
  }
}

const stateText = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined ? "·" : JSON.stringify(value);

const MAX_VALUE = 100;
function valueText(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length <= MAX_VALUE ? text : `${text.slice(0, MAX_VALUE)}…`;
}
