import { ActorAddress } from "./actor-address.ts";
import type { LiveSnapshot } from "./engine.ts";

/** The step that `self` and `system` of user code lead to, until it is over. */
export interface StepOwner {
  readonly rev: number;
  readonly parent: ActorAddress | undefined;
  readonly system: StepSystem;
  readonly previous: LiveSnapshot | undefined;
  relay(target: unknown, event: unknown): void;
  adopt(ref: object): void;
  find(systemId: string): object | undefined;
}

/** Key of an actor that is known by its systemId only. */
export const SYSTEM_KEY_PREFIX = "$system/";

/** The actor itself, during its own step. Afterwards an address like any other. */
export class SelfAddress extends ActorAddress {
  #scope: StepOwner | undefined;

  constructor(scope: StepOwner, key: string, id: string, genesis: string) {
    super(key, id, genesis);
    this.#scope = scope;
  }

  get _parent(): ActorAddress | undefined {
    return this.#scope?.parent;
  }

  get system(): StepSystem | undefined {
    return this.#scope?.system;
  }

  override send(event: unknown): void {
    if (this.#scope === undefined) super.send(event);
    else this.#scope.relay(this, event);
  }

  override getSnapshot(): unknown {
    return this.#scope === undefined ? super.getSnapshot() : this.#scope.previous;
  }

  close(): void {
    this.#scope = undefined;
  }
}

/** The part of XState's actor system that a macrostep touches. */
export class StepSystem {
  readonly _clock = {};
  readonly scheduler = { schedule: ignore, cancel: ignore, cancelAll: ignore };
  #scope: StepOwner | undefined;
  #booked = 0;

  constructor(scope: StepOwner) {
    this.#scope = scope;
  }

  _logger(): void {}
  _register(): void {}
  _unregister(): void {}
  _set(): void {}
  start(): void {}

  _bookId(): string {
    return `x:${this.#scope?.rev ?? 0}.${this.#booked++}`; // S2
  }

  _relay(_source: unknown, target: unknown, event: unknown): void {
    this.#scope?.relay(target, event);
  }

  _sendInspectionEvent(event: { readonly type: string; readonly actorRef: object }): void {
    // The only place where XState shows a child that was spawned inside `assign` or a context factory.
    if (event.type === "@xstate.actor") this.#scope?.adopt(event.actorRef);
  }

  get(systemId: string): object {
    return this.#scope?.find(systemId) ?? new ActorAddress(SYSTEM_KEY_PREFIX + systemId, systemId);
  }

  getAll(): Readonly<Record<string, unknown>> {
    return {};
  }

  getSnapshot(): unknown {
    return { _scheduledEvents: {} };
  }

  inspect(): { unsubscribe: () => void } {
    return { unsubscribe: ignore };
  }

  close(): void {
    this.#scope = undefined;
  }
}

export function ignore(): void {}
