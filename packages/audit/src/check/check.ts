import { judgeCommands } from "./accepted-applied-once.ts";
import { findingsOf, openCase, type CaseFile } from "./case-file.ts";
import type { CheckEvidence } from "./check-evidence.ts";
import { judgeDelegations, settledKeys } from "./delegations-settled-once.ts";
import { judgeJournals } from "./journal-gap-free.ts";
import { judgeLedger } from "./ledger-clean.ts";
import { judgeStuck, type StuckOptions } from "./nothing-stuck.ts";
import { judgeOwners } from "./one-owner-per-epoch.ts";
import { judgeReplay, type Replay } from "./replays-to-stored.ts";
import { Claim, type Finding, type Verdict } from "./verdict.ts";

export interface CheckOptions extends StuckOptions {
  /** Without it the row `replaysToStored` is left out. */
  readonly replay?: Replay;
  /** Nodes remove what ended long ago: an ended actor that is gone is no contradiction. Default: nothing is removed. */
  readonly retention?: boolean;
}

/**
 * Judges a namespace at rest by what is stored alone. Pure; trusts nothing that the runtime says about itself.
 *
 * @returns one row per claim that could be judged, and everything that contradicts one
 */
export function check(evidence: CheckEvidence, options: CheckOptions = {}): Verdict {
  const file = openCase(evidence, options.retention === true);
  const replay = options.replay === undefined ? undefined : judgeReplay(file, options.replay);
  const ledger = evidence.ledger === undefined ? undefined : judgeLedger(evidence.ledger);
  const leftOut: Partial<Record<Claim, string>> = {
    ...(replay === undefined && { replaysToStored: "no replay was handed in" }),
    ...(ledger === undefined && { ledgerClean: "no ledger took part" }),
  };
  const findings: readonly Finding[] = [
    ...findingsOf("acceptedAppliedOnce", judgeCommands(file)),
    ...findingsOf("delegationsSettledOnce", judgeDelegations(file)),
    ...findingsOf("journalGapFree", judgeJournals(file)),
    ...findingsOf("replaysToStored", replay?.objections ?? []),
    ...findingsOf("oneOwnerPerEpoch", judgeOwners(file)),
    ...findingsOf("nothingStuck", judgeStuck(file, options)),
    ...findingsOf("ledgerClean", ledger?.objections ?? []),
  ];
  const rows: Partial<Record<Claim, boolean>> = {};
  for (const claim of Claim.options) {
    if (leftOut[claim] === undefined) rows[claim] = findings.every((finding) => finding.claim !== claim);
  }
  const figures = { ...figuresOf(file), replayed: replay?.replayed ?? 0, ledgerEffects: ledger?.effects ?? 0 };
  return { pass: findings.length === 0, rows, leftOut, findings: [...findings], figures };
}

function figuresOf({ evidence, actors, journals }: CaseFile): Omit<Verdict["figures"], "replayed" | "ledgerEffects"> {
  const all = [...journals.values()];
  const entries = all.flatMap((journal) => journal.entries);
  const epochs = new Set(
    entries.flatMap(({ key, writer }) =>
      writer === undefined ? [] : [`${key.slice(0, key.indexOf("."))} ${writer.epoch}`],
    ),
  );
  return {
    actors: actors.size,
    entries: entries.length,
    repeated: all.reduce((sum, { repeated }) => sum + repeated, 0),
    commands: new Set(evidence.accepted.map(({ key, messageId }) => `${key} ${messageId}`)).size,
    applied: entries.filter(({ cause, principal }) => principal !== undefined && cause.kind !== "settled").length,
    children: [...actors.values()].filter(({ record }) => record.parent !== undefined).length,
    settled: all.reduce((sum, journal) => sum + settledKeys(journal).length, 0),
    epochs: epochs.size,
  };
}
