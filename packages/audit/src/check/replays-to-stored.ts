import { incarnationOf, type CaseFile, type Objection } from "./case-file.ts";

/** What a replay needs: bytes, because it decodes with a reader of its own. */
export interface ReplayRequest {
  readonly key: string;
  readonly genesis: string;
  /** The stored frame. */
  readonly record: Uint8Array;
  /** Stored journal messages of the actor, in order; repeated ones included. */
  readonly journal: readonly Uint8Array[];
  /** SHA-256 → every payload that the namespace keeps outside of records and journals. */
  readonly blobs: ReadonlyMap<string, Uint8Array>;
}

export type ReplayAnswer =
  /** The journal leads to the stored record. */
  | { readonly kind: "same"; readonly steps: number }
  | { readonly kind: "different"; readonly rev: number; readonly expected: string; readonly found: string }
  /** It could not be replayed here: an unknown type or machine, an entry of an older build. */
  | { readonly kind: "not-replayed"; readonly why: string };

/** Runs the pure transitions of a journal again. Handed in, because this package shares no code with what it judges. */
export type Replay = (request: ReplayRequest) => ReplayAnswer;

export interface ReplayJudgement {
  readonly objections: readonly Objection[];
  readonly replayed: number;
}

export function judgeReplay({ actors, evidence }: CaseFile, replay: Replay): ReplayJudgement {
  const objections: Objection[] = [];
  let replayed = 0;
  const messages = new Map<string, Uint8Array[]>();
  for (const { key, bytes } of evidence.journal) {
    const known = messages.get(key);
    if (known === undefined) messages.set(key, [bytes]);
    else known.push(bytes);
  }
  for (const { record, bytes } of actors.values()) {
    const { key, genesis, rev } = record;
    const answer = replay({ key, genesis, record: bytes, journal: messages.get(key) ?? [], blobs: evidence.blobs });
    if (answer.kind === "same") replayed += 1;
    else if (answer.kind === "different")
      objections.push({ code: "different", key, at: answer.rev, expected: answer.expected, found: answer.found });
    else
      objections.push({
        code: "not-replayed",
        key,
        at: rev,
        expected: `${incarnationOf(record)} replayed`,
        found: answer.why,
      });
  }
  return { objections, replayed };
}
