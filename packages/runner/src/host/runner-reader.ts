// RunnerReader — a host's side of one conversation in a runner, over as many connections as it takes.
// Owns: the cursor.  Does not own: connections, where facts are stored, what becomes of an envelope.
//   H1 commit-receipt-cursor  a durable envelope is stored, then its receipt sent, then the cursor moves, then readers see it
//   H2 loud                   an envelope that cannot be stored or has no place ends the connection; the cursor stays behind it
//   H3 detached               a connection that ends is no end of a turn: nothing is made up for it

import type { Connection } from "../connection.ts";
import { RunnerFault, orderFault } from "../runner-fault.ts";
import { factOf } from "../state/fact-claim.ts";
import { advance, greet, nextOf, passGap, type HostCursor } from "../state/host-cursor.ts";
import type { ReplayGap } from "../state/retained-window.ts";
import { contractMismatches, RUNNER_PROTOCOL } from "../wire/contract.ts";
import { isDurable, type RunnerEnvelope } from "../wire/envelope.ts";
import { RunnerFrame, type HostFrame, type RunnerFrameOf } from "../wire/frame.ts";
import type { OpeningOf } from "../wire/opening.ts";
import { claimFact, type FactStore } from "./claim-fact.ts";

export interface RunnerReaderOptions {
  /** Everything of an attach or observe but the cursor. */
  readonly opening: Omit<OpeningOf<"attach"> | OpeningOf<"observe">, "cursor">;
  readonly facts: FactStore;
  /** Called in order, after the cursor passed the envelope. */
  readonly onEnvelope: (envelope: RunnerEnvelope) => void;
  /** What lies between was removed before this host read it: rebuild it from the transcript's store. */
  readonly onGap: (gap: ReplayGap) => void;
  /** `recreated`: what was not read from the former journal is lost. */
  readonly onGreeting?: (kind: "first" | "same" | "restarted" | "recreated") => void;
  /** Where an earlier host of this conversation stopped. Without it everything retained is read again. */
  readonly cursor?: HostCursor;
}

/** See the invariants at the top of the file. */
export class RunnerReader {
  readonly #options: RunnerReaderOptions;
  #cursor: HostCursor | undefined;

  constructor(options: RunnerReaderOptions) {
    this.#options = options;
    this.#cursor = options.cursor;
  }

  /** `undefined` until a runner greeted. */
  get cursor(): HostCursor | undefined {
    return this.#cursor;
  }

  /**
   * Attaches over a connection and reads until it closes (H3). Call it again with the next connection.
   *
   * @throws RunnerFault HF-9001 when the runner refuses, or is not what was required; HF-9002 when the order is broken; HF-9003 when a fact has
   *   other content; whatever the store throws. The connection is closed then
   */
  async read(connection: Connection): Promise<void> {
    const known = this.#cursor;
    const cursor = known === undefined ? { seq: 0 } : { journal: known.journal, seq: known.seq };
    let hello: RunnerFrameOf<"hello"> | undefined;
    let gaps = 0;
    try {
      await connection.send({ ...this.#options.opening, cursor });
      for await (const value of connection.frames) {
        const frame = RunnerFrame.parse(value);
        if (hello === undefined) {
          hello = this.#expectHello(frame);
          await this.#repeatReceipts(hello, connection);
        } else if (frame.op === "envelope") await this.#take(frame.envelope, hello, connection);
        else if (frame.op === "gap" && (gaps += 1) === 1) this.#passGap(frame);
        else throw orderFault("Host", `${frame.op} came where an envelope was expected`, { op: frame.op });
      }
    } finally {
      connection.close();
    }
  }

  #expectHello(frame: RunnerFrame): RunnerFrameOf<"hello"> {
    if (frame.op === "refused") throw refused(frame.reason, `${frame.detail} (${frame.code})`);
    if (frame.op !== "hello") throw orderFault("Host", `${frame.op} came before the greeting`, { op: frame.op });
    const { requirements, conversation } = this.#options.opening;
    if (frame.protocol !== RUNNER_PROTOCOL)
      throw refused("protocol", `the runner speaks ${frame.protocol}, this host ${RUNNER_PROTOCOL}`);
    const [mismatch] = contractMismatches(requirements, frame.contract);
    if (mismatch !== undefined) throw refused("contract", mismatch);
    if (frame.conversation !== conversation) throw refused("conversation-other", "the runner has another conversation");
    const { kind, cursor } = greet(this.#cursor, frame);
    this.#cursor = cursor;
    this.#options.onGreeting?.(kind);
    return frame;
  }

  /** Receipts can be lost with a connection; what lies behind the cursor was stored (H1). */
  async #repeatReceipts(hello: RunnerFrameOf<"hello">, connection: Connection): Promise<void> {
    const stored = hello.unreceipted.filter((seq) => seq <= (this.#cursor?.seq ?? 0));
    for (const seq of stored) await connection.send(receipt(hello, seq));
  }

  async #take(envelope: RunnerEnvelope, hello: RunnerFrameOf<"hello">, connection: Connection): Promise<void> {
    const cursor = this.#cursor;
    if (cursor === undefined || nextOf(cursor, envelope) === "duplicate") return;
    if (envelope.conversation !== hello.conversation)
      throw orderFault("Host", `envelope ${envelope.seq} is of another conversation`, { seq: envelope.seq });
    if (isDurable(envelope)) {
      await claimFact(this.#options.facts, factOf(hello.contract.engine, envelope));
      await connection.send(receipt(hello, envelope.seq));
    }
    this.#cursor = advance(cursor, envelope);
    this.#options.onEnvelope(envelope);
  }

  #passGap({ op: _op, ...gap }: RunnerFrameOf<"gap">): void {
    if (this.#cursor !== undefined) this.#cursor = passGap(this.#cursor, gap);
    this.#options.onGap(gap);
  }
}

const receipt = ({ attachment }: RunnerFrameOf<"hello">, seq: RunnerEnvelope["seq"]): HostFrame => ({
  op: "persisted",
  attachment,
  seq,
});

const refused = (reason: string, detail: string): RunnerFault =>
  new RunnerFault(
    "HF-9001",
    `Runner: it does not serve this host (${reason}): ${detail}. Nothing was read; correct what the reason names, or use another seat.`,
    { facts: { reason } },
  );
