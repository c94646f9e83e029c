import type { SeededRandom } from "@holdfast/runtime/testing";
import { subjectsOf } from "@holdfast/protocol";
import type { CrashPoint } from "@holdfast/runtime/ports";
import { setTimeout as pause } from "node:timers/promises";
import type { StartedProcess } from "../harness/child-process.ts";
import type { ChaosWorld } from "./chaos-world.ts";
import { replayMessages } from "./replay-messages.ts";

/** Names of the nodes; a node that ended comes back under its name. */
export const NODES = ["n1", "n2", "n3"] as const;

/** What a misfortune did, for people; `isAsExpected` is false when something happened that must not. */
export interface Struck {
  readonly what: string;
  readonly isAsExpected: boolean;
}

export type Misfortune = (world: ChaosWorld, random: SeededRandom) => Promise<Struck>;

/** Points that a working node passes all the time. */
const BUSY_POINTS: readonly CrashPoint[] = [
  "before-create",
  "before-commit",
  "after-commit",
  "mid-dispatch",
  "after-dispatch",
  "before-job",
  "job-done",
  "outcome-published",
];
/** Points that are passed when somebody else has died, or comes back. */
const MOVING_POINTS: readonly CrashPoint[] = [
  "after-lease-claim",
  "after-barrier",
  "mid-rehydration",
  "before-release",
];
/** A point that is not reached by then will not be. ms */
const POINT_MS = 8000;
const DRAIN_MS = 20_000;
/** A line on standard input is read by then. ms */
const HEARD_MS = 500;

const struck = (what: string): Struck => ({ what, isAsExpected: true });

/** Everything that may happen to a fleet, each by itself and from a seed; afterwards all nodes run, and the server too. */
export const MISFORTUNES = {
  /** SIGKILL of a node; it comes back at once, or after its lease is over. */
  kill: async (world, random) => {
    const name = pick(random, NODES);
    await world.kill(name);
    const awayMs = random.below(2 * world.leaseTtlMs);
    await pause(awayMs);
    await world.start(name);
    return struck(`${name}, away for ${awayMs} ms`);
  },

  /** SIGKILL at a named crash point of the walk of a message. */
  "kill-at-point": async (world, random) => {
    const name = pick(random, NODES);
    const node = world.node(name);
    const [point, nth] = [pick(random, BUSY_POINTS), 1 + random.below(20)];
    node.tell({ arm: [{ point, nth, act: "kill" }] });
    const isHit = await endsWithin(node, POINT_MS);
    if (!isHit) await node.kill();
    await world.start(name);
    return struck(`${name} at ${point} (${nth})${isHit ? "" : ", not reached: killed anywhere"}`);
  },

  /** A node dies, and who takes over, or hands over, dies in the middle of that. */
  "kill-twice": async (world, random) => {
    const [name, other] = shuffled(random, NODES);
    if (name === undefined || other === undefined) throw new Error("two nodes are needed");
    const point = pick(random, MOVING_POINTS);
    const node = world.node(other);
    node.tell({ arm: [{ point, act: "kill" }] });
    await world.kill(name);
    if (point === "before-release") await world.start(name); // it asks for its share
    const isHit = await endsWithin(node, POINT_MS);
    if (!isHit) await node.kill();
    if (!world.nodes.has(name)) await world.start(name);
    await world.start(other);
    return struck(`${name}, then ${other} at ${point}${isHit ? "" : ", not reached: killed anywhere"}`);
  },

  /** SIGSTOP of a node past its lease, then SIGCONT. */
  freeze: async (world, random) => {
    const name = pick(random, NODES);
    const node = world.node(name);
    await node.freeze();
    const forMs = world.leaseTtlMs + random.below(2 * world.leaseTtlMs);
    await pause(forMs);
    node.thaw();
    return struck(`${name} for ${forMs} ms`);
  },

  /** The same, right before something leaves or is stored. */
  "freeze-at-point": async (world, random) => {
    const name = pick(random, NODES);
    const node = world.node(name);
    const [point, nth] = [pick(random, BUSY_POINTS), 1 + random.below(20)];
    node.tell({ arm: [{ point, nth, act: "freeze" }] });
    const isHit = await node.frozen(POINT_MS).then(
      () => true,
      () => false,
    );
    if (!isHit) {
      node.tell({ arm: [], instead: true });
      await pause(HEARD_MS); // an armed point must not stop it once more after this
      await node.freeze();
    }
    const forMs = world.leaseTtlMs + random.below(2 * world.leaseTtlMs);
    await pause(forMs);
    node.thaw();
    return struck(`${name} at ${point} (${nth}) for ${forMs} ms${isHit ? "" : ", not reached: frozen anywhere"}`);
  },

  /** SIGTERM of a node: a planned leave; then it comes back. */
  drain: async (world, random) => {
    const name = pick(random, NODES);
    const node = world.node(name);
    node.child.kill("SIGTERM");
    const hasLeft = await endsWithin(node, DRAIN_MS);
    const { exitCode } = node.child;
    if (!hasLeft) await node.kill();
    await world.start(name);
    return { what: `${name}${hasLeft ? "" : " did not leave"}`, isAsExpected: hasLeft && exitCode === 0 };
  },

  /** SIGKILL of the server, which comes back on its store. */
  "server-kill": async (world, random) => {
    await world.cluster.nats.kill();
    const awayMs = random.below(1500);
    await pause(awayMs);
    await world.cluster.nats.restart();
    return struck(`away for ${awayMs} ms`);
  },

  /** SIGSTOP of the server for a moment. */
  "server-freeze": async (world, random) => {
    const { pid } = world.cluster.nats;
    const forMs = 500 + random.below(2500);
    process.kill(pid, "SIGSTOP");
    await pause(forMs);
    process.kill(pid, "SIGCONT");
    return struck(`for ${forMs} ms`);
  },

  /** Messages that were accepted are stored once more, when the broker has forgotten their ids. */
  replay: async (world, random) => {
    const shard = random.below(world.client.holdfast.manifest.shards);
    const stream = subjectsOf(world.namespace).inboxStream(shard);
    const again = await replayMessages(world.link, stream, (first, last) =>
      Array.from({ length: 25 }, () => Math.max(first, last - random.below(300))),
    );
    return struck(`${again} messages of ${stream}`);
  },

  /** A second process with the name of a living node: it must not come up. */
  "same-name": async (world, random) => {
    const name = pick(random, NODES);
    const outcome = await world.start(name).then(
      async (second) => {
        await second.kill();
        return "it came up";
      },
      (error: unknown) => (String(error).includes("HF-3004") ? "refused" : String(error).slice(0, 200)),
    );
    return { what: `${name}: ${outcome}`, isAsExpected: outcome === "refused" };
  },
} as const satisfies Readonly<Record<string, Misfortune>>;

export type MisfortuneKind = keyof typeof MISFORTUNES;
export const MISFORTUNE_KINDS = Object.keys(MISFORTUNES).filter((kind): kind is MisfortuneKind => kind in MISFORTUNES);

export function pick<T>(random: SeededRandom, from: readonly T[]): T {
  const picked = from[random.below(from.length)];
  if (picked === undefined) throw new Error("nothing to pick from");
  return picked;
}

export function shuffled<T>(random: SeededRandom, from: readonly T[]): readonly T[] {
  const rest = [...from];
  return from.map(() => rest.splice(random.below(rest.length), 1)).flat();
}

function endsWithin(node: StartedProcess, ms: number): Promise<boolean> {
  const ended = node.exited.then(() => true);
  return Promise.race([ended, pause(ms, false, { ref: false })]);
}
