import { expect, test } from "vitest";
import { BrokerTime } from "./broker-time.ts";
import { FleetView } from "./fleet-view.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { Membership } from "./membership.ts";
import { silentTelemetry, type Clock } from "./ports/index.ts";
import { ManualClock, MemoryBroker, SeededRandom } from "./testing/index.ts";

/** A clock whose timers the test fires one by one, as an event loop that was held up does. */
class HeldUpClock implements Clock {
  readonly due: (() => void)[] = [];
  readonly monotonicMs = (): number => 0;
  readonly wallMs = (): number => 0;

  schedule(_delayMs: number, callback: () => void): () => void {
    this.due.push(callback);
    return () => undefined;
  }
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test.each([
  ["lies in the socket when the time is over counts", true],
  ["does not come does not", false],
])("H4: an answer that %s", async (_name, comes) => {
  const clock = new HeldUpClock();
  const stored = Promise.withResolvers<{ readonly seq: number; readonly storedAtMs: number }>();
  const broker = new MemoryBroker({
    clock: new ManualClock(),
    scheme: { pools: { d: 1 }, shards: 1 },
    tokenOf: () => undefined,
  });
  const { fleet } = broker.connect("n1");
  const time = new BrokerTime(clock);
  const [name, incarnation, ttlMs] = ["n1", "n1:0123456789abcdef", 3000];
  const membership = new Membership({
    name,
    incarnation,
    ttlMs,
    heartbeatMs: 1000,
    clock,
    time,
    fleet: { ...fleet, put: () => stored.promise },
    view: new FleetView({ clock, telemetry: silentTelemetry, ttlMs }),
    leases: new LeaseKeeper({ incarnation, fleet, clock, random: new SeededRandom(1), time, ttlMs }),
    replaced: () => undefined,
    describe: () => ({
      startedAtMs: 0,
      pools: ["d"],
      types: [],
      formats: [1],
      machines: {},
      actors: 0,
      jobs: 0,
      custody: [],
    }),
  });
  const beat = membership.beat();
  await turn();
  clock.due.shift()?.(); // the timer comes first
  if (comes) stored.resolve({ seq: 1, storedAtMs: 0 });
  await turn();
  for (let fire = clock.due.shift(); fire !== undefined; fire = clock.due.shift()) fire();
  expect(await beat).toBe(comes);
});
