import { isLaterEvent, type EventPlace } from "@holdfast/protocol";

// EventMarks: which events of an actor were seen, as the newest of each.
//   M1 events of an actor are stored in their order: whatever is not later than the newest seen is a repetition
//   M2 once an event is known to be the first copy, everything before it had been stored before, and nothing after it
//   M3 of an actor that is not remembered nothing is known: the stream is to be asked

interface Mark extends Pick<EventPlace, "rev" | "index"> {
  /** Whether it was a first copy (M2). */
  readonly isFirstCopy: boolean;
}

export type EventJudgement = "fresh" | "repeated" | "unknown";

/** See the invariants at the top of the file. */
export class EventMarks {
  readonly #marks = new Map<string, Mark>();
  readonly #limit: number;
  #seesAll: boolean;

  /**
   * @param seesAll  the reader began with the first event there is
   * @param limit  actors that are remembered, the latest ones
   */
  constructor(seesAll: boolean, limit = 10_000) {
    this.#seesAll = seesAll;
    this.#limit = limit;
  }

  judge(place: EventPlace): EventJudgement {
    const mark = this.#marks.get(place.actor);
    if (mark === undefined) return this.#seesAll ? "fresh" : "unknown"; // M3
    if (!isLaterEvent(place, mark)) return "repeated"; // M1
    return mark.isFirstCopy ? "fresh" : "unknown"; // M2
  }

  note({ actor, rev, index }: EventPlace, isFirstCopy: boolean): void {
    this.#marks.delete(actor);
    this.#marks.set(actor, { rev, index, isFirstCopy });
    if (this.#marks.size <= this.#limit) return;
    const [oldest = ""] = this.#marks.keys();
    this.#marks.delete(oldest);
    this.#seesAll = false;
  }
}
