import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { countDelegations, readEvidence, type DelegationFigures } from "@holdfast/audit";
import { countLedger, type LedgerFigures } from "@holdfast/ledger";
import type { Stack } from "../stack/start-stack.ts";
import { checkReport, type ReportCheck } from "./check-report.ts";
import type { SurveyOutcome } from "./run-survey.ts";

/** What the outside world and the stored state say about one survey. */
export interface MainJobFigures {
  readonly delegations: DelegationFigures;
  readonly ledger: LedgerFigures;
  readonly report: ReportCheck;
  readonly reportPath: string;
}

/** Counts a finished survey: delegations from the streams, attempts from the ledger's own log, the report against the files. */
export async function countMainJob(
  stack: Stack,
  outcome: SurveyOutcome,
  folder: string,
  maxBytes: number,
): Promise<MainJobFigures> {
  const { file } = stack;
  const evidence = await readEvidence({ servers: [file.natsUrl], namespace: file.namespace, ...file.operator });
  const delegations = countDelegations(evidence, { delegatingTools: ["task"], root: outcome.key });
  const keys = new Set(evidence.actors.map(({ key }) => key));
  const own = ownActors(evidence.actors, outcome.key);
  const lines = (await readFile(stack.ledgerFile, "utf8")).split("\n").slice(0, -1);
  const reportPath = join(stack.outputFolder, "report.md");
  return {
    delegations,
    ledger: countLedger(
      linesAbout(
        lines,
        (callId) => own.has(callId.slice(0, callId.indexOf("^"))) || !keys.has(callId.slice(0, callId.indexOf("^"))),
      ),
    ),
    report: await checkReport(reportPath, folder, maxBytes),
    reportPath,
  };
}

/** The root and all its descendants. */
function ownActors(
  actors: readonly { readonly key: string; readonly parent?: { readonly key: string } | undefined }[],
  root: string,
): ReadonlySet<string> {
  const own = new Set([root]);
  for (let grown = true; grown;) {
    grown = false;
    for (const { key, parent } of actors) {
      if (parent === undefined || !own.has(parent.key) || own.has(key)) continue;
      own.add(key);
      grown = true;
    }
  }
  return own;
}

/** Ledger lines of some calls, attempts numbered anew: applied lines point at attempts by number. */
function linesAbout(lines: readonly string[], isOwn: (callId: string) => boolean): readonly string[] {
  const numbers = new Map<number, number>();
  const kept: string[] = [];
  for (const text of lines) {
    const line: unknown = JSON.parse(text);
    if (typeof line !== "object" || line === null) continue;
    const { attempt, callId } = line as { readonly attempt?: number; readonly callId?: string };
    if (callId !== undefined) {
      if (!isOwn(callId)) continue;
      if (attempt !== undefined) numbers.set(attempt, numbers.size + 1);
      kept.push(JSON.stringify(attempt === undefined ? line : { ...line, attempt: numbers.get(attempt) }));
    } else if (attempt !== undefined && numbers.has(attempt))
      kept.push(JSON.stringify({ ...line, attempt: numbers.get(attempt) }));
  }
  return kept;
}

/** What was done to the fleet meanwhile; both undefined when nothing was. */
export interface Disturbance {
  readonly killed: string | undefined;
  readonly recoveredMs: number | undefined;
}

/** The scenario line of the main job. */
export function mainJobResult(figures: MainJobFigures, outcome: SurveyOutcome, disturbance: Disturbance) {
  const { delegations, ledger, report, reportPath } = figures;
  const rows = {
    decidedEqualsApplied:
      delegations.decided > 0 &&
      delegations.decided === delegations.applied &&
      delegations.decided === delegations.created,
    noDuplicates: delegations.duplicates === 0 && ledger.duplicateEffects === 0,
    noneLost: delegations.lost === 0 && delegations.settled === delegations.decided && outcome.status === "idle",
    reportMatchesFiles: report.differences.length === 0 && report.documents > 0,
  };
  return {
    scenario: "main-job",
    pass: Object.values(rows).every(Boolean),
    seed: 0,
    rows,
    leftOut: {},
    conversation: outcome.conversationId,
    decided: delegations.decided,
    created: delegations.created,
    attempts: ledger.attempts,
    settled: delegations.settled,
    applied: delegations.applied,
    duplicateEffects: ledger.duplicateEffects + delegations.duplicates,
    lost: delegations.lost,
    differences: report.differences,
    durationMs: outcome.durationMs,
    report: reportPath,
    ...disturbance,
  };
}
