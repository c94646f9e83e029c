import type { CellCounter, CellReport } from "./cell-host.ts";

export type Counters = Record<CellCounter, number>;

/** What is told about one partition: counts of what was done, and which of its actors do not get on, with the reason. */
export class PartitionReports {
  readonly counters: Counters = {
    committed: 0,
    dropped: 0,
    late: 0,
    duplicates: 0,
    stale: 0,
    unknown: 0,
    restored: 0,
    resent: 0,
    reissued: 0,
    adopted: 0,
    parked: 0,
    quarantined: 0,
  };
  /** Actor → what is reported of it now. */
  readonly open = new Map<string, CellReport>();

  count(counter: CellCounter): void {
    this.counters[counter] += 1;
  }

  report(key: string, state: CellReport): void {
    const known = this.open.get(key)?.kind;
    const hasCause = known === "quarantined" || known === "parked"; // why its messages are set aside
    if (state.kind !== "orphan-messages" || !hasCause) this.open.set(key, state);
  }

  resolved(key: string, ...kinds: readonly CellReport["kind"][]): void {
    const known = this.open.get(key)?.kind;
    if (known !== undefined && kinds.includes(known)) this.open.delete(key);
  }
}
