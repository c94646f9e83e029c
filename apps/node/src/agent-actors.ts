import {
  createAgentJobs,
  createFileTools,
  createLedgerClient,
  createOpenAiCompatibleModel,
  createToolbox,
  type EffectReport,
} from "@holdfast/agents";
import {
  afterEndOf,
  ENDLESS_SLOTS,
  erasedFieldsOf,
  listFieldsOf,
  MACHINES,
  noEffectOf,
  publicEventOf,
  retentionOf,
  slotLogic,
  type TaskSlots,
} from "@holdfast/machines";
import type { Config } from "@holdfast/process";
import { RuntimeFault } from "@holdfast/protocol";
import type { Telemetry } from "@holdfast/runtime/ports";
import { defineActor, FairSlots, type ActorDefinition, type JobDefinition, type NodeContext } from "holdfast";
import { FencedSlots } from "./fenced-slots.ts";
import { createNodeMoney } from "./node-money.ts";
import { readTranscript } from "./read-transcript.ts";

export interface AgentActorsOptions {
  readonly config: Config;
  readonly node: string;
  readonly telemetry: Telemetry;
}

/** Largest text file an agent may read, bytes. */
export const MAX_DOCUMENT_BYTES = 256 * 1024;

/** Conversation, task, owner-wait and wallet with the jobs of this node: its model endpoint and its tools. */
export function agentActors(options: AgentActorsOptions, context: NodeContext): readonly ActorDefinition[] {
  const { config, telemetry } = options;
  const baseUrl = config.HOLDFAST_MODEL_BASE_URL;
  if (baseUrl === undefined) {
    throw new RuntimeFault(
      "HF-7001",
      "HOLDFAST_MODEL_BASE_URL: an agent node needs a model endpoint. Set it to an OpenAI-compatible address that ends in /v1.",
    );
  }
  const money = createNodeMoney(context, config.HOLDFAST_NAMESPACE);
  const jobs = createAgentJobs({
    model: createOpenAiCompatibleModel({
      baseUrl,
      ...(config.HOLDFAST_MODEL_API_KEY !== undefined && { apiKey: config.HOLDFAST_MODEL_API_KEY }),
      timeouts: {
        connectMs: config.HOLDFAST_MODEL_CONNECT_MS,
        firstTokenMs: config.HOLDFAST_MODEL_FIRST_TOKEN_MS,
        idleMs: config.HOLDFAST_MODEL_IDLE_MS,
      },
    }),
    toolbox: createToolbox(
      createFileTools({
        root: config.HOLDFAST_ROOT ?? ".",
        outputFolder: config.HOLDFAST_OUTPUT ?? `${config.HOLDFAST_HOME}/reports`,
        limits: { maxFileBytes: MAX_DOCUMENT_BYTES, maxResultBytes: MAX_DOCUMENT_BYTES + 64 * 1024 },
      }),
    ),
    readTranscript: ({ conversation, ...wanted }, signal) =>
      readTranscript(context.read, conversation, { ...wanted, signal }),
    reserve: money.reserve,
    telemetry,
    ...reporting(config.HOLDFAST_LEDGER_URL, options.node),
  });
  const implementation = (src: string): JobDefinition["run"] =>
    src === "model.generate" ? jobs.generate : jobs.runTool;
  const slots = new FencedSlots({ slots: new FairSlots(config.HOLDFAST_TASK_CONCURRENCY), isFenced: money.isFenced });
  const held = heldTypes(config);
  return MACHINES.map((entry) => ({
    ...agentDefinition(entry, implementation, slots),
    ...(held.includes(entry.type) && { afterCrash: "hold" as const }),
  }));
}

/** @throws RuntimeFault HF-7001 when one of them is no type of this node */
function heldTypes({ HOLDFAST_HOLD_AFTER_CRASH: held = [] }: Config): readonly string[] {
  const known = MACHINES.map(({ type }) => type);
  const stranger = held.find((type) => !known.includes(type));
  if (stranger === undefined) return held;
  throw new RuntimeFault(
    "HF-7001",
    `HOLDFAST_HOLD_AFTER_CRASH: no actor type ${stranger}. Name some of ${known.join(", ")}.`,
  );
}

/** The same actor types without their jobs: for whoever runs their transitions and nothing else. */
export const agentDefinitions = (): readonly ActorDefinition[] =>
  MACHINES.map((entry) => agentDefinition(entry, () => undefined, ENDLESS_SLOTS));

function agentDefinition(
  { type, machine, input, outsideEvent, childActors, jobs, hosts, closePolicies }: (typeof MACHINES)[number],
  implementation: (src: string) => JobDefinition["run"],
  slots: TaskSlots,
): ActorDefinition {
  return defineActor({
    type,
    machine: hosts.includes("slot") ? machine.provide({ actors: { slot: slotLogic(slots) } }) : machine,
    input,
    outsideEvent,
    childActors: Object.fromEntries(
      Object.entries(childActors).map(([src, childType]) => [
        src,
        { type: childType, closePolicy: closePolicies[src] ?? "cancel" },
      ]),
    ),
    jobs: Object.fromEntries(
      Object.entries(jobs).map(([src, crashPolicy]) => {
        const run = implementation(src);
        const provider = src === "model.generate" ? "model" : "tools";
        return [src, run === undefined ? { crashPolicy, provider } : { crashPolicy, provider, run }];
      }),
    ),
    noEffect: (event, machineContext, value) => noEffectOf(type, machineContext, value, event),
    listFields: (machineContext, value) => listFieldsOf(type, machineContext, value),
    afterEnd: (machineContext, event) => afterEndOf(type, machineContext, event),
    retention: (machineContext) => retentionOf(type, machineContext),
    erasedFields: erasedFieldsOf,
    publicEvent: (emitted, ids) => publicEventOf(type, emitted, ids),
  });
}

/** Tells the ledger about every attempt of a tool, before the tool runs. */
function reporting(
  ledgerUrl: string | undefined,
  node: string,
): { readonly reportEffect?: (report: EffectReport, signal: AbortSignal) => Promise<void> } {
  if (ledgerUrl === undefined) return {};
  const ledger = createLedgerClient(ledgerUrl);
  return {
    reportEffect: async ({ phase, actorKey, genesis, callId, idempotencyKey, kind }, signal) => {
      if (phase === "before")
        await ledger.effect({ callId: `${actorKey}^${genesis}/${callId}`, idempotencyKey, kind, node }, signal);
    },
  };
}
