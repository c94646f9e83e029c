import { expectedWake, type Wake } from "@holdfast/durable";
import { isTerminal, parseActorKey, RuntimeFault, type ActorRecord } from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import type { FleetView } from "../fleet-view.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import { awaits } from "../retention/wanted-start.ts";
import { machineOfRecord } from "../write-switch.ts";
import type { ChildState, Counterpart, WaitingActor } from "./counterpart.ts";

/** Counterparts of one actor that are looked up at the same time: a wide fan-out must not flood the broker. */
const AT_ONCE = 8;

const ALIVE: ChildState = { kind: "alive" };

/**
 * Looks up what actors wait for: in their records, in those of their children and parents, in this process.
 *
 * Owns: how many records it has read. Does not own: what follows from it (`judgeActor`).
 *   R1 what cannot be told is taken for alive: an alarm needs a proof
 */
export class CounterpartReader {
  /** Records read so far. */
  reads = 0;
  readonly #services: NodeServices;
  readonly #view: FleetView;

  constructor(services: NodeServices, view: FleetView) {
    this.#services = services;
    this.#view = view;
  }

  /** @returns undefined when nothing of it waits, or it cannot be read here: that is listed elsewhere */
  async read(owner: PartitionOwner, key: string): Promise<WaitingActor | undefined> {
    const served = this.#services.types.get(parseActorKey(key).type);
    const stored = served === undefined ? undefined : await this.#load(key);
    if (served === undefined || stored?.kind !== "record") return undefined;
    const { record, seq } = stored;
    const wakes = expectedWake(machineOfRecord(served, record), record);
    const counterparts: Counterpart[] = [];
    for (let from = 0; from < wakes.length; from += AT_ONCE) {
      const part = wakes.slice(from, from + AT_ONCE).map((wake) => this.#counterpart(owner, { record, seq }, wake));
      counterparts.push(...(await Promise.all(part)));
    }
    const parent = await this.#parent(record);
    return { key, seq, counterparts: parent === undefined ? counterparts : [...counterparts, parent] };
  }

  /** Whether a message lies in an actor's inbox that nobody has looked at yet. */
  async hasMail(owner: PartitionOwner, key: string): Promise<boolean> {
    return (await this.#services.log.fetch("inbox", key, owner.cursor.next, 1)).length > 0;
  }

  async #counterpart(
    owner: PartitionOwner,
    { record, seq }: { readonly record: ActorRecord; readonly seq: number },
    wake: Wake,
  ): Promise<Counterpart> {
    const { key } = record;
    switch (wake.kind) {
      case "rest":
        return { kind: "rest" };
      case "timer": {
        const { timer, dueAtMs } = wake;
        const gen = record.timers[timer]?.gen ?? "";
        if (record.status !== "active") return { kind: "rest" }; // who only waits for children to settle has no use for it
        return { kind: "timer", timer, gen, dueAtMs, isHeld: owner.timers.isHeld({ key, timer, gen, dueAtMs }) };
      }
      case "outbox": {
        const cell = owner.cells.get(key);
        const isInMemory = cell?.hasCopy === true;
        // What has left stays in the record until that is written for another reason, or the actor has been at rest for a while.
        const oldest = isInMemory ? cell.oldestUnsent(seq, record.outbox) : record.outbox[0];
        return oldest === undefined ? { kind: "rest" } : { kind: "outbox", oldest, effects: wake.effects, isInMemory };
      }
      case "child": {
        const { childId, childKey } = wake;
        if (wake.childKind === "actor")
          return { kind: "child", childId, childKey, state: await this.#child(record, childId, childKey) };
        const isRun =
          wake.childKind === "host"
            ? owner.cells.get(key)?.hasCopy === true
            : this.#services.jobs.has(childKey) || this.#view.inCustody(childKey, this.#services.incarnation);
        return { kind: "work", childId, childKey, isRun };
      }
    }
  }

  async #child(parent: ActorRecord, childId: string, childKey: string): Promise<ChildState> {
    if (parent.outbox.some((effect) => effect.kind === "start" && effect.to === childKey)) return ALIVE;
    const { quarantine } = this.#services;
    const entry = quarantine.actor(childKey);
    if (entry !== undefined) return { kind: "setAside", why: `${entry.code} ${entry.reason}` };
    const stored = await this.#load(childKey);
    switch (stored.kind) {
      case "damaged":
        return { kind: "setAside", why: stored.why };
      case "unreadable":
        return ALIVE; // R1
      case "absent":
        return this.#unborn(childKey);
      case "record": {
        const { record } = stored;
        const { parent: link, status, genesis, settled } = record;
        if (link?.key !== parent.key || link.genesis !== parent.genesis || link.childId !== childId)
          return { kind: "missing", why: "its key belongs to another actor" };
        const isOnTheWay = record.outbox.some(({ kind }) => kind === "settled");
        return isTerminal(status) && !isOnTheWay ? { kind: "ended", status, genesis, settled } : ALIVE;
      }
    }
  }

  /** A child without a record: its start may be on the way, or may have been set aside. */
  async #unborn(childKey: string): Promise<ChildState> {
    const { quarantine, log } = this.#services;
    const [taken] = quarantine.messagesOf(childKey);
    if (taken !== undefined) return { kind: "setAside", why: `${taken.code} ${taken.reason}` };
    const lease = this.#view.leases.get(parseActorKey(childKey).partition)?.lease;
    // Messages before the parked ones: what is set aside meanwhile is found there.
    const fromSeq =
      lease?.generation === (await log.position(parseActorKey(childKey).partition)).generation ? lease.cursor : 0;
    if ((await log.fetch("inbox", childKey, fromSeq, 1)).length > 0) return ALIVE;
    const parked = await log.fetch("parked", childKey, 0, 1);
    if (parked.length > 0) return { kind: "setAside", why: "its start waits for a node that can take it" };
    if ((await this.#load(childKey)).kind !== "absent") return ALIVE; // the start was carried out meanwhile
    return { kind: "missing", why: "nothing is stored for it" };
  }

  async #parent(record: ActorRecord): Promise<Counterpart | undefined> {
    const { parent: link, key, status, type } = record;
    if (link === undefined || status !== "active") return undefined;
    const stored = await this.#load(link.key);
    const isWaiting =
      stored.kind === "damaged" ||
      stored.kind === "unreadable" || // R1
      (stored.kind === "record" &&
        stored.record.genesis === link.genesis &&
        awaits(stored.record, key, link.childId)) ||
      this.#mayBeDetached(parseActorKey(link.key).type, type);
    return { kind: "parent", parentKey: link.key, isWaiting };
  }

  /** Whether a parent of this type may have let a child go that lives on. One of a type that is not served here may (R1). */
  #mayBeDetached(parentType: string, childType: string): boolean {
    const children = this.#services.types.get(parentType)?.definition.childActors;
    if (children === undefined) return true;
    return Object.values(children).some(({ type, closePolicy }) => type === childType && closePolicy === "detach");
  }

  async #load(key: string): Promise<Loaded> {
    this.reads += 1;
    const stored = await this.#services.records.load(key);
    if (stored === undefined) return { kind: "absent" };
    try {
      return { kind: "record", record: this.#services.codec.decodeRecord(stored.bytes).record, seq: stored.seq };
    } catch (error) {
      if (!(error instanceof RuntimeFault)) throw error;
      const why = `${error.code} ${error.message}`;
      return { kind: error.code === "HF-2002" ? "damaged" : "unreadable", why };
    }
  }
}

type Loaded =
  | { readonly kind: "record"; readonly record: ActorRecord; readonly seq: number }
  | { readonly kind: "absent" }
  | { readonly kind: "damaged" | "unreadable"; readonly why: string };
