import { waitUntil } from "../harness/wait-until.ts";
import type { CrashStep } from "./agent-fleet.ts";
import { CHILDREN, CONVERSATION, type DelegationStage } from "./delegation-stage.ts";

/** What a death did. */
export interface Death {
  /** Unix time of the last SIGKILL, ms. */
  readonly atMs: number;
  /** Children whose model has to be asked again. */
  readonly interrupted: readonly string[];
  /** Children that had their answer before the death. */
  readonly finished: readonly string[];
  readonly facts?: Readonly<Record<string, unknown>>;
}

/** One way to die while two children work. Some die at once, with their last messages still to be read again, some after a rest. */
export interface DelegationVariant {
  /** Nodes that run before the conversation starts. */
  readonly nodes: readonly { readonly name: string; readonly crash?: readonly CrashStep[] }[];
  /** Kills, and brings up whoever goes on. */
  readonly strike: (stage: DelegationStage) => Promise<Death>;
}

const [FIRST, SECOND] = CHILDREN;

export const DELEGATION_VARIANTS: Readonly<Record<string, DelegationVariant>> = {
  /** The only node dies; another one starts. */
  restart: {
    nodes: [{ name: "node-a" }],
    strike: async (stage) => {
      await stage.untilCursorsPassed();
      const atMs = await stage.kill("node-a");
      await stage.startNode("node-b");
      return { atMs, interrupted: CHILDREN, finished: [] };
    },
  },

  /** A second node lives and takes over what the dead one owned. */
  takeover: { nodes: [{ name: "node-a" }, { name: "node-b" }], strike: killBusiest },

  /** One child has its result while the other one still works. */
  "one-finished": {
    nodes: [{ name: "node-a" }],
    strike: async (stage) => {
      await stage.finish(FIRST);
      const atMs = await stage.kill("node-a");
      await stage.startNode("node-b");
      return { atMs, interrupted: [SECOND], finished: [FIRST] };
    },
  },

  /** The node dies when the parent is about to store a child's result. */
  "before-parent-commit": {
    // The parent's own model call is the first job that ends, the released child's the second.
    nodes: [
      {
        name: "node-a",
        crash: [
          { point: "job-done", nth: 2 },
          { point: "before-commit", match: `.conversation.${CONVERSATION}` },
        ],
      },
    ],
    strike: async (stage) => {
      await waitUntil(
        "the parent rests, so that the next thing it stores is the result",
        async () => (await stage.holdfast.read.actor(stage.parent))?.record.outbox.length === 0,
      );
      await stage.fleet.model.release(FIRST);
      const atMs = await stage.death("node-a");
      const rev = (await stage.holdfast.read.actor(stage.parent))?.record.rev;
      await stage.startNode("node-b");
      return { atMs, interrupted: [SECOND], finished: [FIRST], facts: { parentRev: rev } };
    },
  },

  /** Whoever recovers dies in the middle of it; the first name comes back. */
  "double-restart": {
    nodes: [{ name: "node-a" }],
    strike: async (stage) => {
      const nth = 1 + stage.random.below(3);
      const firstAtMs = await stage.kill("node-a");
      await stage.startNode("node-b", [{ point: "mid-rehydration", nth }]);
      const atMs = await stage.death("node-b");
      await stage.startNode("node-a");
      return { atMs, interrupted: CHILDREN, finished: [], facts: { nth, betweenMs: atMs - firstAtMs } };
    },
  },
};

/** Kills the node that owns most of the work, and at least one child that is held in its model call. */
async function killBusiest(stage: DelegationStage): Promise<Death> {
  await stage.untilCursorsPassed();
  const candidates: { readonly name: string; readonly owned: number; readonly children: readonly string[] }[] = [];
  for (const [name, work] of await stage.owners()) {
    const found = await Promise.all(work.map((key) => stage.childOf(key)));
    const children = found.filter((child) => child !== undefined);
    if (children.length > 0) candidates.push({ name, owned: work.length, children });
  }
  const [victim] = candidates.toSorted((a, b) => b.children.length - a.children.length || b.owned - a.owned);
  if (victim === undefined) throw new Error("takeover: no node owns a child at work");
  const atMs = await stage.kill(victim.name);
  const { name, owned, children } = victim;
  return { atMs, interrupted: children, finished: [], facts: { victim: name, owned, ownedChildren: children.length } };
}
