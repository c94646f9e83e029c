import { describe, expect, test } from "vitest";
import { defineActor, type ActorDefinition, type PublicEvent } from "../actor-definition.ts";
import { MemoryFleet } from "./memory-fleet.ts";
import { tallyMachine } from "./tally.machine.ts";

const tallyWith = (publicEvent: ActorDefinition["publicEvent"]): readonly ActorDefinition[] => [
  defineActor({ type: "tally", machine: tallyMachine, ...(publicEvent !== undefined && { publicEvent }) }),
];
const told = (changes: Partial<PublicEvent> = {}): PublicEvent => ({
  kind: "task",
  name: ["tally", "a", "told"],
  type: "told",
  data: {},
  ...changes,
});
const seenIn = (fleet: MemoryFleet) =>
  fleet.broker.events().map(({ event }) => (event instanceof Object ? Reflect.get(event, "data").seen : event));

describe("public events leave through the outbox", () => {
  test("I4: sent again by another node, long after, it is the same event in every attribute", async () => {
    const fleet = new MemoryFleet();
    const first = await fleet.alone("n1");
    const tally = await fleet.born("tally", "a");
    fleet.broker.faults.next("event", { kind: "lostAck" });
    await fleet.send(tally, { type: "EMIT" });
    await fleet.until("it is stored", () => fleet.broker.events().length === 1);
    first.kill();
    fleet.broker.forgetMessageIds(); // what 10 minutes do
    await fleet.clock.advance(60_000);
    await fleet.alone("n2");
    await fleet.until("it was sent again", () => fleet.broker.events().length === 2);
    const [before, after] = fleet.broker.events();
    expect(before?.event).toMatchObject({ type: "told", subject: tally });
    expect(after).toEqual(before);
  });

  test("several of one macrostep and of many leave in the order of their decisions", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone();
    const tally = await fleet.born("tally", "a");
    for (let n = 0; n < 5; n += 1) {
      fleet.broker.faults.next("event", { kind: n % 2 === 0 ? "lostAck" : "lateWrite" });
      await fleet.send(tally, { type: "EMIT" });
      await fleet.send(tally, { type: "ADD", n });
    }
    await fleet.until("all are stored", () => fleet.broker.events().length === 5);
    await fleet.clock.advance(60_000);
    expect(seenIn(fleet)).toEqual([0, 1, 2, 3, 4]);
  });

  test.each<readonly [string, () => PublicEvent]>([
    ["throws", () => Reflect.apply(Object.assign, undefined, [undefined])],
    ["names a token with a wildcard", () => told({ name: ["tally", "*"] })],
    ["names a type with a line break", () => told({ type: "a\r\nb" })],
    ["has data that JSON refuses", () => told({ data: { big: 1n } })],
    ["takes a type of this project with other data", () => told({ type: "holdfast.task.created" })],
    ["is larger than the stream takes", () => told({ data: { text: "x".repeat(1_200_000) } })],
  ])("what %s is said and kept private, and holds up nothing behind it", async (_what, publicEvent) => {
    const fleet = new MemoryFleet();
    const definitions = tallyWith((emitted) => (emitted["seen"] === 0 ? publicEvent() : told({ data: emitted })));
    await fleet.alone("n1", { definitions });
    const tally = await fleet.born("tally", "a");
    await fleet.send(tally, { type: "EMIT" });
    await fleet.send(tally, { type: "ADD", n: 1 });
    await fleet.send(tally, { type: "EMIT" });
    await fleet.until("the second one is stored", () => fleet.broker.events().length > 0);
    await fleet.until("nothing waits", () => fleet.record(tally)?.rev === 4);
    expect(seenIn(fleet)).toEqual([1]);
    const said = [...fleet.events("actor.event-failed"), ...fleet.events("actor.event-refused")];
    expect(said).toMatchObject([{ fields: { key: tally } }]);
  });
});
