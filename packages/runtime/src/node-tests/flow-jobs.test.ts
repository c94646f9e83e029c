import { describe, expect, test } from "vitest";
import { defineActor, type ActorDefinition, type JobDefinition, type TypeLimits } from "../actor-definition.ts";
import type { RuntimeSettings } from "../settings.ts";
import { errandMachine } from "./errand.machine.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";

/** Errands whose jobs have the given limits. */
function errands(
  fleet: MemoryFleet,
  limits: TypeLimits,
  free: Partial<JobDefinition> = {},
  keyed: Partial<JobDefinition> = {},
): readonly ActorDefinition[] {
  return [
    defineActor({
      type: "errand",
      machine: errandMachine,
      limits,
      jobs: {
        free: fleet.desk.job("free", { crashPolicy: "idempotent", ...free }),
        keyed: fleet.desk.job("keyed", { crashPolicy: "dedupeKey", ...keyed }),
        risky: fleet.desk.job("risky", { crashPolicy: "unsafe" }),
      },
    }),
  ];
}

/** Actors that each want one job of a source. */
async function wanting(fleet: MemoryFleet, src: string, names: readonly string[]): Promise<readonly string[]> {
  const keys: string[] = [];
  for (const name of names) {
    const key = await fleet.born("errand", name);
    await fleet.send(key, { type: "RUN", src });
    await fleet.until(`${name} has decided its job`, () => fleet.record(key)?.rev === 2);
    keys.push(key);
  }
  return keys;
}
const running = (fleet: MemoryFleet, src: string): number => fleet.desk.of(src).length;

async function withLimits(
  settings: Partial<RuntimeSettings>,
  definitions?: (fleet: MemoryFleet) => readonly ActorDefinition[],
) {
  const fleet = new MemoryFleet({ settings });
  const node = await fleet.alone("n1", definitions === undefined ? {} : { definitions: definitions(fleet) });
  return { fleet, node };
}

describe("jobs that run at the same time", () => {
  test.each<[string, Partial<RuntimeSettings>, (fleet: MemoryFleet) => readonly ActorDefinition[]]>([
    ["of the node", { nodeJobConcurrency: 2 }, (fleet) => errands(fleet, {})],
    ["of a source", {}, (fleet) => errands(fleet, {}, { concurrency: 2 })],
    ["of all sources by default", { jobConcurrency: 2 }, (fleet) => errands(fleet, {})],
    ["of an actor type", {}, (fleet) => errands(fleet, { jobs: 2 })],
    ["of a provider", { providerConcurrency: { model: 2 } }, (fleet) => errands(fleet, {}, { provider: "model" })],
  ])("J5: never more than the limit %s; the others follow when one is done", async (_name, settings, definitions) => {
    const { fleet, node } = await withLimits(settings, definitions);
    await wanting(fleet, "free", ["a", "b", "c", "d"]);
    await fleet.clock.advance(2000);
    expect([running(fleet, "free"), node.node.jobs.waiting]).toEqual([2, 2]);
    fleet.desk.of("free")[0]?.finish(1);
    await fleet.until("the third runs", () => running(fleet, "free") === 3);
    await fleet.clock.advance(2000);
    expect([running(fleet, "free"), node.node.jobs.highest]).toEqual([3, 2]);
  });

  test("J5: sources with one provider share its limit, and another source goes past them", async () => {
    const { fleet } = await withLimits({ providerConcurrency: { model: 1 } }, (made) =>
      errands(made, {}, { provider: "model" }, { provider: "model" }),
    );
    await wanting(fleet, "free", ["a", "b", "b2"]);
    await wanting(fleet, "keyed", ["c"]);
    await wanting(fleet, "risky", ["d"]);
    await fleet.until("the other one runs", () => running(fleet, "risky") === 1);
    expect([running(fleet, "free"), running(fleet, "keyed")]).toEqual([1, 0]);
    fleet.desk.of("free")[0]?.finish(1);
    await fleet.until("the next one runs", () => running(fleet, "free") === 2);
    fleet.desk.of("free")[1]?.finish(1);
    await fleet.until("the sources take turns", () => running(fleet, "keyed") === 1);
    expect(running(fleet, "free")).toBe(2);
  });
});

describe("a job that waits for its turn", () => {
  const one = { nodeJobConcurrency: 1 };

  test("J6: has not started: unsafe or not, it carries no mark, and the next owner runs it", async () => {
    const { fleet, node } = await withLimits(one);
    const [, waits] = await wanting(fleet, "risky", ["a", "b"]);
    const key = waits ?? "";
    await fleet.clock.advance(1000);
    expect(fleet.record(key)?.snapshot.children["risky"]?.attempt).toBeUndefined();
    node.kill();
    await fleet.alone("n2");
    await fleet.until("the next owner runs it", () => fleet.desk.of("risky", "n2").length === 1);
    expect(fleet.desk.of("risky", "n2")[0]?.context.actorKey).toBe(key);
  });

  test("is not run when its actor gave it up meanwhile", async () => {
    const { fleet, node } = await withLimits(one);
    const [, waits] = await wanting(fleet, "free", ["a", "b"]);
    await fleet.send(waits ?? "", { type: "GIVE_UP" });
    await fleet.until("it is given up", () => node.node.jobs.waiting === 0);
    fleet.desk.of("free")[0]?.finish(1);
    await fleet.clock.advance(2000);
    expect(running(fleet, "free")).toBe(1);
  });

  test("F22: goes with its partition; only what runs stays with its node", async () => {
    const { fleet, node } = await withLimits(one);
    const keys = await wanting(fleet, "risky", ["a", "b", "c"]);
    const second = await fleet.start("n2", { settings: { nodeJobConcurrency: 8 } });
    void node.node.drain();
    await fleet.serving(second);
    await fleet.until("the waiting ones run there", () => fleet.desk.of("risky", "n2").length === 2);
    expect(fleet.desk.of("risky", "n1").map(({ context }) => [context.actorKey, context.signal.aborted])).toEqual([
      [keys[0], false],
    ]);
    for (const { finish } of fleet.desk.begun) finish(1);
    await fleet.until("every outcome is applied", () => keys.every((key) => isOver(fleet, key)));
    expect(keys.map((key) => fleet.context(key))).toEqual(keys.map(() => ({ results: [1], errors: [] })));
  });

  test("a restart with more jobs than may run at once runs each of them, never more than may", async () => {
    const { fleet, node } = await withLimits({ nodeJobConcurrency: 3 });
    const keys = await wanting(
      fleet,
      "free",
      Array.from({ length: 12 }, (_, n) => `a${n}`),
    );
    node.kill();
    const next: MemoryProcess = await fleet.alone("n2");
    let most = 0;
    const done = new Set<number>();
    await fleet.until("all are done", () => {
      const present = fleet.desk.of("free", "n2").filter((_, n) => !done.has(n));
      most = Math.max(most, present.length);
      const index = fleet.desk.of("free", "n2").findIndex((_, n) => !done.has(n));
      if (index >= 0) {
        done.add(index);
        fleet.desk.of("free", "n2")[index]?.finish(index);
      }
      return keys.every((key) => isOver(fleet, key));
    });
    expect([most, next.node.jobs.highest, fleet.desk.of("free", "n2").length]).toEqual([3, 3, 12]);
  });
});

const isOver = (fleet: MemoryFleet, key: string): boolean => fleet.record(key)?.snapshot.value === "waiting";
