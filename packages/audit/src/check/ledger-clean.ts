import { z } from "zod";
import type { Objection } from "./case-file.ts";

const Line = z.discriminatedUnion("line", [
  z.looseObject({
    line: z.literal("attempt"),
    attempt: z.number(),
    callId: z.string(),
    idempotencyKey: z.string(),
  }),
  z.looseObject({ line: z.literal("applied"), attempt: z.number() }),
  z.looseObject({ line: z.literal("settlement"), callId: z.string(), outcome: z.string() }),
]);

export interface LedgerJudgement {
  readonly objections: readonly Objection[];
  /** Effects that happened. */
  readonly effects: number;
}

/** Counts the ledger's log by itself: no key took effect twice, no call asked under two keys, none after it was settled, none too few. */
export function judgeLedger(lines: readonly string[]): LedgerJudgement {
  const objections: Objection[] = [];
  const object = (code: string, key: string, at: number, expected: string, found: string): void =>
    void objections.push({ code, key, at, expected, found });
  const attempts = new Map<number, { readonly callId: string; readonly idempotencyKey: string }>();
  const keyOfCall = new Map<string, string>();
  const effectOf = new Map<string, number>();
  const withEffect = new Set<string>();
  const outcomes = new Map<string, string>();
  lines.forEach((text, index) => {
    const at = index + 1;
    const line = readLine(text);
    if (line === undefined) return object("bad-line", "ledger", at, "a line of the ledger", "another one");
    switch (line.line) {
      case "attempt": {
        const { attempt, callId, idempotencyKey } = line;
        attempts.set(attempt, { callId, idempotencyKey });
        const known = keyOfCall.get(callId);
        if (known !== undefined && known !== idempotencyKey)
          object("two-keys", callId, at, `key ${known}`, idempotencyKey);
        keyOfCall.set(callId, idempotencyKey);
        return;
      }
      case "applied": {
        const source = attempts.get(line.attempt);
        if (source === undefined) return object("bad-line", "ledger", at, "an effect of an attempt", `${line.attempt}`);
        const { callId, idempotencyKey } = source;
        const before = effectOf.get(idempotencyKey);
        if (before !== undefined) object("effect-twice", idempotencyKey, at, "one effect", `already in line ${before}`);
        if (outcomes.has(callId)) object("effect-late", callId, at, "no effect after its settlement", "an effect");
        effectOf.set(idempotencyKey, at);
        withEffect.add(callId);
        return;
      }
      case "settlement":
        if (!outcomes.has(line.callId)) outcomes.set(line.callId, line.outcome);
    }
  });
  for (const [callId, outcome] of outcomes) {
    if (outcome === "completed" && !withEffect.has(callId))
      object("effect-lost", callId, lines.length, "an effect: it was settled as completed", "none");
  }
  return { objections, effects: effectOf.size };
}

function readLine(text: string): z.infer<typeof Line> | undefined {
  try {
    return Line.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
