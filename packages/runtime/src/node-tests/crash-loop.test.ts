import { describe, expect, test } from "vitest";
import { defineActor, type ActorDefinition } from "../actor-definition.ts";
import { fragileMachine } from "./fragile.machine.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";
import { OperatorDesk } from "./operator-desk.ts";
import { testActors } from "./test-actors.ts";

const SETTINGS = { cursorFlushMs: 100, idleCleanMs: 100, maxAttempts: 2, crashWindowMs: 10_000 };
/** Three die before anybody is suspected, then as many as `maxAttempts`. */
const DEATHS = 5;

interface World {
  readonly fleet: MemoryFleet;
  readonly operator: OperatorDesk;
  /** Every mark of a trial that was ever stored: what was tried, by key. */
  readonly trials: (readonly [string, string])[];
}

async function world(): Promise<World> {
  const fleet = new MemoryFleet({ settings: SETTINGS });
  const trials: [string, string][] = [];
  await fleet.outsider.stuck.watch(({ bytes }) => {
    if (bytes.length === 0) return;
    const { key, what } = JSON.parse(new TextDecoder().decode(bytes));
    trials.push([key, String(what).replace(/ .*/, "")]);
  }, "trial.>");
  return { fleet, operator: await OperatorDesk.open(fleet), trials };
}

const ended = new WeakSet<MemoryProcess>();

/** `kill`: the process is gone. `stop`: it does nothing any more, as in an endless loop. */
type Ending = "kill" | "stop";

/** A node whose build ends its process at what the machine of type `fragile` cannot take, and in the job `free` of an errand. */
async function deadly(fleet: MemoryFleet, name: string, ending: Ending = "kill"): Promise<MemoryProcess> {
  const self: { process?: MemoryProcess } = {};
  const die = (): void => {
    self.process?.[ending]();
    if (self.process !== undefined) ended.add(self.process);
  };
  const fragility = {
    get breaks(): boolean {
      die();
      return false;
    },
  };
  const definitions: readonly ActorDefinition[] = [
    ...testActors(fleet.desk).map((definition) =>
      definition.type === "errand"
        ? {
            ...definition,
            jobs: {
              ...definition.jobs,
              free: { crashPolicy: "idempotent" as const, run: () => new Promise<never>(() => die()) },
            },
          }
        : definition,
    ),
    defineActor({ type: "fragile", machine: fragileMachine(fragility) }),
  ];
  self.process = fleet.make(name, { definitions });
  const started = self.process.node.start();
  await fleet.happened(`${name} has joined`, started);
  return self.process;
}

const isDead = (process: MemoryProcess): boolean => ended.has(process);

/** Nodes of the deadly build, each after the death of the one before, until one has lived to see that `isOver`. */
async function oneAfterTheOther(
  fleet: MemoryFleet,
  isOver: () => boolean,
  ending: Ending = "kill",
): Promise<{ readonly deaths: number }> {
  for (let deaths = 1; deaths < 10; deaths += 1) {
    const process = await deadly(fleet, `n${fleet.processes.length + 1}`, ending);
    await fleet.until(`${process.name} has died, or it is over`, () => isDead(process) || isOver());
    if (!isDead(process)) return { deaths };
  }
  throw new Error("nobody has survived");
}

async function firstNode(fleet: MemoryFleet, ending: Ending = "kill"): Promise<MemoryProcess> {
  const process = await deadly(fleet, "n1", ending);
  await fleet.serving(process);
  return process;
}

describe("what takes its node down each time", () => {
  test.each<[string, Ending]>([
    ["a message that ends the process", "kill"],
    ["a message that never ends", "stop"],
  ])(
    "%s is taken out with bytes, reason and history; its actor, its neighbours and the cursor go on",
    async (_, how) => {
      const { fleet, operator } = await world();
      const first = await firstNode(fleet, how);
      const key = await fleet.born("fragile", "f");
      const neighbours = await Promise.all(["a", "b", "c", "d"].map((id) => fleet.born("tally", id)));
      await fleet.clock.advance(500);
      const poison = await fleet.send(key, { type: "BREAK", n: "poison" });
      const after = await fleet.send(key, { type: "ADD", n: "after" });
      for (const neighbour of neighbours) await fleet.send(neighbour, { type: "ADD", n: 1 });
      await fleet.until("the first node has died", () => isDead(first));
      const { deaths } = await oneAfterTheOther(fleet, () => fleet.outcomes(after).length > 0, how);
      expect(deaths).toBe(DEATHS);
      const entry = operator.message(key, poison);
      expect(entry).toMatchObject({
        subject: "message",
        state: "quarantined",
        code: "HF-3102",
        attempts: SETTINGS.maxAttempts,
        messageId: poison,
      });
      expect(entry?.history.map(({ node }) => node.split(":")[0])).toEqual(["n4", "n5"]);
      expect(await operator.bytes(key, poison)).toBeDefined();
      expect(fleet.context(key)).toEqual({ seen: ["after"] });
      for (const neighbour of neighbours)
        await fleet.until("a neighbour goes on", () => JSON.stringify(fleet.context(neighbour)) === '{"seen":[1]}');
      const seq = fleet.broker.messagesOf("inbox", key).find(({ messageId }) => messageId === poison)?.seq ?? 0;
      await fleet.until("the cursor is past it", () => (fleet.lease(key.slice(0, 3))?.cursor ?? 0) > seq);
    },
  );

  test("an actor whose deadline does so is held; its messages wait, and a healed build takes them after retry", async () => {
    const { fleet, operator } = await world();
    const first = await firstNode(fleet);
    const key = await fleet.born("fragile", "f");
    await fleet.send(key, { type: "WAIT" });
    await fleet.until("the first node has died", () => isDead(first));
    const { deaths } = await oneAfterTheOther(fleet, () => operator.actor(key) !== undefined);
    expect(deaths).toBe(DEATHS);
    expect(operator.actor(key)).toMatchObject({ subject: "actor", state: "quarantined", code: "HF-3102", attempts: 2 });
    expect(operator.actor(key)?.history[0]?.reason).toContain("timer");
    const heldMs = operator.actor(key)?.lastMs ?? 0;
    await fleet.send(key, { type: "ADD", n: 1 });
    await fleet.until("it is set aside", () => fleet.broker.messagesOf("parked", key).length === 1);
    // A retry with the same build ends in the same place, however many nodes are left.
    await operator.leave("retry", key);
    await fleet.until("it has died of the retry", () => fleet.processes.every(isDead));
    await oneAfterTheOther(fleet, () => (operator.actor(key)?.lastMs ?? 0) > heldMs);
    expect(operator.actor(key)?.code).toBe("HF-3102");
    fleet.processes.at(-1)?.kill();
    await fleet.alone("healed", {
      definitions: [
        ...testActors(fleet.desk),
        defineActor({ type: "fragile", machine: fragileMachine({ breaks: false }) }),
      ],
    });
    expect(fleet.record(key)?.snapshot.value).toBe("waiting");
    expect(await operator.command("retry", key)).toMatchObject({ kind: "done" });
    await fleet.until("all are applied", () => fleet.record(key)?.snapshot.value === "calm");
    await fleet.until("its entry is gone", () => operator.actor(key) === undefined);
    expect(fleet.context(key)).toEqual({ seen: expect.arrayContaining([1]) });
  });

  test("a job ends in HF-3102 at the actor that asked for it", async () => {
    const { fleet } = await world();
    const first = await firstNode(fleet);
    const key = await fleet.born("errand", "e");
    await fleet.send(key, { type: "RUN", src: "free" });
    await fleet.until("the first node has died", () => isDead(first));
    const { deaths } = await oneAfterTheOther(fleet, () => fleet.record(key)?.snapshot.value === "waiting");
    expect(deaths).toBe(DEATHS);
    expect(fleet.context(key)).toMatchObject({ results: [], errors: [{ code: "HF-3102" }] });
  });
});

describe("nodes that die of something else", () => {
  test("one death, or two in a row, change nothing: not one mark is stored", async () => {
    const { fleet, trials } = await world();
    let process = await firstNode(fleet);
    const key = await fleet.born("tally", "a");
    for (const [name, n] of [
      ["n2", 1],
      ["n3", 2],
      ["n4", 3],
    ] as const) {
      process.kill();
      process = await fleet.alone(name);
      await fleet.send(key, { type: "ADD", n });
      if (name === "n2") {
        await fleet.clock.advance(SETTINGS.crashWindowMs + 500);
        expect(fleet.lease("d-0")?.crashes).toBe(0);
      }
    }
    await fleet.until("all are applied", () => fleet.record(key)?.rev === 4);
    expect(trials).toEqual([]);
    expect(fleet.lease("d-0")?.crashes).toBe(2);
  });

  test("after many, everything is tried alone for a while; nothing is set aside, and then all is as before", async () => {
    const { fleet, trials, operator } = await world();
    let process = await firstNode(fleet);
    const keys = await Promise.all(["a", "b", "c"].map((id) => fleet.born("tally", id)));
    for (let n = 1; n <= 5; n += 1) {
      for (const key of keys) await fleet.send(key, { type: "ADD", n });
      process.kill();
      process = await fleet.alone(`n${n + 1}`);
      await fleet.until("all is applied", () => keys.every((key) => fleet.record(key)?.rev === n + 1));
    }
    for (const key of keys) expect(fleet.context(key)).toEqual({ seen: [1, 2, 3, 4, 5] });
    expect(trials.length).toBeGreaterThan(0);
    expect(operator.entries.size).toBe(0);
    await fleet.clock.advance(SETTINGS.crashWindowMs + 500);
    const before = trials.length;
    for (const key of keys) await fleet.send(key, { type: "ADD", n: 6 });
    await fleet.until("all is applied", () => keys.every((key) => fleet.record(key)?.rev === 7));
    expect(trials).toHaveLength(before);
    expect(fleet.lease("d-0")?.crashes).toBe(0);
  });

  test("jobs that take long hold up nothing else that is tried, and are all begun in the end", async () => {
    const { fleet, trials } = await world();
    let process = await firstNode(fleet);
    const errands = await Promise.all(["a", "b", "c", "d", "e", "f"].map((id) => fleet.born("errand", id)));
    const key = await fleet.born("tally", "a");
    for (const name of ["n2", "n3", "n4"]) {
      process.kill();
      process = await fleet.alone(name);
    }
    for (const errand of errands) await fleet.send(errand, { type: "RUN", src: "free" });
    await fleet.until("a job is watched", () => fleet.desk.of("free", "n4").length > 0);
    expect(trials.some(([, what]) => what === "job")).toBe(true);
    const sentAtMs = fleet.clock.monotonicMs();
    for (const n of [1, 2, 3]) await fleet.send(key, { type: "ADD", n });
    await fleet.until("all is applied", () => JSON.stringify(fleet.context(key)) === `{"seen":[1,2,3]}`);
    expect(fleet.clock.monotonicMs() - sentAtMs).toBeLessThan(2500); // the one that is watched for two seconds, and none of the others
    await fleet.until("every job has begun", () => fleet.desk.of("free", "n4").length === errands.length);
  });

  test("work that never stops coming does not keep a job away for ever", async () => {
    const { fleet } = await world();
    let process = await firstNode(fleet);
    const errand = await fleet.born("errand", "e");
    const key = await fleet.born("tally", "a");
    for (const name of ["n2", "n3", "n4"]) {
      process.kill();
      process = await fleet.alone(name);
    }
    await fleet.send(errand, { type: "RUN", src: "free" });
    const sentAtMs = fleet.clock.monotonicMs();
    for (let n = 0; fleet.desk.of("free", "n4").length === 0; n += 1) {
      expect(fleet.clock.monotonicMs() - sentAtMs).toBeLessThan(8000);
      await fleet.send(key, { type: "ADD", n });
      await fleet.clock.advance(25);
    }
  });

  test("a planned leave is no death", async () => {
    const { fleet } = await world();
    const first = await firstNode(fleet);
    await fleet.happened("it has left", first.node.stop());
    await fleet.alone("n2");
    expect(fleet.lease("d-0")?.crashes).toBeUndefined();
  });

  test("what was tried when its node died by chance, and was survived afterwards, has nothing against it any more", async () => {
    const { fleet, operator } = await world();
    let process = await firstNode(fleet);
    const key = await fleet.born("tally", "a");
    const suspects: string[] = [];
    await fleet.outsider.stuck.watch(({ key: name, bytes }) => {
      if (bytes.length === 0) suspects.splice(0);
      else suspects.push(name);
    }, "suspect.>");
    for (const name of ["n2", "n3", "n4", "n5"]) {
      process.kill();
      process = await fleet.start(name);
      if (name === "n2" || name === "n3") await fleet.serving(process);
      else {
        await fleet.send(key, { type: "ADD", n: name });
        const commit = process.holdAt("before-commit", key);
        await fleet.happened("it is in the middle of it", commit.reached);
        if (name === "n4") continue;
        commit.release();
        await fleet.until("all is applied", () => fleet.record(key)?.rev === 3);
        await fleet.until("nothing is held against it", () => suspects.length === 0);
      }
    }
    expect(operator.entries.size).toBe(0);
    expect(fleet.events("actor.suspected")).toHaveLength(1);
  });
});
