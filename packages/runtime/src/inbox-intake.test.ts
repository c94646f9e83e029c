import { describe, expect, test } from "vitest";
import { InboxIntake } from "./inbox-intake.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { MemoryFleet } from "./node-tests/memory-fleet.ts";
import { silentTelemetry, type InboxMessage, type MessageLog } from "./ports/index.ts";
import { SeededRandom } from "./testing/index.ts";

const LIMIT = 1000;
const never = new AbortController().signal;

async function opened(fleet: MemoryFleet, memory: MemoryBudget) {
  const seen: number[] = [];
  const intake = await InboxIntake.open({
    partition: partitionOf(fleet),
    from: 1,
    deliver: ({ seq }) => seen.push(seq),
    log: fleet.outsider.log,
    memory,
    clock: fleet.clock,
    telemetry: silentTelemetry,
  });
  return { seen, intake };
}
const keyOf = (fleet: MemoryFleet): string => fleet.key("resting", "a");
const partitionOf = (fleet: MemoryFleet): string => keyOf(fleet).slice(0, 3);
const send = (fleet: MemoryFleet): Promise<string> => fleet.send(keyOf(fleet), { type: "ADD", n: 1 });

describe("the inbox of a partition", () => {
  test("N2: is not read while memory is full; what came meanwhile is handed over afterwards, in order", async () => {
    const fleet = new MemoryFleet();
    const memory = new MemoryBudget(LIMIT);
    const { seen, intake } = await opened(fleet, memory);
    await send(fleet);
    await fleet.until("the first is there", () => seen.length === 1);
    memory.hold("mail", LIMIT + 1);
    for (let n = 0; n < 3; n += 1) await send(fleet);
    await fleet.clock.advance(5000);
    expect([seen, intake.isPaused]).toEqual([[1], true]);
    memory.hold("mail", -LIMIT);
    await fleet.until("the others are there", () => seen.length === 4);
    expect([seen, intake.pauses]).toEqual([[1, 2, 3, 4], 1]);
    await intake.stop();
  });

  test.each([1, 2, 3])(
    "N1: every message once and in order, whenever it is stopped and goes on (seed %i)",
    async (seed) => {
      const fleet = new MemoryFleet();
      const random = new SeededRandom(seed);
      const memory = new MemoryBudget(LIMIT);
      const { seen, intake } = await opened(fleet, memory);
      let isFull = false;
      for (let n = 0; n < 200; n += 1) {
        void send(fleet);
        if (random.chance(0.3)) {
          isFull = !isFull;
          memory.hold("mail", isFull ? LIMIT + 1 : -LIMIT - 1);
        }
        if (random.chance(0.5)) await fleet.clock.advance(random.below(3));
      }
      if (isFull) memory.hold("mail", -LIMIT - 1);
      await fleet.until("all are there", () => seen.length >= 200);
      await fleet.clock.advance(1000);
      expect(seen).toEqual(Array.from({ length: 200 }, (_, n) => n + 1));
      expect(intake.pauses).toBeGreaterThan(10);
      await intake.stop();
    },
  );

  test("N3: reading through outlasts a pause, and ends only when everything was handed over", async () => {
    const fleet = new MemoryFleet();
    const memory = new MemoryBudget(LIMIT);
    const { seen, intake } = await opened(fleet, memory);
    memory.hold("mail", LIMIT + 1);
    for (let n = 0; n < 5; n += 1) await send(fleet);
    let seenThen: number | undefined;
    void intake.readThrough(never).then(() => (seenThen = seen.length));
    await fleet.clock.advance(3000);
    expect(seenThen).toBeUndefined();
    memory.hold("mail", -LIMIT);
    await fleet.until("it was read through", () => seenThen !== undefined);
    expect(seenThen).toBe(5);
    await intake.stop();
  });

  test("N4: nothing is handed over after the end, and whoever waits is told", async () => {
    const fleet = new MemoryFleet();
    const memory = new MemoryBudget(LIMIT);
    const { seen, intake } = await opened(fleet, memory);
    memory.hold("mail", LIMIT + 1);
    const waiting = intake.readThrough(never).catch((error: unknown) => error);
    await intake.stop();
    memory.hold("mail", -LIMIT);
    await send(fleet);
    await fleet.clock.advance(3000);
    expect(seen).toEqual([]);
    expect(await waiting).toMatchObject({ code: "HF-3008" });
  });
});

/** A log in the hands of the test: subscriptions that end late, and say late what was read through. */
class HandDrivenLog {
  readonly subscriptions: {
    readonly from: number;
    readonly deliver: (seq: number) => void;
    readonly ended: () => void;
    readonly readThrough: () => void;
    readonly fail: (reason: unknown) => void;
  }[] = [];

  /** The part of the port that an intake uses; the rest would throw. */
  get port(): MessageLog {
    const subscribe: MessageLog["subscribe"] = (_partition, from, deliver) => {
      const ending = Promise.withResolvers<void>();
      const through = Promise.withResolvers<void>();
      const failing = new AbortController();
      this.subscriptions.push({
        from,
        deliver: (seq) => deliver(message(seq)),
        ended: ending.resolve,
        readThrough: through.resolve,
        fail: (reason) => failing.abort(reason),
      });
      return Promise.resolve({
        readThrough: () => through.promise,
        stop: () => ending.promise,
        failed: failing.signal,
      });
    };
    const unused = (): never => {
      throw new Error("an intake only subscribes");
    };
    return { subscribe, publish: unused, fetch: unused, position: unused, trim: unused };
  }
}
const message = (seq: number): InboxMessage => ({
  key: "d-0.resting.a",
  lane: "inbox",
  principal: undefined,
  seq,
  bytes: new Uint8Array(1),
  storedAtMs: 0,
  messageId: `m${seq}`,
});
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("a subscription that ends late", () => {
  test("N1: hands nothing over any more, also when there is room again: what was passed over in between would be missing", async () => {
    const fleet = new MemoryFleet();
    const log = new HandDrivenLog();
    const memory = new MemoryBudget(LIMIT);
    const seen: number[] = [];
    const intake = await InboxIntake.open({
      partition: "d-0",
      from: 1,
      deliver: ({ seq }) => seen.push(seq),
      log: log.port,
      memory,
      clock: fleet.clock,
      telemetry: silentTelemetry,
    });
    const [first] = log.subscriptions;
    first?.deliver(1);
    memory.hold("mail", LIMIT + 1);
    first?.deliver(2);
    let isThrough = false;
    memory.hold("mail", -LIMIT);
    void intake.readThrough(never).then(() => (isThrough = true));
    first?.deliver(3);
    first?.readThrough();
    await turn();
    expect([seen, isThrough]).toEqual([[1], false]);
    first?.ended();
    await turn();
    const [, second] = log.subscriptions;
    expect(second?.from).toBe(2);
    for (const seq of [2, 3]) second?.deliver(seq);
    second?.readThrough();
    await turn();
    expect([seen, isThrough]).toEqual([[1, 2, 3], true]);
  });

  test("N3: what it says to have read through before a pause does not count after it", async () => {
    const fleet = new MemoryFleet();
    const log = new HandDrivenLog();
    const memory = new MemoryBudget(LIMIT);
    const intake = await InboxIntake.open({
      partition: "d-0",
      from: 1,
      deliver: () => undefined,
      log: log.port,
      memory,
      clock: fleet.clock,
      telemetry: silentTelemetry,
    });
    let isThrough = false;
    void intake.readThrough(never).then(() => (isThrough = true));
    await turn();
    memory.hold("mail", LIMIT + 1);
    log.subscriptions[0]?.deliver(1);
    log.subscriptions[0]?.readThrough();
    log.subscriptions[0]?.ended();
    memory.hold("mail", -LIMIT);
    await turn();
    expect(isThrough).toBe(false);
    log.subscriptions[1]?.deliver(1);
    log.subscriptions[1]?.readThrough();
    await turn();
    expect(isThrough).toBe(true);
  });

  test("N5: a fault of the present subscription is its own, that of a former one is nobody's", async () => {
    const fleet = new MemoryFleet();
    const log = new HandDrivenLog();
    const memory = new MemoryBudget(LIMIT);
    const intake = await InboxIntake.open({
      partition: "d-0",
      from: 1,
      deliver: () => undefined,
      log: log.port,
      memory,
      clock: fleet.clock,
      telemetry: silentTelemetry,
    });
    memory.hold("mail", LIMIT + 1);
    log.subscriptions[0]?.fail(new Error("too late"));
    log.subscriptions[0]?.ended();
    memory.hold("mail", -LIMIT);
    await turn();
    expect(intake.failed.aborted).toBe(false);
    const reason = new Error("lost data");
    log.subscriptions[1]?.fail(reason);
    expect(intake.failed.reason).toBe(reason);
  });
});
