import { createActor, SimulatedClock, type AnyActorLogic } from "xstate";
import { ActorAddress } from "../index.ts";
import { allMicrotasks } from "./all-microtasks.ts";
import { scenarioMachines } from "./scenario-machines.ts";
import type { Scenario } from "./scenarios.ts";
import type { ToyDb } from "./toy-db.ts";
import { rootKey } from "./toy-host.ts";

/** What can be seen of an actor, in a form that is the same for XState's actors and for records. */
export interface SeenActor {
  readonly status: string;
  readonly value: unknown;
  readonly context: unknown;
  readonly output?: unknown;
  readonly error?: unknown;
  readonly children: Readonly<Record<string, unknown>>;
}

/** One line per observation; equal lines mean equal behaviour. */
export function viewOf(actor: SeenActor, journal: readonly string[], emitted: readonly unknown[]): string {
  const { status, value, context, output, error } = actor;
  const children = status === "active" ? Object.keys(actor.children).toSorted() : [];
  return JSON.stringify(
    normal({ status, value, context, output, error, children, journal: byActor(journal), emitted }),
  );
}

export function viewOfRoot(name: string, db: ToyDb): string {
  const record = db.records[rootKey(name)];
  return record === undefined ? "no record" : viewOf(record.snapshot, db.journal, db.emitted);
}

/** The same scenario with XState's own actor in memory, one view after each operation. */
export async function oracle({ name, input, operations }: Scenario): Promise<readonly string[]> {
  const journal: string[] = [];
  const emitted: unknown[] = [];
  const clock = new SimulatedClock();
  const logic: AnyActorLogic | undefined = scenarioMachines((label) => void journal.push(label))[name];
  if (logic === undefined) throw new Error(`no machine ${name}`);
  const options = { clock, input, logger: () => undefined };
  const actor = createActor(logic, options);
  actor.subscribe({ error: () => undefined });
  actor.on("*", (event) => void emitted.push(event));
  actor.start();
  await allMicrotasks();
  const views: string[] = [];
  for (const operation of operations) {
    if ("send" in operation) actor.send(operation.send);
    else {
      // In small parts, so that a timer armed by another timer is due at its own time.
      for (let done = 0; done < operation.advanceMs; done += 50)
        clock.increment(Math.min(50, operation.advanceMs - done));
    }
    await allMicrotasks();
    views.push(viewOf(actor.getSnapshot(), journal, emitted));
  }
  return views;
}

/** Actions of different actors may run in another order; those of one actor may not. */
function byActor(journal: readonly string[]): Readonly<Record<string, readonly string[]>> {
  const actors = new Map<string, string[]>();
  for (const label of journal) {
    const actor = label.split(":")[0] ?? "";
    actors.set(actor, [...(actors.get(actor) ?? []), label]);
  }
  return Object.fromEntries(actors);
}

function normal(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Error) return { error: value.message };
  if (value instanceof ActorAddress || isXStateRef(value)) return { ref: value.id };
  if (Array.isArray(value)) return value.map(normal);
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, normal(member)]));
}

const isXStateRef = (value: object): value is { readonly id: string } =>
  "sessionId" in value && "send" in value && "ref" in value && "id" in value;
