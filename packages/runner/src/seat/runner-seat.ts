// RunnerSeat — one runner: its slot, its journal, who is attached.
// Owns: the slot, the attachment, what the admitted token was.  Does not own: the journal's file, what carries connections, the engine.
//   R1 token-first       the token is compared, in constant time, before anything that the seat holds is looked at
//   R2 one-opening       openings are admitted one after another, so none sees a slot in between
//   R3 cursor-first      a malformed or impossible attach is refused before the attached host is let go
//   R4 fenced            from the step in which another host is attached, nothing is sent to the former one and no frame of it counts
//   R5 host-may-die      a connection that ends changes neither the slot nor the journal

import { toPlainFault } from "@holdfast/protocol";
import type { Connection } from "../connection.ts";
import type { RunnerJournal } from "../journal/runner-journal.ts";
import { admitSpeaker, isAttached, type Attachment } from "../state/attachment.ts";
import { admitOpening, destroySlot, EMPTY_SLOT, type Slot } from "../state/slot.ts";
import { RUNNER_PROTOCOL, type EngineContract } from "../wire/contract.ts";
import { EnvelopeSeq } from "../wire/coordinates.ts";
import { HostFrame, MAX_NAMED_UNRECEIPTED, type RunnerFrame } from "../wire/frame.ts";
import { Opening, SlotId, type OpeningOf, type TranscriptStore } from "../wire/opening.ts";
import { readToken, sameSecret } from "./activation-token.ts";

/** The engine beside a runner. A call that rejects has left nothing running. */
export interface Engine {
  readonly contract: EngineContract;
  /** Starts it, ahead of any conversation or for the claimed one. */
  start(opening: OpeningOf<"prepare">): Promise<void>;
  /** Binds it to its conversation. Called once. */
  activate(conversation: string, store: TranscriptStore | undefined): Promise<void>;
}

export interface RunnerSeatOptions {
  readonly journal: RunnerJournal;
  readonly engine: Engine;
  /** Read at each prepare: a runner starts before the file is there. */
  readonly tokenFile: string;
}

interface Attached {
  readonly attachment: Attachment;
  readonly connection: Connection;
}

/** See the invariants at the top of the file. */
export class RunnerSeat {
  readonly #journal: RunnerJournal;
  readonly #engine: Engine;
  readonly #tokenFile: string;
  #slot: Slot = EMPTY_SLOT;
  #admittedToken: string | undefined;
  #attached: Attached | undefined;
  #openings: Promise<unknown> = Promise.resolve();

  private constructor({ journal, engine, tokenFile }: RunnerSeatOptions) {
    this.#journal = journal;
    this.#engine = engine;
    this.#tokenFile = tokenFile;
  }

  /** A seat over a journal. If the journal has a conversation, its engine died with the runner before: the host is told by an envelope. */
  static async open(options: RunnerSeatOptions): Promise<RunnerSeat> {
    const seat = new RunnerSeat(options);
    const { conversation } = options.journal;
    if (conversation === undefined) return seat;
    seat.#slot = { kind: "active", slotId: SlotId.parse("restored"), conversation, store: undefined };
    await options.journal.append({
      op: "error",
      code: "engine-lost",
      message: "The runner started again; what its engine was doing has ended.",
    });
    return seat;
  }

  get slot(): Slot["kind"] {
    return this.#slot.kind;
  }

  /** Serves one connection until it closes. Never rejects: what is wrong with a connection ends that connection. */
  async serve(connection: Connection): Promise<void> {
    const frames = connection.frames[Symbol.asyncIterator]();
    try {
      const first = await frames.next();
      if (first.done === true) return;
      const admitted = await this.#inTurn(() => this.#admit(first.value, connection));
      if (admitted !== undefined) await this.#serveReader(admitted, frames);
    } catch (error) {
      const { code, message } = toPlainFault(error, "HF-9002");
      await connection.send({ op: "refused", code, reason: "fault", detail: message } satisfies RunnerFrame);
    } finally {
      connection.close();
    }
  }

  async #admit(
    frame: unknown,
    connection: Connection,
  ): Promise<(Attached & { readonly opening: ReaderOpening }) | undefined> {
    const parsed = Opening.safeParse(frame);
    if (!parsed.success) return this.#refuse(connection, "HF-1001", "opening", "the first frame is no opening");
    const opening = parsed.data;
    const tokenFits = await this.#tokenFits(opening);
    const admission = admitOpening(this.#slot, opening, {
      tokenFits,
      contract: this.#engine.contract,
      lastSeq: this.#journal.lastSeq,
    });
    if (admission.kind === "refused") return this.#refuse(connection, "HF-9001", admission.reason, admission.detail);
    this.#admittedToken = opening.token;
    switch (opening.op) {
      case "prepare":
        return this.#prepare(opening, admission.slot, connection);
      case "activate":
        return this.#activate(opening, admission.slot, connection);
      case "attach":
      case "observe":
        return this.#attach(opening, connection);
    }
  }

  /** R1. A runner that restarted has admitted nobody yet, so it looks into the file for every opening. */
  async #tokenFits(opening: Opening): Promise<boolean> {
    const admitted = opening.op === "prepare" ? undefined : this.#admittedToken;
    const expected = admitted ?? (await readToken(this.#tokenFile));
    return expected !== undefined && sameSecret(opening.token, expected);
  }

  async #prepare(opening: OpeningOf<"prepare">, slot: Slot, connection: Connection): Promise<undefined> {
    await this.#engine.start(opening);
    this.#slot = slot;
    const { contract } = this.#engine;
    await connection.send({ op: "prepared", protocol: RUNNER_PROTOCOL, contract } satisfies RunnerFrame);
  }

  async #activate(opening: OpeningOf<"activate">, slot: Slot, connection: Connection): Promise<undefined> {
    const { conversation } = opening;
    try {
      await this.#journal.bind(conversation);
      await this.#engine.activate(conversation, slot.kind === "active" ? slot.store : undefined);
      await this.#journal.append({ op: "status", state: "idle" });
      this.#slot = slot;
    } catch (error) {
      this.#slot = destroySlot();
      throw error;
    }
    const { contract } = this.#engine;
    await connection.send({ op: "activated", protocol: RUNNER_PROTOCOL, contract, conversation } satisfies RunnerFrame);
  }

  async #attach(
    opening: ReaderOpening,
    connection: Connection,
  ): Promise<(Attached & { readonly opening: ReaderOpening }) | undefined> {
    this.#journal.assertCursor(opening.cursor); // R3
    // From here to the swap there is no pause, so of two observers one wins.
    const former = this.#attached;
    const { speaker } = this.#journal;
    const last = former?.attachment ?? (speaker === undefined ? undefined : { n: 0, speaker });
    const connected = former !== undefined && !former.connection.closed.aborted;
    const outcome = admitSpeaker(last, opening.speaker, opening.op, connected);
    if (outcome.kind !== "attached")
      return this.#refuse(connection, "HF-9001", outcome.kind, "another host speaks for this conversation");
    const attached = { attachment: outcome.attachment, connection, opening };
    this.#attached = attached;
    former?.connection.close(); // R4
    await this.#journal.noteSpeaker(opening.speaker);
    return attached;
  }

  async #serveReader(
    { attachment, connection, opening }: Attached & { readonly opening: ReaderOpening },
    frames: AsyncIterator<unknown>,
  ): Promise<void> {
    await connection.send(this.#hello(attachment, opening.conversation));
    const follow = this.#journal.follow(
      opening.cursor,
      {
        gap: (gap) => connection.send({ op: "gap", ...gap } satisfies RunnerFrame),
        envelope: (envelope) => connection.send({ op: "envelope", envelope } satisfies RunnerFrame),
      },
      connection.closed,
    );
    // Whichever of the two fails ends the connection, and with it the other.
    await Promise.all([follow, this.#hear(frames, attachment)].map((part) => part.finally(() => connection.close())));
  }

  #hello(attachment: Attachment, conversation: string): RunnerFrame {
    const { journal, epoch, firstRetainedSeq, lastSeq, unreceipted } = this.#journal;
    return {
      op: "hello",
      protocol: RUNNER_PROTOCOL,
      contract: this.#engine.contract,
      conversation,
      journal,
      epoch,
      attachment: attachment.n,
      ...(firstRetainedSeq === undefined ? {} : { firstRetainedSeq: EnvelopeSeq.parse(firstRetainedSeq) }),
      lastSeq,
      unreceipted: unreceipted.slice(0, MAX_NAMED_UNRECEIPTED).map((seq) => EnvelopeSeq.parse(seq)),
    };
  }

  async #hear(frames: AsyncIterator<unknown>, attachment: Attachment): Promise<void> {
    for (;;) {
      const next = await frames.next();
      if (next.done === true || !isAttached(this.#attached?.attachment, attachment.n)) return; // R4
      const frame = HostFrame.parse(next.value);
      if (!isAttached(this.#attached?.attachment, frame.attachment)) return;
      this.#journal.receipt(frame.seq);
    }
  }

  async #refuse(connection: Connection, code: string, reason: string, detail: string): Promise<undefined> {
    await connection.send({ op: "refused", code, reason, detail } satisfies RunnerFrame);
    return undefined;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#openings.then(work);
    this.#openings = done.catch(() => undefined);
    return done;
  }
}

type ReaderOpening = OpeningOf<"attach"> | OpeningOf<"observe">;
