import { countDelegations } from "@holdfast/audit";
import type { HoldfastClient } from "@holdfast/client";
import { parseActorKey } from "@holdfast/protocol";
import type { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import type { AgentFleet } from "./agent-fleet.ts";
import { CHILDREN } from "./delegation-stage.ts";
import type { SeenRequest } from "./model-control.ts";

/** What must be the same before and after a death: which tasks there are, which call each answers, which conversation does its work. */
export async function delegationMap(holdfast: HoldfastClient, parent: string): Promise<readonly string[]> {
  const links: string[] = [];
  for (const { key } of await holdfast.read.headers()) {
    const link = (await holdfast.read.actor(key))?.record.parent;
    if (link !== undefined) links.push(`${link.key}^${link.genesis} ${link.childId} ${key}`);
  }
  return links.filter((link) => link.startsWith(`${parent}^`) || link.includes(".task.")).toSorted();
}

export interface JudgementOptions {
  readonly cluster: Cluster;
  readonly fleet: AgentFleet;
  readonly holdfast: HoldfastClient;
  readonly parent: string;
  readonly before: readonly string[];
  /** Children that had their answer before the death: their model is not asked again. */
  readonly finished: readonly string[];
}

/** What one death left behind. */
export interface Judgement {
  readonly checks: Readonly<Record<string, boolean>>;
  readonly figures: Readonly<Record<string, unknown>>;
}

/** Waits until the parent rests, then judges by stored state, the ledger and what the model saw. */
export async function judgeDelegation(options: JudgementOptions): Promise<Judgement> {
  const { cluster, fleet, holdfast, parent } = options;
  await untilAtRest(options);
  const evidence = await cluster.evidence(fleet.namespace);
  const figures = countDelegations(evidence, { delegatingTools: ["task"], root: parent });
  const ledger = await cluster.figures();
  const headers = new Map((await holdfast.read.headers()).map((header) => [header.key, header.list["status"]]));
  const tasks = [...headers].filter(([key]) => parseActorKey(key).type === "task");
  const answer = await answerOf(holdfast, parent);
  const steps = [...evidence.journals].flatMap(([actor, steps]) => (actor.startsWith(`${parent}^`) ? steps : []));
  const asked = (await fleet.model.requests()).filter(({ model }) => model === "blocker");
  const { stuck } = await holdfast.read.fleet();
  const checks = {
    twoTasks: figures.created === 2 && tasks.length === 2,
    // Two tasks under the parent, a conversation under each.
    sameTasks:
      options.before.length === 4 &&
      JSON.stringify(await delegationMap(holdfast, parent)) === JSON.stringify(options.before),
    twoDecidedTwoApplied: figures.decided === 2 && figures.settled === 2 && figures.applied === 2,
    noDuplicates: figures.duplicates === 0 && ledger.duplicateEffects === 0,
    noneLost: figures.lost === 0 && ledger.lost === 0,
    parentIdle: headers.get(parent) === "idle",
    tasksCompleted: tasks.every(([, status]) => status === "completed"),
    noGenericError: steps.length > 0 && steps.every(({ event }) => !event.type.startsWith("xstate.error.actor.")),
    answerHoldsBothResults: CHILDREN.every((child) => answer.includes(`${child}: result of ${child}`)),
    oneKeyPerChild: CHILDREN.every((child) => new Set(keysOf(asked, child)).size === 1),
    finishedNotAskedAgain: options.finished.every((child) => keysOf(asked, child).length === 1),
    nothingStuck: stuck.every(({ reports }) => reports.length === 0),
  };
  const { decided, created, settled, applied, duplicates, lost } = figures;
  const { duplicateEffects } = ledger;
  const modelCalls = asked.length;
  return { checks, figures: { decided, created, settled, applied, duplicates, lost, duplicateEffects, modelCalls } };
}

const keysOf = (asked: readonly SeenRequest[], child: string): readonly string[] =>
  asked.flatMap(({ lastUser, idempotencyKey }) => (lastUser === child ? [idempotencyKey ?? "none"] : []));

async function untilAtRest({ holdfast, parent, fleet }: JudgementOptions): Promise<void> {
  const resting = ["idle", "error", "stuck", "closed"];
  const statuses = async () => (await holdfast.read.headers()).map(({ key, list }) => [key, list["status"]]);
  await waitUntil(
    `${parent} rests, and nobody has anything left to send or to store`,
    async () => {
      const headers = await holdfast.read.headers();
      const status = headers.find(({ key }) => key === parent)?.list["status"];
      return resting.includes(String(status)) && headers.every(({ needsWork }) => !needsWork);
    },
    {
      timeoutMs: 60_000,
      tickMs: 50,
      dump: async () => ({ statuses: await statuses(), logs: fleet.logs().slice(-4000) }),
    },
  );
}

async function answerOf(holdfast: HoldfastClient, parent: string): Promise<string> {
  const context = (await holdfast.read.actor(parent))?.record.snapshot.context;
  return typeof context === "object" && context !== null ? String(Reflect.get(context, "lastText")) : "";
}
