import type { HoldfastClient } from "@holdfast/client";
import { parseActorKey } from "@holdfast/protocol";
import type { SeededRandom } from "@holdfast/runtime/testing";
import type { StartedProcess } from "../harness/child-process.ts";
import { waitUntil } from "../harness/wait-until.ts";
import type { AgentFleet, CrashStep } from "./agent-fleet.ts";

/** Prompts of the two children, as the model `delegate-two` gives them. */
export const CHILDREN = ["child A", "child B"] as const;

/** Id of the conversation that delegates. */
export const CONVERSATION = "delegating";

/** A parent whose two children are held in their model calls, and the nodes that can be disturbed. */
export class DelegationStage {
  readonly fleet: AgentFleet;
  readonly holdfast: HoldfastClient;
  readonly random: SeededRandom;
  /** Key of the conversation that delegates. */
  readonly parent: string;
  readonly #nodes: Map<string, StartedProcess>;

  constructor(
    fleet: AgentFleet,
    holdfast: HoldfastClient,
    random: SeededRandom,
    nodes: ReadonlyMap<string, StartedProcess>,
  ) {
    this.fleet = fleet;
    this.holdfast = holdfast;
    this.random = random;
    this.parent = holdfast.key("conversation", CONVERSATION);
    this.#nodes = new Map(nodes);
  }

  async startNode(name: string, crash: readonly CrashStep[] = []): Promise<void> {
    this.#nodes.set(name, await this.fleet.startNode(name, crash));
  }

  /** SIGKILL, by the id of the process. @returns when, Unix time in ms */
  async kill(name: string): Promise<number> {
    const { pid, exited } = this.#node(name);
    const atMs = Date.now();
    process.kill(pid, "SIGKILL");
    await exited;
    return atMs;
  }

  /** Waits until a node kills itself at its crash point. @returns when, Unix time in ms */
  async death(name: string): Promise<number> {
    const node = this.#node(name);
    await waitUntil(`${name} dies at its crash point`, () => node.child.signalCode === "SIGKILL", {
      timeoutMs: 30_000,
      tickMs: 5,
      dump: () => node.log().slice(-4000),
    });
    return Date.now();
  }

  /** Waits until a child's task has ended in the store. */
  async finish(child: string): Promise<void> {
    await this.fleet.model.release(child);
    await waitUntil(`the task of ${child} has ended`, async () => {
      const tasks = await this.holdfast.read.headers("task");
      return tasks.some(({ list }) => list["status"] === "completed");
    });
  }

  /** Waits until two nodes have shared the partitions and none is on the move. */
  async untilShared(): Promise<void> {
    let last = "";
    let same = 0;
    await waitUntil(
      "the partitions are shared between two nodes and stay where they are",
      async () => {
        const { leases } = await this.holdfast.read.fleet();
        const held = leases.filter(({ state }) => state === "held");
        const partitions = Object.values(this.holdfast.manifest.pools).reduce((sum, count) => sum + count, 0);
        const now = JSON.stringify(held.map(({ partition, epoch }) => `${partition}@${epoch}`).toSorted());
        same = now === last ? same + 1 : 0;
        last = now;
        return held.length === partitions && new Set(held.map(({ holder }) => holder)).size === 2 && same >= 10;
      },
      { timeoutMs: 40_000, tickMs: 100 },
    );
  }

  /** Waits until every message so far is behind the cursors in the leases: whoever takes over must find the work by scanning records. */
  async untilCursorsPassed(): Promise<void> {
    await waitUntil("the cursors have passed every message", async () => {
      const { leases } = await this.holdfast.read.fleet();
      const cursors = new Map(leases.map(({ partition, cursor }) => [partition, cursor]));
      const headers = await this.holdfast.read.headers();
      return headers.every(({ key, inboxSeq }) => (cursors.get(parseActorKey(key).partition) ?? 0) > inboxSeq);
    });
  }

  /** Node name → which of the work it owns, by the leases: keys of the parent, the tasks and the conversations below them. */
  async owners(): Promise<ReadonlyMap<string, readonly string[]>> {
    const { leases } = await this.holdfast.read.fleet();
    const holders = new Map(
      leases.map(({ partition, holder }) => [partition, holder.slice(0, holder.lastIndexOf(":"))]),
    );
    const owners = new Map<string, string[]>();
    for (const { key } of await this.holdfast.read.headers()) {
      const holder = holders.get(parseActorKey(key).partition);
      if (holder !== undefined) owners.set(holder, [...(owners.get(holder) ?? []), key]);
    }
    return owners;
  }

  /** Prompt of the child that an actor works on; undefined for everything that is no conversation of a child. */
  async childOf(key: string): Promise<string | undefined> {
    if (parseActorKey(key).type !== "conversation" || key === this.parent) return undefined;
    const [first] = await this.holdfast.read.journal(key);
    const text = JSON.stringify(first?.event ?? "");
    return CHILDREN.find((child) => text.includes(child));
  }

  #node(name: string): StartedProcess {
    const node = this.#nodes.get(name);
    if (node === undefined) throw new Error(`${name} was never started`);
    return node;
  }
}
