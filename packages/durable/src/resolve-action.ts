import { RuntimeFault, type ActorRecord, type Effect, type PlainEvent } from "@holdfast/protocol";
import { ActorAddress } from "./actor-address.ts";
import type { ActionImplementation, ActionMemory, CompiledMachine } from "./compile.ts";
import { VOLATILE_PREFIX } from "./effect-writer.ts";
import { SYSTEM_KEY_PREFIX } from "./step-system.ts";

/** Takes what an action sends by hand (`self.send`, `system.get(id).send`). Not stored with the transition: it may be lost, or sent twice. */
export type Deliver = (to: { readonly key: string; readonly genesis: string | undefined }, event: PlainEvent) => void;

/** An address that an action may send to. */
class ReachableAddress extends ActorAddress {
  readonly #deliver: Deliver | undefined;

  constructor(deliver: Deliver | undefined, key: string, id: string, genesis?: string) {
    super(key, id, genesis);
    this.#deliver = deliver;
  }

  override send(event: PlainEvent): void {
    if (this.#deliver === undefined) super.send(event);
    else this.#deliver({ key: this.key, genesis: this.genesis }, event);
  }
}

/**
 * The implementation of a custom action, bound to what it was called with. Run it after the commit; it may run again after a crash,
 * so an action that acts on the outside needs the effect's id as its idempotency key.
 *
 * @returns a function that returns what the action returns (a promise, if it is asynchronous); for a name without implementation it
 * does nothing, as in XState
 * @throws RuntimeFault HF-3003 when it was an inline function enqueued by `enqueueActions` and the process that knew it is gone
 */
export function resolveAction(
  compiled: CompiledMachine,
  record: ActorRecord,
  effect: Extract<Effect, { kind: "action" }>,
  deliver?: Deliver,
): () => unknown {
  const memory = compiled.actionMemory.get(effect);
  const run = memory?.run ?? implementationOf(compiled, record, effect);
  if (run === undefined) return () => undefined;
  const { parent, key, genesis, id } = record;
  const args = {
    context: contextOf(record, effect, memory),
    event: effect.event,
    self: new ReachableAddress(deliver, key, parent?.childId ?? id, genesis),
    system: {
      get: (systemId: string) =>
        new ReachableAddress(deliver, record.directory[systemId] ?? SYSTEM_KEY_PREFIX + systemId, systemId),
    },
  };
  return () => Reflect.apply(run, undefined, [args, effect.params]);
}

/** The context of the action's own transition, also when later ones have been committed meanwhile. */
function contextOf(
  record: ActorRecord,
  effect: Extract<Effect, { kind: "action" }>,
  memory: ActionMemory | undefined,
): unknown {
  if ("context" in effect) return effect.context;
  return memory === undefined ? record.snapshot.context : memory.context;
}

function implementationOf(
  compiled: CompiledMachine,
  record: ActorRecord,
  effect: Extract<Effect, { kind: "action" }>,
): ActionImplementation | undefined {
  if (!effect.name.startsWith(VOLATILE_PREFIX)) return compiled.actions.get(effect.name);
  const name = effect.name.slice(VOLATILE_PREFIX.length);
  throw new RuntimeFault(
    "HF-3003",
    `${record.key}: action "${name}" of effect ${effect.id} was an inline function enqueued by enqueueActions and cannot be found again. ` +
      "Its transition is stored, the action is not run. Enqueue a named action.",
    { facts: { key: record.key, effect: effect.id, action: name } },
  );
}
