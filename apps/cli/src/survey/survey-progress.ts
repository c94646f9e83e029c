import type { HoldfastClient } from "@holdfast/client";
import { parseActorKey, type RecordHeader } from "@holdfast/protocol";

export interface TaskLine {
  readonly key: string;
  readonly status: string;
  readonly node: string | undefined;
}

/** What can be seen of one survey at a moment. */
export interface SurveyProgress {
  readonly conversation: RecordHeader | undefined;
  readonly tasks: readonly TaskLine[];
  /** Open questions of the survey's own conversation. */
  readonly openWaits: readonly string[];
  /** Node name → its share of the running tasks. */
  readonly runningByNode: ReadonlyMap<string, number>;
  readonly settledTasks: number;
}

/** Reads the state of a survey from what is stored; the node of a task is the holder of its partition. */
export class SurveyWatch {
  readonly #holdfast: HoldfastClient;
  readonly #conversation: string;
  /** Actors of earlier surveys: looked up once. */
  readonly #parents = new Map<string, string | undefined>();

  constructor(holdfast: HoldfastClient, conversation: string) {
    this.#holdfast = holdfast;
    this.#conversation = conversation;
  }

  async look(): Promise<SurveyProgress> {
    const headers = await this.#holdfast.read.headers();
    const { leases } = await this.#holdfast.read.fleet();
    const holders = new Map(
      leases
        .filter(({ state }) => state === "held")
        .map(({ partition, holder }) => [partition, holder.slice(0, holder.lastIndexOf(":"))]),
    );
    const tasks: TaskLine[] = [];
    const openWaits: string[] = [];
    let conversation: RecordHeader | undefined;
    for (const header of headers) {
      const { type, partition } = parseActorKey(header.key);
      if (header.key === this.#conversation) conversation = header;
      if ((type !== "task" && type !== "ownerWait") || (await this.#parentOf(header.key)) !== this.#conversation)
        continue;
      if (type === "task")
        tasks.push({
          key: header.key,
          status: String(header.list["status"] ?? header.status),
          node: holders.get(partition),
        });
      else if (header.status === "active") openWaits.push(header.key);
    }
    const runningByNode = new Map<string, number>();
    for (const { status, node } of tasks)
      if (status === "running" && node !== undefined) runningByNode.set(node, (runningByNode.get(node) ?? 0) + 1);
    const settledTasks = tasks.filter(
      ({ status }) => !["queued", "running", "waiting", "held"].includes(status),
    ).length;
    return { conversation, tasks, openWaits, runningByNode, settledTasks };
  }

  async #parentOf(key: string): Promise<string | undefined> {
    if (!this.#parents.has(key)) {
      const actor = await this.#holdfast.read.actor(key);
      this.#parents.set(key, actor?.record.parent?.key);
    }
    return this.#parents.get(key);
  }
}

/** One line: how many tasks are in which state, and where the running ones are. */
export function progressLine({ conversation, tasks, runningByNode }: SurveyProgress): string {
  const states = new Map<string, number>();
  for (const { status } of tasks) states.set(status, (states.get(status) ?? 0) + 1);
  const waitingOn = conversation?.list["waitingOn"];
  return [
    `survey ${String(conversation?.list["status"] ?? "starting")}${waitingOn === undefined ? "" : ` (on ${String(waitingOn)})`}`,
    ...(tasks.length > 0 ? [`tasks: ${[...states].map(([state, count]) => `${count} ${state}`).join(", ")}`] : []),
    ...(runningByNode.size > 0
      ? [`on ${[...runningByNode].map(([node, count]) => `${node} ${count}`).join(", ")}`]
      : []),
  ].join(" · ");
}
