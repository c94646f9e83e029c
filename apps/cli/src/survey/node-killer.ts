import { setTimeout as delay } from "node:timers/promises";
import type { HoldfastClient } from "@holdfast/client";
import type { Stack } from "../stack/start-stack.ts";
import type { SurveyProgress } from "./survey-progress.ts";

/** Kills the node that runs most tasks of a survey, once, in mid-flight, and measures how long its partitions were without an owner. */
export class NodeKiller {
  readonly #stack: Stack;
  readonly #holdfast: HoldfastClient;
  readonly #say: (line: string) => void;
  #killedAtMs = 0;
  killed: string | undefined;
  #incarnation = "";
  #partitions: readonly string[] = [];

  constructor(stack: Stack, holdfast: HoldfastClient, say: (line: string) => void) {
    this.#stack = stack;
    this.#holdfast = holdfast;
    this.#say = say;
  }

  /** @returns the name of the node, once it was killed */
  async disturb({ runningByNode }: SurveyProgress): Promise<string | undefined> {
    const busiest = [...runningByNode].toSorted((a, b) => b[1] - a[1])[0];
    const node = this.#stack.nodes.find(({ name }) => name === busiest?.[0]);
    if (busiest === undefined || node === undefined || !node.isRunning()) return undefined;
    const { leases } = await this.#holdfast.read.fleet();
    const held = leases.filter(({ holder, state }) => state === "held" && holder.startsWith(`${node.name}:`));
    this.#incarnation = held[0]?.holder ?? "";
    this.#partitions = held.map(({ partition }) => partition);
    this.#killedAtMs = Date.now();
    process.kill(node.pid, "SIGKILL");
    this.killed = node.name;
    this.#say(
      `SIGKILL to ${node.name} (process ${node.pid}), which ran ${busiest[1]} tasks and owned ${held.length} partitions`,
    );
    return node.name;
  }

  /** From the SIGKILL to the last of its partitions taken up elsewhere; undefined when nothing was killed, or not within 30 s. */
  async recoveredMs(): Promise<number | undefined> {
    if (this.killed === undefined) return undefined;
    for (let tries = 0; tries < 150; tries += 1) {
      const { reports } = await this.#holdfast.read.fleet();
      const taken = reports.filter(
        ({ partition, previousHolder }) => this.#partitions.includes(partition) && previousHolder === this.#incarnation,
      );
      if (taken.length === this.#partitions.length)
        return Math.max(...taken.map(({ atMs }) => atMs)) - this.#killedAtMs;
      await delay(200);
    }
    return undefined;
  }
}
