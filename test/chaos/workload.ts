import type { SeededRandom } from "@holdfast/runtime/testing";
import type { RecordHeader } from "@holdfast/protocol";
import { setTimeout as pause } from "node:timers/promises";
import type { ChaosWorld } from "./chaos-world.ts";
import type { ToldCommands } from "./told-commands.ts";
import { WORKLOAD_INPUTS } from "./workload-models.ts";

/** What a user, a person who is asked, or a shop does; one of them at a time is one flow. */
export const FLOWS = ["chat", "fan", "ask", "cancel", "order"] as const;
export type Flow = (typeof FLOWS)[number];

export interface WorkloadOptions {
  readonly world: ChaosWorld;
  readonly told: ToldCommands;
  readonly random: SeededRandom;
  /** How many flows are under way at a time. */
  readonly atOnce: number;
  /** Flows that begin per second at most. */
  readonly perSecond: number;
  /** No flow begins after it has aborted. */
  readonly stop: AbortSignal;
  /** What is under way is given up. */
  readonly giveUp: AbortSignal;
}

/** Flows that came to their end, and those that did not. */
export interface WorkloadFigures {
  readonly done: Record<Flow, number>;
  readonly unfinished: string[];
}

/** Every fourth flow is no chat: orders have timers and effects, others delegate, ask, or are interrupted. */
const SHARES: readonly Flow[] = ["chat", "fan", "chat", "order", "chat", "ask", "chat", "cancel", "chat", "order"];
/** Longer than any misfortune holds up one actor. ms */
const FLOW_MS = 90_000;

/** Runs flows until it is told to stop. Resolves when the last one has come to its end, or was given up. */
export async function runWorkload(options: WorkloadOptions): Promise<WorkloadFigures> {
  const { random, stop, giveUp, atOnce, perSecond } = options;
  const figures: WorkloadFigures = { done: { chat: 0, fan: 0, ask: 0, cancel: 0, order: 0 }, unfinished: [] };
  const startedAtMs = performance.now();
  let next = 0;
  const work = async (): Promise<void> => {
    while (!stop.aborted) {
      const n = next;
      next += 1;
      const dueAtMs = startedAtMs + (n * 1000) / perSecond;
      await pause(Math.max(0, dueAtMs - performance.now()), undefined, { signal: stop }).catch(() => undefined);
      if (stop.aborted) return;
      const flow = SHARES[random.below(SHARES.length)] ?? "chat";
      try {
        await play(flow, `${flow}-${n}`, options, random.below(1_000_000));
        figures.done[flow] += 1;
      } catch (error) {
        figures.unfinished.push(`${flow}-${n}: ${error instanceof Error ? error.message : String(error)}`);
        if (giveUp.aborted) return;
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return figures;
}

async function play(flow: Flow, id: string, { world, told, giveUp }: WorkloadOptions, dice: number): Promise<void> {
  const untilStatus = (key: string, ...statuses: readonly string[]): Promise<void> =>
    untilHeader(world, key, giveUp, `is ${statuses.join(" or ")}`, ({ list }) =>
      statuses.includes(String(list["status"])),
    );
  switch (flow) {
    case "chat": {
      const key = await told.start("conversation", id, { ...WORKLOAD_INPUTS.chat, prompt: `hello ${id}` });
      await untilStatus(key, "idle");
      const before = world.headers.get(key)?.rev ?? 0;
      await told.send(key, { type: "userMessage", messageId: "m1", text: `again ${id}` }, { idempotencyKey: "m1" });
      await untilHeader(
        world,
        key,
        giveUp,
        "has answered",
        ({ rev, list }) => rev > before && list["status"] === "idle",
      );
      if (dice % 2 === 0) return;
      await told.send(key, { type: "close" }, { idempotencyKey: "close" });
      return untilStatus(key, "closed");
    }
    case "fan": {
      const prompt = Array.from({ length: 2 + (dice % 3) }, (_, n) => `part${n}`).join(" ");
      return untilStatus(await told.start("conversation", id, { ...WORKLOAD_INPUTS.fan, prompt }), "idle");
    }
    case "ask": {
      const key = await told.start("conversation", id, { ...WORKLOAD_INPUTS.ask, prompt: "ask somebody" });
      const wait = await openWait(world, key, giveUp);
      await told.send(
        wait,
        { type: "answer", answerId: "a1", value: dice % 2 === 0 ? "yes" : "no" },
        { idempotencyKey: "a1" },
      );
      return untilStatus(key, "idle");
    }
    case "cancel": {
      const key = await told.start("conversation", id, { ...WORKLOAD_INPUTS.slow, prompt: "take your time" });
      // It may have answered meanwhile: then there is nothing to stop.
      await told.send(key, { type: "interrupt" }, { idempotencyKey: "stop", mayBeIgnored: true });
      await untilStatus(key, "paused", "idle");
      await told.send(key, { type: "close" }, { idempotencyKey: "close" });
      return untilStatus(key, "closed");
    }
    case "order": {
      const input = { items: 1 + (dice % 3), waitMs: 100 + (dice % 1500) };
      const key = await told.start("order", id, input);
      for (const ping of ["p1", "p2"])
        await told.send(key, { type: "PING" }, { idempotencyKey: ping, mayBeIgnored: true });
      return untilHeader(world, key, giveUp, "is done", ({ status }) => status === "done");
    }
  }
}

function untilHeader(
  world: ChaosWorld,
  key: string,
  signal: AbortSignal,
  what: string,
  fits: (header: RecordHeader) => boolean,
): Promise<void> {
  const holds = (): boolean => {
    const header = world.headers.get(key);
    return header !== undefined && fits(header);
  };
  return world.until(`${key} ${what}`, holds, FLOW_MS, signal);
}

/** Waits until a conversation has asked. @returns key of the question */
async function openWait(world: ChaosWorld, conversation: string, signal: AbortSignal): Promise<string> {
  await untilHeader(world, conversation, signal, "waits for its owner", ({ list }) => list["waitingOn"] === "owner");
  const actor = await world.client.holdfast.read.actor(conversation);
  const children = Object.values(actor?.record.snapshot.children ?? {});
  const question = children.find(({ key, kind }) => kind === "actor" && key.split(".")[1] === "ownerWait");
  if (question === undefined) throw new Error(`${conversation} waits for its owner, and has no question`);
  await untilHeader(world, question.key, signal, "is open", ({ list }) => list["status"] === "open"); // a question that is not there yet takes no answer
  return question.key;
}
