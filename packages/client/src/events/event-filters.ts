import { EventKind, RuntimeFault, type Subjects } from "@holdfast/protocol";

const TOKEN = /^(\*|[A-Za-z0-9_-]{1,80})$/;

/**
 * Filters of the events stream for what a subscriber asks for: NATS wildcards, with or without `hf.<ns>.` in front.
 *
 * @returns one filter, or one for each kind when the kind is left open
 * @throws RuntimeFault HF-1001 when it can match no public event
 */
export function eventFilters(subjects: Pick<Subjects, "ns" | "event">, subject: string): readonly string[] {
  const prefix = `hf.${subjects.ns}.`;
  const asked = subject.startsWith(prefix) ? subject.slice(prefix.length) : subject;
  const [kind = "", ...name] = asked.split(".");
  const fits = name.every((token, at) => TOKEN.test(token) || (token === ">" && at === name.length - 1));
  if (kind === ">" && name.length === 0) return EventKind.options.map((each) => subjects.event(each, [">"]));
  if (fits && name.length > 0 && asked.length <= 200) {
    if (kind === "*") return EventKind.options.map((each) => subjects.event(each, name));
    const known = EventKind.safeParse(kind).data;
    if (known !== undefined) return [subjects.event(known, name)];
  }
  throw new RuntimeFault(
    "HF-1001",
    `Subject "${subject.slice(0, 100)}": expected task.<agent>.<taskId>.<event>, conversation.<agent>.<id>.<event>, wait.<waitId>.<event> or wallet.<walletId>.<event>, with * for a token and > for the rest. Correct it.`,
  );
}
