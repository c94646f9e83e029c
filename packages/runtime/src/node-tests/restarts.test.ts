import { exitKey, proofOf, Restart, restartKey, type AfterCrash, type ExitReport } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { defineActor, type ActorDefinition } from "../actor-definition.ts";
import type { NodeProcess } from "../runtime-node-options.ts";
import { choreMachine } from "./chore.machine.ts";
import { deadlineMachine } from "./deadline.machine.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";
import { OperatorDesk } from "./operator-desk.ts";

const SECRET = "5e".repeat(16);
const TOKEN = "70".repeat(16);
const WRONG = "ab".repeat(16);
const SUPERVISED: NodeProcess = { pid: 41, startedAtMs: 1000, exitProof: proofOf(SECRET) };
const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

const actors = (fleet: MemoryFleet, afterCrash: AfterCrash): readonly ActorDefinition[] => [
  defineActor({
    type: "chore",
    machine: choreMachine,
    afterCrash,
    jobs: { labour: fleet.desk.job("labour", { crashPolicy: "idempotent" }) },
  }),
  defineActor({ type: "deadline", machine: deadlineMachine, afterCrash }),
];

interface Asked {
  readonly resume?: boolean;
  readonly tokenProof?: string;
}

/** A node under a supervisor, with an actor whose job runs and one that waits, and what a test does to it. */
async function stage(afterCrash: AfterCrash = "hold", { drainGraceMs = 1000 } = {}) {
  const fleet = new MemoryFleet({ settings: { sweepMs: 1000, drainGraceMs, restartWaitMs: 10_000 } });
  const operator = await OperatorDesk.open(fleet);
  const definitions = actors(fleet, afterCrash);
  const first = await fleet.alone("n1", { definitions, process: SUPERVISED });
  const key = await fleet.born("chore", "c");
  const timed = await fleet.born("deadline", "d", { waitMs: 3_600_000 });
  await fleet.until("the job runs", () => fleet.desk.of("labour").length === 1);
  const { incarnation } = first.node;
  let stored: Restart | undefined;
  const restart = async (node = "n1"): Promise<Restart | undefined> => {
    const value = await fleet.outsider.fleet.get(restartKey(node));
    return value === undefined ? undefined : Restart.parse(JSON.parse(new TextDecoder().decode(value.bytes)));
  };
  const ask = ({ resume = true, tokenProof }: Asked = {}) =>
    fleet.outsider.fleet.put(
      "drain.n1",
      encode({
        v: 1,
        node: "n1",
        incarnation,
        by: "person-ada",
        restart: { id: "planned1", resume, ...(tokenProof !== undefined && { tokenProof }) },
      }),
    );
  /** Asks for it, and waits until the process would exit. */
  const leave = async (asked: Asked = {}): Promise<void> => {
    await ask(asked);
    await fleet.happened("its process is told", first.node.ending);
    await fleet.happened("it has left", first.node.drain());
    stored = await restart();
  };
  const report = (changed: Partial<ExitReport> = {}): ExitReport => ({
    v: 1,
    node: "n1",
    generation: { incarnation, pid: 41, startedAtMs: 900 },
    exitCode: 42,
    secret: SECRET,
    ...changed,
  });
  const acknowledge = (changed: Partial<ExitReport> = {}) =>
    fleet.outsider.fleet.put(exitKey("n1"), encode(report(changed)));
  const next = (name = "n2", process?: NodeProcess): Promise<MemoryProcess> =>
    fleet.alone(name, { definitions, ...(process !== undefined && { process }) });
  const held = () => [key, timed].filter((each) => operator.actor(each) !== undefined);
  return {
    fleet,
    operator,
    definitions,
    first,
    key,
    timed,
    restart,
    prepared: () => stored,
    ask,
    leave,
    report,
    acknowledge,
    next,
    held,
  };
}

describe("a planned restart", () => {
  test("lists what it keeps before anything leaves, and a node whose exit was acknowledged finds all of it as it was", async () => {
    const { fleet, first, key, timed, restart, leave, prepared, acknowledge, next, held } = await stage();
    const before = [key, timed].map((each) => fleet.broker.writesOf(each).at(-1)?.bytes);
    await leave();
    expect(await first.node.ending).toMatchObject({ kind: "restartAsked", id: "planned1" });
    expect(prepared()).toMatchObject({
      state: "prepared",
      generation: { incarnation: first.node.incarnation, pid: 41, startedAtMs: 1000 },
      partitions: { moving: [], waiting: ["d-0", "d-1", "d-2", "d-3"] },
      actors: 2,
    });
    expect(prepared()?.keeps.map(({ key: each, verdict }) => [each, verdict])).toEqual(
      [key, timed].toSorted().map((each) => [each, "returns"]),
    );
    await acknowledge();
    const second = await next();
    await fleet.until("its job runs again", () => fleet.desk.of("labour", "n2").length === 1);
    expect([key, timed].map((each) => fleet.broker.writesOf(each).at(-1)?.bytes)).toEqual(before);
    expect(held()).toEqual([]);
    await fleet.clock.advance(3000);
    expect(await restart()).toMatchObject({
      state: "consumed",
      acknowledgement: { source: "supervisor", exit: { exitCode: 42 } },
      settledBy: second.node.incarnation,
    });
  });

  test("waits for its acknowledgement: until then a successor takes nothing up, with it everything at once", async () => {
    const { fleet, definitions, leave, acknowledge, held } = await stage();
    await leave();
    const second = await fleet.start("n2", { definitions });
    await fleet.clock.advance(5000);
    expect(second.node.partitions.size).toBe(0);
    await acknowledge();
    await fleet.serving(second);
    expect(held()).toEqual([]);
  });

  test.each(["resume", "hold"] as const)("%s: an exit that nobody acknowledges", async (afterCrash) => {
    const { fleet, operator, leave, key, next, held, restart } = await stage(afterCrash);
    await leave();
    await next();
    await fleet.clock.advance(5000);
    expect(held()).toHaveLength(afterCrash === "hold" ? 2 : 0);
    expect(fleet.desk.of("labour", "n2")).toHaveLength(afterCrash === "hold" ? 0 : 1);
    expect((await restart())?.state).toBe("abandoned");
    if (afterCrash === "hold")
      expect(operator.actor(key)?.reason).toBe(
        "restart planned1 of n1: nobody has acknowledged that its process ended",
      );
  });

  const other = { pid: 41, startedAtMs: 900 };
  test.each<[string, Partial<ExitReport>, string]>([
    ["without the secret of its supervisor", { secret: WRONG }, "does not come from the supervisor"],
    ["of another process", { generation: { incarnation: "n1:00000000", ...other } }, "nobody has acknowledged"],
    ["with another exit code", { exitCode: 0 }, "ended with 0, not 42"],
  ])("a forged acknowledgement is refused: %s", async (_, changed, why) => {
    const { operator, leave, acknowledge, next, key, held, restart, fleet } = await stage();
    await leave();
    await acknowledge(changed);
    await next();
    await fleet.clock.advance(3000);
    expect(held()).toHaveLength(2);
    expect(operator.actor(key)?.reason).toContain(why);
    expect((await restart())?.state).toBe("abandoned");
  });

  test.each([
    ["pid", { pid: 42, startedAtMs: 900 }, "process 42, not 41"],
    ["start", { pid: 41, startedAtMs: 5000 }, "started at another time"],
  ])("a forged acknowledgement is refused: another %s", async (_, generation, why) => {
    const { operator, first, leave, acknowledge, next, key } = await stage();
    await leave();
    await acknowledge({ generation: { incarnation: first.node.incarnation, ...generation } });
    await next();
    expect(operator.actor(key)?.reason).toContain(why);
  });

  test.each<[string, (report: ExitReport) => Restart["acknowledgement"], string]>([
    ["supervisor", (exit) => ({ source: "supervisor", exit: { ...exit, secret: WRONG } }), "come from the supervisor"],
    ["successor", () => ({ source: "successor", incarnation: "n2:00000000", token: WRONG }), "is not its token"],
  ])("a node that writes that the %s has acknowledged it is not believed", async (_, acknowledgement, why) => {
    const { fleet, operator, leave, prepared, report, next, key } = await stage();
    await leave({ tokenProof: proofOf(TOKEN) });
    const forged = { ...prepared(), state: "acknowledged", acknowledgement: acknowledgement(report()) };
    await fleet.outsider.fleet.put(restartKey("n1"), encode(forged));
    await next();
    expect(operator.actor(key)?.reason).toContain(why);
  });

  test("the one-shot token of a successor acknowledges it, another one does not", async () => {
    const { fleet, definitions, leave, held, restart } = await stage();
    await leave({ tokenProof: proofOf(TOKEN) });
    const wrong = await fleet.start("n2", {
      definitions,
      process: { pid: 7, startedAtMs: 0, successorToken: WRONG },
    });
    await fleet.clock.advance(3000);
    expect([wrong.node.partitions.size, (await restart())?.state]).toEqual([0, "prepared"]);
    wrong.kill();
    const right = await fleet.start("n3", { definitions, process: { pid: 8, startedAtMs: 0, successorToken: TOKEN } });
    await fleet.serving(right);
    await fleet.clock.advance(5000);
    expect(held()).toEqual([]);
    expect(await restart()).toMatchObject({
      state: "consumed",
      acknowledgement: { source: "successor", incarnation: right.node.incarnation },
    });
  });

  test("while another node of the pool lives it takes over at once, and the restart only records it", async () => {
    const { fleet, definitions, leave, acknowledge, held, restart } = await stage();
    const second = await fleet.start("n2", { definitions });
    await leave();
    await fleet.serving(second);
    expect(held()).toEqual([]);
    await fleet.until("its job runs there", () => fleet.desk.of("labour", "n2").length === 1);
    expect((await restart())?.partitions).toEqual({ moving: ["d-0", "d-1", "d-2", "d-3"], waiting: [] });
    await acknowledge();
    await fleet.clock.advance(3000);
    expect((await restart())?.state).toBe("consumed");
  });

  test("every later pass of the same shutdown leaves what it keeps alone", async () => {
    const { fleet, first, key, timed, ask, leave, prepared, restart, acknowledge, next, held } = await stage();
    await leave();
    const before = [key, timed].map((each) => fleet.broker.writesOf(each).length);
    await ask({ resume: false });
    await fleet.happened("another pass", Promise.all([first.node.drain(), first.node.stop(), first.node.stop()]));
    expect(await restart()).toEqual(prepared());
    expect([key, timed].map((each) => fleet.broker.writesOf(each).length)).toEqual(before);
    await acknowledge();
    await next();
    await fleet.until("its job runs again", () => fleet.desk.of("labour", "n2").length === 1);
    expect(held()).toEqual([]);
  });

  test("asked for several times: the first one stays the only one", async () => {
    const { fleet, first, ask, restart } = await stage("hold", { drainGraceMs: 5000 });
    first.registry.lag();
    await fleet.happened("it was asked", Promise.all([ask(), ask({ resume: false }), ask({ resume: false })]));
    await fleet.clock.advance(100);
    first.registry.goOn(); // all of them at once
    await fleet.happened("its process is told", first.node.ending);
    const prepared = await restart();
    await ask({ resume: prepared?.resume !== true });
    await fleet.clock.advance(1000);
    expect(await restart()).toEqual(prepared);
    expect(fleet.desk.of("labour")[0]?.context.signal.aborted).toBe(false);
    expect([...first.node.view.leases.values()].map(({ lease }) => lease.restart?.resume)).toEqual(
      Array(4).fill(prepared?.resume),
    );
    expect(fleet.events("node.drain-asked")).toHaveLength(1);
  });

  test.each([true, false])("without resume everybody is held, also where another node lives (%s)", async (isOther) => {
    const { fleet, operator, definitions, leave, prepared, acknowledge, next, key, timed } = await stage("resume");
    if (isOther) await fleet.start("n2", { definitions });
    await leave({ resume: false });
    await acknowledge();
    expect(prepared()?.keeps.map(({ verdict }) => verdict)).toEqual(["held", "held"]);
    if (!isOther) await next();
    await fleet.until("both are held", () => [key, timed].every((each) => operator.actor(each) !== undefined));
    expect(operator.actor(key)?.reason).toBe("restart planned1 of n1 was prepared without resume");
    expect(fleet.desk.of("labour")).toHaveLength(1);
    expect(await operator.command("resume", key)).toMatchObject({ kind: "done" });
    await fleet.until("it runs again", () => fleet.desk.of("labour", "n2").length === 1);
  });

  test("a process that dies after it was prepared is an end that nobody acknowledged", async () => {
    const { fleet, operator, first, ask, next, key } = await stage("hold", { drainGraceMs: 60_000 });
    await ask();
    await fleet.happened("its process is told", first.node.ending);
    await fleet.until("it has given everything away", () => first.node.partitions.size === 0);
    first.kill();
    await next();
    expect(operator.actor(key)?.reason).toContain("nobody has acknowledged");
    expect(fleet.desk.of("labour", "n2")).toEqual([]);
  });

  test("a panic outlives it: its successor takes nothing up, acknowledged or not", async () => {
    const { fleet, definitions, leave, acknowledge } = await stage("resume");
    await leave();
    await acknowledge();
    const raised = { v: 1, state: "raised", by: "person-ada", reason: "stop", token: "t" };
    await fleet.outsider.fleet.put("flag.panic", encode(raised));
    const second = await fleet.start("n2", { definitions });
    await fleet.clock.advance(15_000);
    expect([second.node.partitions.size, fleet.desk.of("labour", "n2").length]).toEqual([0, 0]);
  });
});
