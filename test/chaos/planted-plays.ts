import { parseActorKey, subjectsOf } from "@holdfast/protocol";
import type { PlantedBreak } from "../harness/planted-breaks.ts";
import type { ChaosWorld } from "./chaos-world.ts";
import { replayMessages } from "./replay-messages.ts";
import type { ToldCommands } from "./told-commands.ts";

/** One misfortune, aimed at the very thing that a planted build does wrong. A right build comes through it. */
export type PlantedPlay = (world: ChaosWorld, told: ToldCommands) => Promise<void>;

const ping = { type: "PING" };
const PATIENT_MS = 30_000;

export const PLANTED_PLAYS: Readonly<Record<PlantedBreak, PlantedPlay>> = {
  /** A late commit of a former owner meets what its successor has stored. */
  cas: async (world, told) => {
    const first = await world.start("n1", [{ point: "before-commit", match: ".order.o1", nth: 2, act: "freeze" }]);
    await world.serving();
    const key = await told.start("order", "o1", { items: 0 });
    await world.until("it sleeps", () => world.headers.get(key)?.needsWork === false, PATIENT_MS);
    const late = told.send(key, ping, { idempotencyKey: "p1" });
    await first.frozen();
    await world.start("n2");
    await late;
    for (const id of ["p2", "p3"]) await told.send(key, ping, { idempotencyKey: id });
    // Whatever its successor writes later would cover what the late commit did.
    await world.until("it sleeps again", () => world.headers.get(key)?.needsWork === false, PATIENT_MS);
    first.thaw();
    await world.until("the former owner has noticed", () => hasNoticed(world, "n1"), PATIENT_MS);
  },

  /** Every message comes again, when the broker does not know their ids any more. */
  marks: async (world, told) => {
    await world.start("n1");
    await world.serving();
    const key = await told.start("order", "o1", { items: 0 });
    await told.send(key, ping, { idempotencyKey: "p1" });
    await replayMessages(world.link, subjectsOf(world.namespace).inboxStream(0), (first, last) => [first, last]);
    await told.send(key, ping, { idempotencyKey: "p2" });
  },

  /** A former owner goes on beside its successor. */
  fence: async (world, told) => {
    const first = await world.start("n1");
    await world.serving();
    const keys = await Promise.all(["o1", "o2", "o3", "o4"].map((id) => told.start("order", id, { items: 0 })));
    await first.freeze();
    await world.start("n2");
    const pingAll = (round: string): Promise<unknown> =>
      Promise.all(keys.map((key) => told.send(key, ping, { idempotencyKey: `${round}-${key}` })));
    await pingAll("before");
    first.thaw();
    // Both read the same mailbox. Who goes on as an owner commits before the other one sooner or later; who does not has said so.
    const deadline = performance.now() + PATIENT_MS;
    const epochs = new Map(keys.map((key) => [key, world.headers.get(key)?.epoch ?? 0]));
    const fell = (): boolean => keys.some((key) => (world.headers.get(key)?.epoch ?? 0) < (epochs.get(key) ?? 0));
    for (let round = 0; !fell() && !hasNoticed(world, "n1") && performance.now() < deadline; round += 1)
      await pingAll(`after${round}`);
    await pingAll("last");
  },

  /** The owner dies between a commit and the first thing that it decided. */
  outbox: async (world, told) => {
    const first = await world.start("n1", [{ point: "after-commit", match: ".order.o1", act: "kill" }]);
    await world.serving();
    const started = told.start("order", "o1", { items: 2, waitMs: 30 });
    await first.exited;
    await world.start("n2");
    await started;
  },

  /** The owner dies while its actors wait for timers, and nothing in the mailbox speaks of them any more. */
  barrier: async (world, told) => {
    const first = await world.start("n1");
    await world.serving();
    await told.start("order", "o1", { items: 3, waitMs: 3500 });
    const items = () => [...world.headers.values()].filter(({ key }) => parseActorKey(key).type === "item");
    await world.until(
      "the items wait",
      () => items().length === 3 && items().every(({ rev }) => rev === 2),
      PATIENT_MS,
    );
    await untilCursorsPassed(world);
    await first.kill();
    await world.start("n2");
    await world.serving();
  },

  /** What was decided cannot leave, the next message is applied, then the owner dies. */
  carryover: async (world, told) => {
    const first = await world.start("n1", [{ point: "mid-dispatch", match: ".order.o1", act: "hang" }]);
    await world.serving();
    const key = await told.start("order", "o1", { items: 1, waitMs: 30 });
    await told.send(key, ping, { idempotencyKey: "p1" });
    await first.kill();
    await world.start("n2");
    await world.serving();
  },
};

/** Whether a node has said that somebody else owns what it owned. */
const hasNoticed = (world: ChaosWorld, name: string): boolean =>
  world
    .logs()
    .split("\n")
    .some((line) => line.includes("partition.fenced") && line.includes(`"node":"${name}"`));

/** Waits until every message so far is behind the cursors in the leases. */
async function untilCursorsPassed(world: ChaosWorld): Promise<void> {
  const { holdfast } = world.client;
  for (;;) {
    const { leases } = await holdfast.read.fleet();
    const cursors = new Map(leases.map(({ partition, cursor }) => [partition, cursor]));
    const headers = [...world.headers.values()];
    if (headers.every(({ key, inboxSeq }) => (cursors.get(parseActorKey(key).partition) ?? 0) > inboxSeq)) return;
  }
}
