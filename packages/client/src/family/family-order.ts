// FamilyOrder: the journals of an actor and of everything below it, woven into one order. Pure.
//
//   Y1 whole      every entry of every member is handed over once, the entries of one member by revision without a gap
//   Y2 causes     a member's first entry comes after the one that started it; the result of a member comes after its last entry
//   Y3 by time    among what may come next the earliest comes first; of equal times the one whose key is first
//   Y4 resumable  a position names the members that have not ended and how far each was handed over; those that have ended need no mention
import { isTerminal, type JournalEntry } from "@holdfast/protocol";

/** A member that has not ended, and how far it was handed over. */
export interface FamilyMember {
  readonly key: string;
  /** Who started it, unless it is the root. */
  readonly parent?: { readonly key: string; readonly childId: string } | undefined;
  /** Incarnation; undefined before its first entry. */
  readonly genesis?: string | undefined;
  readonly rev: number;
  /** Sequence of the journal message that held its last entry; 0 before the first. */
  readonly seq: number;
}

/** One macrostep of a member. */
export interface FamilyStep {
  readonly member: FamilyMember;
  readonly entry: JournalEntry;
  /** Members that it started: their journals are to be offered before the next step is taken. */
  readonly started: readonly string[];
}

interface Waiting {
  readonly entry: JournalEntry;
  readonly seq: number;
}

class Member {
  readonly key: string;
  readonly parent: FamilyMember["parent"];
  readonly waiting = new Map<number, Waiting>();
  genesis: string | undefined;
  rev: number;
  seq: number;

  constructor({ key, parent, genesis, rev, seq }: FamilyMember) {
    this.key = key;
    this.parent = parent;
    this.genesis = genesis;
    this.rev = rev;
    this.seq = seq;
  }

  get next(): Waiting | undefined {
    return this.waiting.get(this.rev + 1);
  }

  get position(): FamilyMember {
    const { key, parent, genesis, rev, seq } = this;
    return { key, parent, genesis, rev, seq };
  }
}

/** See the invariants at the top of the file. */
export class FamilyOrder {
  readonly #members = new Map<string, Member>();

  /** @param position  members that have not ended, as `position` gave them; at first the root alone */
  constructor(position: readonly FamilyMember[]) {
    for (const member of position) this.#members.set(member.key, new Member(member));
  }

  /** Y4. Empty when all have ended. */
  get position(): readonly FamilyMember[] {
    return [...this.#members.values()].map((member) => member.position);
  }

  /** Takes entries of a member, in stored order. Repeated ones, and those of another incarnation, are passed over. */
  offer(key: string, seq: number, entries: readonly JournalEntry[]): void {
    const member = this.#members.get(key);
    if (member === undefined) return;
    for (const entry of entries) {
      member.genesis ??= entry.genesis;
      if (entry.genesis !== member.genesis || entry.rev <= member.rev || member.waiting.has(entry.rev)) continue;
      member.waiting.set(entry.rev, { entry, seq });
    }
  }

  /** @returns undefined when nothing may come before more is offered */
  take(): FamilyStep | undefined {
    const [member] = [...this.#members.values()]
      .filter((one) => one.next !== undefined && this.#blockerOf(one) === undefined)
      .toSorted((a, b) => timeOf(a) - timeOf(b) || (a.key < b.key ? -1 : 1)); // Y3
    const next = member?.next;
    if (member === undefined || next === undefined) return undefined;
    const { entry, seq } = next;
    member.waiting.delete(entry.rev);
    member.rev = entry.rev;
    member.seq = seq;
    if (isTerminal(entry.status)) this.#members.delete(member.key);
    const started: string[] = [];
    for (const { key, childId } of entry.starts ?? []) {
      if (!isActorKey(key)) continue;
      this.#members.set(key, new Member({ key, parent: { key: member.key, childId }, rev: 0, seq: 0 }));
      started.push(key);
    }
    return { member: member.position, entry, started };
  }

  /** Members whose end is waited for by their parent's next entry (Y2) and of which nothing has been offered. */
  get missing(): readonly FamilyMember[] {
    return [...this.#members.values()]
      .map((member) => this.#blockerOf(member))
      .filter((blocker) => blocker !== undefined && blocker.rev === 0 && blocker.waiting.size === 0)
      .map((blocker) => blocker?.position ?? unreachable());
  }

  /** Nothing of this member will ever come. */
  giveUp(key: string): void {
    this.#members.delete(key);
  }

  /** Y2. */
  #blockerOf({ key, next }: Member): Member | undefined {
    if (next?.entry.cause.kind !== "settled") return undefined;
    const childId = settledChildOf(next.entry);
    return [...this.#members.values()].find(({ parent }) => parent?.key === key && parent.childId === childId);
  }
}

/** Child whose outcome an entry applied. */
export const settledChildOf = ({ cause, event }: Pick<JournalEntry, "cause" | "event">): string | undefined =>
  cause.kind === "settled" ? /^xstate\.(?:done|error)\.actor\.(.+)$/s.exec(event.type)?.[1] : undefined;

/** Question whose outcome an entry took in: it ends only once it knows that this is stored. */
export const offeredChildOf = ({ event }: Pick<JournalEntry, "event">): string | undefined =>
  event.type === "waitSettled" && typeof event["childId"] === "string" ? event["childId"] : undefined;

/** Jobs have keys without a partition. */
const isActorKey = (key: string): boolean => key.includes(".");

const timeOf = ({ next }: Member): number => next?.entry.atMs ?? 0;

function unreachable(): never {
  throw new TypeError("a blocker that was found is gone");
}
