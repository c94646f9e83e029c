import type { ActorRecord } from "@holdfast/protocol";
import type { StuckReport } from "../partition-set.ts";
import type { MemoryFleet } from "./memory-fleet.ts";

/** What nodes have told of what is stuck on them, as a client would read it. */
export class StuckBoard {
  readonly #fleet: MemoryFleet;
  readonly #told = new Map<string, readonly StuckReport[]>();

  private constructor(fleet: MemoryFleet) {
    this.#fleet = fleet;
  }

  static async open(fleet: MemoryFleet): Promise<StuckBoard> {
    const board = new StuckBoard(fleet);
    await fleet.outsider.fleet.watch(({ key, bytes }) => {
      if (!key.startsWith("stuck.")) return;
      const told: { reports: readonly StuckReport[] } = JSON.parse(new TextDecoder().decode(bytes));
      board.#told.set(key, told.reports);
    });
    return board;
  }

  rows(node: string): readonly StuckReport[] {
    return this.#told.get(`stuck.${node}`) ?? [];
  }

  row(node: string, key: string, kind: string): StuckReport | undefined {
    return this.rows(node).find((row) => row.key === key && row.kind === kind);
  }

  /** Waits until a node has listed something; fails when that takes more than one sweep, and the heartbeat that tells it. */
  async listed(node: string, key: string, kind: string): Promise<StuckReport> {
    const { sweepMs = 30_000, heartbeatMs = 1000 } = this.#fleet.processes.at(-1)?.node.settings ?? {};
    await this.#fleet.until(
      `${node} lists ${key} as ${kind}`,
      () => this.row(node, key, kind) !== undefined,
      sweepMs + 2 * heartbeatMs,
    );
    const row = this.row(node, key, kind);
    if (row === undefined) throw new Error("unreachable: it was waited for");
    return row;
  }

  async gone(node: string, key: string, kind: string): Promise<void> {
    await this.#fleet.until(`${node} lists ${key} as ${kind} no more`, () => this.row(node, key, kind) === undefined);
  }
}

/** Replaces a stored record behind its owner's back. */
export async function rewrite(
  fleet: MemoryFleet,
  key: string,
  change: (record: ActorRecord) => ActorRecord,
  options: { readonly damaged?: boolean; readonly needsWork?: boolean } = {},
): Promise<void> {
  const [record, header] = [fleet.record(key), fleet.header(key)];
  const expectedSeq = (await fleet.outsider.records.load(key))?.seq ?? 0;
  if (record === undefined || header === undefined) throw new Error(`${key} was never stored`);
  const changed = change(record);
  const token = `rewritten-${expectedSeq}`;
  const needsWork = options.needsWork ?? header.needsWork;
  const bytes = fleet.codec.encodeRecord(changed, { ...header, token, needsWork, status: changed.status });
  if (options.damaged === true) bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 0xff;
  const outcome = await fleet.outsider.records.commit({ key, bytes, expectedSeq, token, needsWork });
  if (outcome.kind !== "committed") throw new Error(`${key} could not be rewritten: ${outcome.kind}`);
}
