import {
  createAgentJobs,
  createFileTools,
  createLedgerClient,
  createOpenAiCompatibleModel,
  createToolbox,
  type EffectReport,
} from "@holdfast/agents";
import { foldTranscript, listFieldsOf, MACHINES, noEffectOf, publicEventOf } from "@holdfast/machines";
import type { Config } from "@holdfast/process";
import { RuntimeFault, type TranscriptMessage } from "@holdfast/protocol";
import type { Telemetry } from "@holdfast/runtime/ports";
import { defineActor, type ActorDefinition, type JobDefinition, type NodeContext } from "holdfast";

export interface AgentActorsOptions {
  readonly config: Config;
  readonly node: string;
  readonly telemetry: Telemetry;
}

/** Largest text file an agent may read, bytes. */
export const MAX_DOCUMENT_BYTES = 256 * 1024;

/** Conversation, task and owner-wait with the jobs of this node: its model endpoint and its tools. */
export function agentActors(options: AgentActorsOptions, context: NodeContext): readonly ActorDefinition[] {
  const { config, telemetry } = options;
  const baseUrl = config.HOLDFAST_MODEL_BASE_URL;
  if (baseUrl === undefined) {
    throw new RuntimeFault(
      "HF-7001",
      "HOLDFAST_MODEL_BASE_URL: an agent node needs a model endpoint. Set it to an OpenAI-compatible address that ends in /v1.",
    );
  }
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
    readTranscript: (conversation, throughRev, signal) => readTranscript(context, conversation, throughRev, signal),
    telemetry,
    ...reporting(config.HOLDFAST_LEDGER_URL, options.node),
  });
  const implementation = (src: string): JobDefinition["run"] =>
    src === "model.generate" ? jobs.generate : jobs.runTool;
  return MACHINES.map((entry) => agentDefinition(entry, implementation));
}

/** The same actor types without their jobs: for whoever runs their transitions and nothing else. */
export const agentDefinitions = (): readonly ActorDefinition[] =>
  MACHINES.map((entry) => agentDefinition(entry, () => undefined));

function agentDefinition(
  { type, machine, input, outsideEvent, childActors, jobs, closePolicies }: (typeof MACHINES)[number],
  implementation: (src: string) => JobDefinition["run"],
): ActorDefinition {
  return defineActor({
    type,
    machine,
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
    publicEvent: (emitted, ids) => publicEventOf(type, emitted, ids),
  });
}

/** The journal holds everything up to the revision that decided the job: it is stored before the job starts. */
async function readTranscript(
  context: NodeContext,
  conversation: string,
  throughRev: number,
  signal: AbortSignal,
): Promise<readonly TranscriptMessage[]> {
  const entries = await context.read.journal(conversation, signal);
  const last = entries.at(-1);
  if (last === undefined || last.rev < throughRev) {
    throw new RuntimeFault(
      "HF-4008",
      `Journal of ${conversation}: expected revision ${throughRev}, found ${last?.rev ?? "none"}. It is read again.`,
    );
  }
  return foldTranscript(entries.filter(({ rev }) => rev <= throughRev).map(({ event }) => event));
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
