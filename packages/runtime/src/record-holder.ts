import { RECORD_FORMAT } from "@holdfast/codec";
import { needsWork, waitsForOthers, type CompiledMachine, type StepEnv } from "@holdfast/durable";
import {
  isTerminal,
  MAX_CARRIED_EFFECTS,
  ownerOf,
  RuntimeFault,
  type ActorRecord,
  type Effect,
  type RecordHeader,
  type StuckEntry,
} from "@holdfast/protocol";
import type { ChosenBlobs } from "./blobs/choose-blobs.ts";
import { blobsOfRecord } from "./blobs/named-blobs.ts";
import type { CellHost, NodeServices, ServedType } from "./cell-host.ts";
import { inheritedSequence } from "./inherited-sequence.ts";
import type { OutboxDispatcher } from "./outbox-dispatcher.ts";
import { DECODED_FACTOR } from "./memory-budget.ts";
import type { CommitOutcome, InboxMessage, StoredValue } from "./ports/index.ts";
import { machineOfRecord } from "./write-switch.ts";

/** Record formats this build can write, ascending. One of them: a newer one is written only once every live node reads it (F31). */
const WRITABLE_FORMATS = [RECORD_FORMAT];

/**
 * The decoded record of one actor, and the only place that writes it.
 *
 * Owns: record, its sequence, what was considered. Does not own: when to step or to dispatch.
 *   R1 every attempt carries a fresh token; `stale` and `unknown` end in a fresh read (I7)
 *   R2 nobody writes over a record with a greater epoch (I6)
 *   R3 what cannot be read is left as it is (I13)
 *   R4 what a step keeps outside of its record is stored before the record (F6)
 */
export class RecordHolder {
  readonly #key: string;
  readonly #services: NodeServices;
  readonly #host: CellHost;
  readonly #served: ServedType;
  #record: ActorRecord | undefined;
  #seq = 0;
  #considered: { generation: string; inbox: number; control: number };
  #unreadable: string | undefined;
  /** What a scan has read, for the first load; later ones must see what was stored since. */
  #primed: StoredValue | undefined;
  #wasLoaded = false;
  /** Blobs that the step in hand has named. */
  #chosen: ChosenBlobs | undefined;
  /** What the decoded record is taken to hold, bytes. */
  #heldBytes = 0;
  #fault: { readonly fault: RuntimeFault; readonly seq: number; readonly size: number } | undefined;

  constructor(key: string, services: NodeServices, host: CellHost, served: ServedType) {
    this.#key = key;
    this.#services = services;
    this.#host = host;
    this.#served = served;
    this.#considered = { generation: host.generation, inbox: 0, control: 0 };
  }

  /** Machine that steps this actor: the one that wrote its record, or the one that new records are written with (F31). */
  get compiled(): CompiledMachine {
    return this.#record === undefined
      ? this.#services.writeSwitch.machineOf(this.#served)
      : machineOfRecord(this.#served, this.#record);
  }

  get record(): ActorRecord | undefined {
    return this.#record;
  }

  /** Sequence of the stored record; 0 without one. */
  get seq(): number {
    return this.#seq;
  }

  /** What the decoded record is taken to hold, bytes; 0 without one. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Why the stored record cannot be used here; undefined when it can, or when there is none. */
  get unreadable(): string | undefined {
    return this.#unreadable;
  }

  /** What is wrong with the stored record, and where it lies; undefined when nothing is, or nobody looked. */
  get fault(): { readonly fault: RuntimeFault; readonly seq: number; readonly size: number } | undefined {
    return this.#fault;
  }

  forget(): void {
    this.#record = undefined;
    this.#seq = 0;
    this.#hold(0);
    this.#considered = { generation: this.#host.generation, inbox: 0, control: 0 };
  }

  /** The record cannot be used by this build: nothing runs from it, nothing overwrites it (R3). */
  park(why: string): void {
    const size = 0; // its bytes are sound
    this.#markUnreadable(new RuntimeFault("HF-2005", `${this.#key}: ${why}`), { seq: this.#seq, size });
    this.forget();
  }

  /** For one step, which is committed or forgotten before the next one. */
  env(carriedOutbox: readonly Effect[]): StepEnv {
    const { time, scheme, payloads, incarnation, textHash } = this.#services;
    this.#chosen = payloads.choose();
    const writer = { incarnation, epoch: this.#host.epoch };
    return { nowMs: time.nowMs(), scheme, writer, carriedOutbox, outside: this.#chosen.outside, textHash };
  }

  /** F26: too much of what was decided has not left yet, by number or because the next step `isFull` with it. */
  isOverfull(dispatcher: OutboxDispatcher, isFull: boolean): boolean {
    const isOver = dispatcher.size >= MAX_CARRIED_EFFECTS || (isFull && dispatcher.size > 0);
    const isOverfull = isOver && this.#record !== undefined;
    if (isOverfull)
      this.#host.report(this.#key, { kind: "backpressure", why: `${dispatcher.size} effects wait for their streams` });
    else this.#host.resolved(this.#key, "backpressure");
    return isOverfull;
  }

  wasConsidered(message: InboxMessage): boolean {
    return message.seq <= this.#considered[message.lane];
  }

  /** @returns undo: the message waits after all */
  consider(message: InboxMessage): () => void {
    const before = this.#considered;
    this.#considered = { ...before, [message.lane]: message.seq };
    return () => (this.#considered = before);
  }

  /** Spares the first load its read: the value that was current when the partition was claimed. */
  prime(stored: StoredValue): void {
    if (!this.#wasLoaded) this.#primed = stored;
  }

  async load(): Promise<"loaded" | "absent" | "unreadable" | "fenced"> {
    const primed = this.#primed;
    this.#primed = undefined; // also when it is held back: by the time it is let go on this is the past
    this.#wasLoaded = true;
    const held = this.#services.quarantine.heldBack(this.#key);
    if (held !== undefined) {
      this.#holdBack(held);
      return "unreadable";
    }
    const stored = primed ?? (await this.#services.records.load(this.#key));
    if (stored === undefined) {
      this.#unreadable = undefined;
      this.forget();
      return "absent";
    }
    try {
      const { header, record } = this.#services.codec.decodeRecord(stored.bytes);
      if (header.epoch > this.#host.epoch) {
        this.#host.fenced(header.epoch); // R2
        return "fenced";
      }
      this.#check(record);
      this.#host.work.seen(this.#key, stored.seq, header.needsWork);
      this.#record = record;
      this.#seq = stored.seq;
      this.#hold(stored.bytes.length);
      this.#unreadable = undefined;
      this.#fault = undefined;
      this.#host.resolved(this.#key, "parked", "quarantined");
      const { generation: of, inbox, control } = record.considered;
      this.#considered = {
        generation: this.#host.generation,
        inbox: inheritedSequence(this.#host, of, inbox),
        control: inheritedSequence(this.#host, of, control),
      };
      return "loaded";
    } catch (error) {
      if (!(error instanceof RuntimeFault)) throw error;
      this.#markUnreadable(error, { seq: stored.seq, size: stored.bytes.length }); // R3
      return "unreadable";
    }
  }

  /**
   * @returns false when nothing was stored, or nobody knows: the caller forgets its copy
   * @throws RuntimeFault before the record is written: HF-2001, HF-2004; HF-4004, HF-4008 when a blob of it could not be stored (R4)
   */
  async commit(record: ActorRecord): Promise<boolean> {
    const services = this.#services;
    // `step` made this object for us alone; the copy that its caller keeps for the next step must be the one that was stored.
    record.considered = this.#considered;
    const listed = this.#host.listNeeds({
      formats: [services.writeSwitch.formatOf(WRITABLE_FORMATS)],
      machines: { [record.type]: record.machine.version },
    });
    if (listed !== undefined && !(await listed)) return false;
    const token = services.random.hex(8);
    const work = needsWork(record);
    const waits = !work && waitsForOthers(this.compiled, record);
    const bytes = services.codec.encodeRecord(record, this.#headerOf(record, token, work));
    if (this.#chosen !== undefined && this.#chosen.chosen.size > 0) await services.payloads.store(this.#chosen); // R4
    this.#chosen = undefined;
    const before = services.crashPoints.reach(this.#seq === 0 ? "before-create" : "before-commit", this.#key);
    if (before !== undefined) await before;
    const request = {
      key: this.#key,
      bytes,
      expectedSeq: this.#seq,
      token,
      needsWork: work,
      waits,
      blobs: blobsOfRecord(record),
      ended: isTerminal(record.status) ? this.#endedAs(record) : undefined,
    };
    const issued = this.#host.work.issued(this.#key);
    let outcome: CommitOutcome;
    try {
      outcome = await services.records.commit(request);
    } catch (error) {
      this.#host.work.notStored(issued, true);
      throw error;
    }
    if (outcome.kind === "committed") {
      this.#host.work.committed(issued, outcome.seq, work);
      this.#host.resting.seen(this.#key, outcome.seq, waits);
    } else {
      this.#host.work.notStored(issued, outcome.kind === "unknown");
      this.#host.count(outcome.kind);
      services.telemetry.warn("commit.not-stored", { key: this.#key, rev: record.rev, outcome: outcome.kind });
      return false;
    }
    this.#record = record;
    this.#seq = outcome.seq;
    this.#hold(bytes.length);
    this.#host.count("committed");
    const after = services.crashPoints.reach("after-commit", this.#key);
    if (after !== undefined) await after;
    return true;
  }

  #endedAs({ snapshot }: ActorRecord): "erase" | "record" {
    return this.#served.definition.retention?.(snapshot.context).erase === true ? "erase" : "record";
  }

  #hold(encodedBytes: number): void {
    const bytes = encodedBytes * DECODED_FACTOR;
    if (bytes !== this.#heldBytes) this.#services.flow.memory.hold("records", bytes - this.#heldBytes);
    this.#heldBytes = bytes;
  }

  #check(record: ActorRecord): void {
    if (record.key !== this.#key) {
      throw new RuntimeFault(
        "HF-2002",
        `Record under ${this.#key} says it is ${record.key}. Restore the right value from the journal.`,
      );
    }
    const known = this.#served.compiled.stamp;
    if (record.machine.id !== known.id) {
      throw new RuntimeFault(
        "HF-2005",
        `${this.#key}: its record needs machine ${record.machine.id}@${record.machine.version}; this node has ${known.id}@${known.version}. Deploy a build that registers it.`,
      );
    }
  }

  /** Whatever its record is: nothing of it runs until an operator says so. */
  #holdBack({ code, reason, state }: StuckEntry): void {
    this.forget();
    this.#fault = undefined;
    this.#unreadable = `${code} ${reason}`;
    this.#host.report(this.#key, { kind: state, why: this.#unreadable });
  }

  #markUnreadable(fault: RuntimeFault, stored: { readonly seq: number; readonly size: number }): void {
    this.#fault = { fault, ...stored };
    const kind = fault.code === "HF-2002" ? "quarantined" : "parked";
    this.#unreadable = `${fault.code} ${fault.message}`;
    this.#host.report(this.#key, { kind, why: this.#unreadable });
    this.#host.count(kind);
    this.#services.telemetry.error("record.unreadable", { key: this.#key, code: fault.code, kind });
  }

  #headerOf(record: ActorRecord, token: string, work: boolean): RecordHeader {
    return {
      token,
      epoch: this.#host.epoch,
      key: record.key,
      genesis: record.genesis,
      rev: record.rev,
      generation: this.#considered.generation,
      inboxSeq: this.#considered.inbox,
      controlSeq: this.#considered.control,
      status: record.status,
      needsWork: work,
      writer: this.#services.incarnation,
      list: {
        ...ownerOf(record.principal),
        ...this.#served.definition.listFields?.(record.snapshot.context, record.snapshot.value),
      },
    };
  }
}
