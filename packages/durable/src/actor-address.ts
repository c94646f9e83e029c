import { RuntimeFault } from "@holdfast/protocol";

/**
 * What a context, an event or an input holds of another actor: its name, and nothing that runs.
 * The same object whether the record was just stepped or decoded from bytes. It looks like an XState actor reference, so
 * `sendTo(ref, event)` and `stopChild(ref)` take it; what would act at once (`ref.send`) is refused, because an effect that is not in
 * the record is lost in a crash.
 */
export class ActorAddress {
  readonly key: string;
  readonly id: string;
  readonly genesis: string | undefined;

  constructor(key: string, id: string, genesis?: string) {
    this.key = key;
    this.id = id;
    this.genesis = genesis;
  }

  get sessionId(): string {
    return this.key;
  }

  get ref(): this {
    return this;
  }

  send(_event: unknown): void {
    throw refused(this, "send", "Use the action sendTo(ref, event), so that the event is stored with the transition.");
  }

  getSnapshot(): unknown {
    throw refused(
      this,
      "getSnapshot",
      "Its state is in another record: invoke it with onSnapshot, or let it send what is needed.",
    );
  }

  subscribe(): never {
    throw refused(this, "subscribe", "Invoke it with onSnapshot, or let it send an event.");
  }

  on(): never {
    throw refused(this, "on", "Let it send an event.");
  }

  toJSON(): unknown {
    return { xstate$$type: 1, id: this.id, key: this.key };
  }
}

function refused(address: ActorAddress, method: string, fix: string): RuntimeFault {
  return new RuntimeFault("HF-1003", `${address.key}: ${method}() was called on the address of an actor. ${fix}`, {
    facts: { key: address.key, method },
  });
}

/**
 * Turns an object that user code may already hold (a child that XState made while it spawned) into an address, in place.
 * Otherwise a hot context would hold other objects than the same context decoded from bytes, and would keep the finished step alive.
 */
export function becomeAddress(actor: object, key: string, id: string): void {
  for (const name of Reflect.ownKeys(actor)) Reflect.deleteProperty(actor, name);
  Object.setPrototypeOf(actor, ActorAddress.prototype);
  Object.assign(actor, new ActorAddress(key, id));
}

/** Key of anything that stands for an actor during a step; undefined for other values. */
export function keyOf(reference: unknown): string | undefined {
  if (typeof reference !== "object" || reference === null || !("key" in reference)) return undefined;
  return typeof reference.key === "string" ? reference.key : undefined;
}

/** How actor references, which are instances of a class, are written and read, for a codec that walks a value once. */
export interface ValueExtension {
  readonly tag: "ref";
  is(value: object): boolean;
  encode(value: object): { readonly key: string; readonly id: string; readonly genesis?: string };
  decode(plain: { readonly key: string; readonly id: string; readonly genesis?: string }): object;
}

export const actorRefExtension: ValueExtension = {
  tag: "ref",
  is: (value) => value instanceof ActorAddress,
  encode(value) {
    if (!(value instanceof ActorAddress)) {
      throw new RuntimeFault("HF-2001", "Reference: expected an actor address. Ask is() before encode().");
    }
    const { key, id, genesis } = value;
    return genesis === undefined ? { key, id } : { key, id, genesis };
  },
  decode: ({ key, id, genesis }) => new ActorAddress(key, id, genesis),
};
