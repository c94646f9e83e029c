// StepScope: what XState sees of the world during one macrostep, and what it did there.
//
// Owns: the collected decisions, the identities given out.  Does not own: what becomes of the decisions (finish-step.ts).
//   S1 inert      nothing runs: every action, start and send is only collected
//   S2 repeatable identities are functions of (record, revision), never of a counter of the process
//   S3 closed     after the step no object handed to user code leads back here, so nothing of a finished step stays alive or acts
import { RuntimeFault, type ActorKey, type ActorRecord, type BlobFields, type ChildEntry } from "@holdfast/protocol";
import type { AnyActorScope, ExecutableActionObject } from "xstate";
import { ActorAddress, becomeAddress } from "./actor-address.ts";
import { childKey } from "./child-key.ts";
import type { ChildSource } from "./child-sources.ts";
import { childStub } from "./child-stub.ts";
import type { CompiledMachine } from "./compile.ts";
import type { LiveSnapshot } from "./engine.ts";
import { isPlainObject } from "./plain-object.ts";
import { ignore, SelfAddress, StepSystem, type StepOwner } from "./step-system.ts";
import type { StepEnv } from "./step-types.ts";

/** A child spawned in this step. `ref` is the very object that user code got. */
export interface Spawned {
  readonly ref: object;
  readonly id: string;
  readonly key: string;
  readonly kind: "actor" | "job" | "host";
  readonly src: string;
  readonly systemId: string | undefined;
  readonly sync: boolean;
  readonly input: unknown;
  /** Its input as a reference, when that is kept outside of the record. */
  readonly blobs?: BlobFields;
}

/** Something a macrostep decided, in the order of XState, before it becomes an effect. */
export type Decision =
  /** `target.to` is read after the step: XState fills it in late for a child of the state being entered. */
  | { readonly kind: "send"; readonly target: { readonly to?: unknown }; readonly event: unknown }
  | {
      readonly kind: "schedule";
      readonly timer: string;
      readonly gen: string;
      readonly delayMs: number;
      readonly target: { readonly to?: unknown };
      readonly event: unknown;
    }
  | { readonly kind: "cancel"; readonly timer: string }
  | { readonly kind: "stop"; readonly ref: object }
  | { readonly kind: "emit"; readonly event: unknown }
  | { readonly kind: "log"; readonly label: unknown; readonly value: unknown }
  | {
      readonly kind: "action";
      readonly name: string;
      readonly params: unknown;
      readonly event: unknown;
      readonly context: unknown;
      readonly exec: unknown;
    };

/** Name and place of the actor being stepped. */
export interface Identity {
  readonly key: ActorKey;
  readonly id: string;
  readonly genesis: string;
  readonly parent?: ActorRecord["parent"];
}

export class StepScope implements StepOwner {
  readonly rev: number;
  readonly self: SelfAddress;
  readonly id: string;
  readonly sessionId: string;
  readonly parent: ActorAddress | undefined;
  readonly system: StepSystem;
  readonly logger = ignore;
  readonly defer = ignore;
  readonly stopChild = ignore;
  readonly emit = (event: unknown): void => void this.decisions.push({ kind: "emit", event });
  // Not readonly: XState wraps it for the time of a microstep.
  actionExecutor = (action: ExecutableActionObject): void => this.#collect(action);

  /** Set when something around the actor is wrong, so that the actor must not be failed for it. */
  environmentFault: unknown;
  previous: LiveSnapshot | undefined;
  children: Readonly<Record<string, ChildEntry>> = {};
  decisions: Decision[] = [];
  spawned: Spawned[] = [];
  readonly #compiled: CompiledMachine;
  readonly #identity: Identity;
  readonly #env: StepEnv;

  constructor(compiled: CompiledMachine, identity: Identity, rev: number, env: StepEnv) {
    const { key, parent, genesis } = identity;
    this.#compiled = compiled;
    this.#identity = identity;
    this.#env = env;
    this.rev = rev;
    this.id = parent?.childId ?? identity.id;
    this.sessionId = key;
    this.parent =
      parent && new ActorAddress(parent.key, parent.key.slice(parent.key.lastIndexOf(".") + 1), parent.genesis);
    this.system = new StepSystem(this);
    this.self = new SelfAddress(this, key, this.id, genesis);
  }

  /** This scope as XState types it. */
  asActorScope(): AnyActorScope {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the members that StateMachine and transition logic read are all here; facts and tests pin xstate 5.33
    return this as unknown as AnyActorScope;
  }

  /** Forgets what a failed macrostep decided: as in memory, its effects are not executed. */
  discard(): void {
    this.decisions = [];
    this.spawned = [];
  }

  /** S3. The decisions stay. */
  close(): void {
    for (const { ref, key, id } of this.spawned) becomeAddress(ref, key, id);
    this.self.close();
    this.system.close();
    this.previous = undefined;
  }

  /** A send that user code made by hand during the step. */
  relay(target: unknown, event: unknown): void {
    this.decisions.push({ kind: "send", target: { to: target }, event });
  }

  /** The living child with this systemId. */
  find(systemId: string): object | undefined {
    const fresh = this.spawned.findLast((child) => child.systemId === systemId);
    if (fresh !== undefined) return fresh.ref;
    for (const [id, child] of Object.entries(this.children)) {
      if (child.systemId === systemId && child.status === "active") return this.previous?.children[id];
    }
    return undefined;
  }

  /** Takes over a child that XState is constructing right now: gives it its key, keeps its real logic from running. */
  adopt(ref: object): void {
    const { id, src, options } = actorFields(ref);
    const { systemId, syncSnapshot, input } = options;
    const name = typeof src === "string" ? src : this.#compiled.names.get(src);
    const source = name === undefined ? undefined : this.#compiled.children.get(name);
    if (name === undefined || source === undefined) {
      throw new RuntimeFault(
        "HF-1003",
        `${this.#identity.key}: child "${id}" was spawned from inline logic, which is lost in a crash. Register it in setup({ actors }) and spawn it by name.`,
        { facts: { key: this.#identity.key, childId: id } },
      );
    }
    const key = this.#keyOf(source, id);
    Object.assign(ref, { key, src: name, logic: childStub });
    this.spawned.push({
      ref,
      id: assertName(id, "child id"),
      key,
      kind: source.kind,
      src: name,
      systemId: systemId === undefined ? undefined : assertName(systemId, "systemId"),
      sync: syncSnapshot === true,
      input,
    });
  }

  #keyOf(source: ChildSource, childId: string): string {
    try {
      return childKey(this.#env.scheme, this.#identity, source, childId, this.rev);
    } catch (error) {
      this.environmentFault = error;
      throw error;
    }
  }

  #collect(action: ExecutableActionObject): void {
    const params = isPlainObject(action.params) ? action.params : {};
    const { decisions } = this;
    switch (action.type) {
      case "xstate.raise": // without a delay it was consumed within this macrostep
        if (typeof params["delay"] === "number") this.#schedule(params, params["delay"], { to: this.self });
        break;
      case "xstate.sendTo":
        if (typeof params["delay"] === "number") this.#schedule(params, params["delay"], params);
        else decisions.push({ kind: "send", target: params, event: params["event"] });
        break;
      case "xstate.cancel":
        if (typeof params["sendId"] === "string") decisions.push({ kind: "cancel", timer: params["sendId"] });
        break;
      case "xstate.spawnChild":
        if (params["actorRef"] === undefined) throw this.#unknownSource(params["src"]);
        break; // adopted while it was constructed
      case "xstate.stopChild":
        if (typeof action.params === "object" && action.params !== null)
          decisions.push({ kind: "stop", ref: action.params });
        break;
      case "xstate.emit":
        decisions.push({ kind: "emit", event: params["event"] });
        break;
      case "xstate.log":
        decisions.push({ kind: "log", label: params["label"], value: params["value"] });
        break;
      default:
        decisions.push({
          kind: "action",
          name: action.type,
          params: action.params,
          event: action.info.event,
          context: action.info.context,
          exec: action.exec,
        });
    }
  }

  #schedule(params: Readonly<Record<string, unknown>>, delayMs: number, target: { readonly to?: unknown }): void {
    const index = this.decisions.length;
    const timer = typeof params["id"] === "string" ? params["id"] : `t${this.rev}.${index}`;
    if (!Number.isFinite(delayMs)) {
      throw new RuntimeFault(
        "HF-1003",
        `${this.#identity.key}: timer "${timer}" has a delay of ${delayMs} ms. Use a finite delay.`,
      );
    }
    const event = params["event"];
    this.decisions.push({
      kind: "schedule",
      timer: assertName(timer, "timer id"),
      gen: `${this.rev}.${index}`,
      delayMs,
      target,
      event,
    });
  }

  #unknownSource(src: unknown): RuntimeFault {
    const name = typeof src === "string" ? src : "inline";
    return new RuntimeFault(
      "HF-1003",
      `${this.#identity.key}: child source "${name}" has no logic. Add it to setup({ actors }).`,
      { facts: { key: this.#identity.key, src: name } },
    );
  }
}

/** Ids become keys of stored maps; this one cannot be stored. */
function assertName(name: string, what: string): string {
  if (name !== "__proto__") return name;
  throw new RuntimeFault("HF-1003", `A ${what} is "__proto__", which cannot be stored. Choose another one.`);
}

/** Fields of XState's Actor that are set when its constructor announces it. */
interface ActorFields {
  readonly id: string;
  readonly src: unknown;
  readonly options: { readonly systemId?: string; readonly syncSnapshot?: boolean; readonly input?: unknown };
}

function actorFields(ref: object): ActorFields {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only called with the Actor that XState's constructor announces
  return ref as ActorFields;
}
