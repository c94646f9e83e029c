import type { LiveSnapshot } from "./engine.ts";

/** What a constructor returns becomes `this` of the derived one: so a private field lands on an object that exists already. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- called with `new`, this function is what the type says
const Existing = function (this: unknown, object: object): object {
  return object;
} as unknown as new (object: object) => object; // a function with these two signatures, see above

/** A field that no copy, key list or codec sees. */
class Slot extends Existing {
  #owner: LiveCache | undefined;
  #live: LiveSnapshot | undefined;

  static put(stored: object, owner: LiveCache, live: LiveSnapshot): void {
    const slot = #owner in stored ? stored : new Slot(stored);
    slot.#owner = owner;
    slot.#live = live;
  }

  static take(stored: object, owner: LiveCache): LiveSnapshot | undefined {
    return #owner in stored && stored.#owner === owner ? stored.#live : undefined;
  }
}

/**
 * Stored snapshot → the live one it was made from, for as long as the stored one lives.
 *
 * What a WeakMap does, on the object itself: every macrostep makes a snapshot, and a table of them with weak keys costs the garbage
 * collector more than the macrostep's own garbage.
 */
export class LiveCache {
  get(stored: object): LiveSnapshot | undefined {
    return Slot.take(stored, this);
  }

  has(stored: object): boolean {
    return Slot.take(stored, this) !== undefined;
  }

  set(stored: object, live: LiveSnapshot): void {
    Slot.put(stored, this, live);
  }
}
