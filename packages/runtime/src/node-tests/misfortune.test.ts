import { parseActorKey } from "@holdfast/protocol";
import { expect, test } from "vitest";
import type { FaultRates } from "../testing/index.ts";
import { SeededRandom } from "../testing/index.ts";
import { replayOf, storedEntries } from "./journal-replay.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";

/** Per request and delivery. */
const STORM: FaultRates = {
  lostAckRate: 0.12,
  lateWriteRate: 0.12,
  refuseThenAcceptRate: 0.1,
  disconnectRate: 0.03,
  readFailureRate: 0.1,
  duplicateDeliveryRate: 0.2,
  duplicateStoreRate: 0.1,
  jitterTurns: 6,
};
const TALLIES = ["t1", "t2", "t3"];
const BOSSES = ["b1", "b2"];
const ERRANDS = { e1: "risky", e2: "keyed", e3: "free" } as const;
const ROUNDS = 24;
const SEEDS = [1, 2, 3, 4, 5];

/** Two nodes on a bad line that are killed, stopped, continued and replaced while work goes on. */
class Storm {
  readonly fleet = new MemoryFleet({
    settings: {
      movesAtOnce: 2,
      cursorFlushMs: 300,
      idleCleanMs: 100,
      passivateMs: 500,
      sweepMs: 700,
      drainGraceMs: 5000,
    },
  });
  readonly #seed: number;
  readonly #random: SeededRandom;
  #living: MemoryProcess[] = [];
  #names = 0;

  constructor(seed: number) {
    this.#seed = seed;
    this.#random = new SeededRandom(seed);
  }

  join(faults: FaultRates = { ...STORM, seed: this.#seed }): void {
    this.#names += 1;
    const process = this.fleet.make(`n${this.#names}`, { faults });
    process.node.start().catch(() => undefined); // a bad line may keep it from joining
    this.#living.push(process);
  }

  /** Something happens to somebody; mostly nothing. */
  strike(): void {
    const victim = this.#living[this.#random.below(this.#living.length)];
    if (victim === undefined) return this.join();
    switch (this.#random.below(7)) {
      case 0:
        this.#living = this.#living.filter((process) => process !== victim);
        victim.kill();
        break;
      case 1:
        victim.stop();
        break;
      case 2:
        for (const process of this.#living) process.resume();
        break;
      case 3:
        this.#living = this.#living.filter((process) => process !== victim);
        void victim.node.drain().catch(() => undefined);
        break;
      case 4:
        this.fleet.broker.restart();
        break;
      case 5:
        this.fleet.broker.forgetMessageIds();
        break;
      default:
        break;
    }
    if (this.#living.length < 2) this.join();
  }

  /** Jobs come to an end sooner or later, all attempts with the same result. */
  finishJobs(): void {
    for (const job of this.fleet.desk.begun) if (this.#random.chance(0.3)) job.finish("done");
  }

  async calm(): Promise<void> {
    for (const process of this.fleet.processes) process.kill();
    this.#living = [];
    this.join({});
    for (let round = 0; round < 60; round += 1) {
      await this.fleet.clock.advance(500);
      this.finishJobs();
    }
  }
}

test.each(SEEDS)(
  "whatever happens to nodes and lines, every message is applied once and in order, every child ends once (seed %i)",
  async (seed) => {
    const storm = new Storm(seed);
    const { fleet } = storm;
    storm.join();
    storm.join();
    for (const id of TALLIES) await fleet.begin("tally", id);
    for (const id of BOSSES) await fleet.begin("boss", id);
    for (const id of Object.keys(ERRANDS)) await fleet.begin("errand", id);
    const asked = new Map<string, readonly number[]>();
    const key = (type: string, id: string): string => fleet.key(type, id);
    for (let round = 1; round <= ROUNDS; round += 1) {
      for (const id of TALLIES) await fleet.send(key("tally", id), { type: "ADD", n: round });
      for (const id of BOSSES) {
        if (round % 6 === 0)
          await fleet.send(key("boss", id), { type: "DELEGATE", id: `h${round}`, input: { works: round % 12 === 0 } });
        if (round > 6) await fleet.send(key("boss", id), { type: "TELL", id: "h6", n: round });
        const helper = fleet.record(key("boss", id))?.snapshot.children["h6"]?.key;
        if (helper === undefined || fleet.record(helper) === undefined) continue;
        await fleet.send(helper, { type: "SAY", n: round });
        asked.set(id, [...(asked.get(id) ?? []), round]);
      }
      for (const [id, src] of Object.entries(ERRANDS)) await fleet.send(key("errand", id), { type: "RUN", src });
      storm.strike();
      storm.finishJobs();
      await fleet.clock.advance(700);
    }
    await storm.calm();

    const rounds = Array.from({ length: ROUNDS }, (_, n) => n + 1);
    for (const id of TALLIES) expect(fleet.context(key("tally", id)), id).toEqual({ seen: rounds });
    for (const id of BOSSES) {
      const boss = fleet.record(key("boss", id));
      const { said: heard, results, errors } = contextOf(boss?.snapshot.context);
      expect(heard, "what its helper was asked to say").toEqual(asked.get(id) ?? []);
      expect(results).toHaveLength(ROUNDS / 12); // h12, h24, … work and end
      expect(errors).toEqual([]);
      const helper = fleet.record(boss?.snapshot.children["h6"]?.key ?? "");
      expect(listOf(helper?.snapshot.context, "words")).toEqual(rounds.slice(6));
    }
    for (const id of Object.keys(ERRANDS)) expect(fleet.record(key("errand", id))?.snapshot.value, id).toBe("waiting");
    const risky = fleet.desk.of("risky").map(({ context }) => context.key);
    expect(risky.length).toBeGreaterThan(0);
    expect(new Set(risky).size, "no attempt of what must not run twice is a second one").toBe(risky.length);
    const helpers = BOSSES.flatMap((id) => fleet.record(key("boss", id))?.snapshot.children["h6"]?.key ?? []);
    const actors = [
      ...TALLIES.map((id) => key("tally", id)),
      ...BOSSES.map((id) => key("boss", id)),
      ...Object.keys(ERRANDS).map((id) => key("errand", id)),
      ...helpers,
    ];
    const owners = new Map<string, Set<string>>();
    for (const actor of actors) {
      expect({ actor, ...replayOf(fleet, actor) }).toEqual({ actor, end: { kind: "complete" }, differences: [] });
      for (const { writer } of storedEntries(fleet, actor)) {
        const owned = `${parseActorKey(actor).partition}@${writer?.epoch ?? "unknown"}`;
        owners.set(owned, (owners.get(owned) ?? new Set()).add(writer?.incarnation ?? "unknown"));
      }
    }
    expect(
      [...owners].filter(([, incarnations]) => incarnations.size > 1),
      "two owners in one epoch",
    ).toEqual([]);
    expect(owners.size, "partitions changed hands").toBeGreaterThan(4);
    for (const { node } of fleet.processes.slice(-1)) {
      expect([...node.partitions.values()].flatMap(({ reports }) => [...reports])).toEqual([]);
    }
  },
);

interface Told {
  readonly said: readonly unknown[];
  readonly results: readonly unknown[];
  readonly errors: readonly unknown[];
}
const listOf = (value: unknown, field: string): readonly unknown[] => {
  const list: unknown = typeof value === "object" && value !== null ? Reflect.get(value, field) : undefined;
  return Array.isArray(list) ? list : [];
};
const contextOf = (context: unknown): Told => ({
  said: listOf(context, "said"),
  results: listOf(context, "results"),
  errors: listOf(context, "errors"),
});
