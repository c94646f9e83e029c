import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Client } from "holdfast";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import type { Cluster } from "../harness/cluster.ts";
import { ModelControl } from "./model-control.ts";

/** One place on the way to the death of a node. */
export interface CrashStep {
  readonly point: string;
  /** Counts only when the detail of the point contains this. Default: always. */
  readonly match?: string;
  /** Default 1. */
  readonly nth?: number;
}

export interface AgentFleetOptions {
  readonly namespace: string;
  readonly leaseTtlMs: number;
  /** OpenAI-compatible endpoint; default: a simulated model, started as a process. */
  readonly modelBaseUrl?: string;
  /** Further HOLDFAST_* variables of every node. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Longer than any scenario: a held answer must not look like a slow endpoint. */
const PATIENT_MS = "300000";

/** Agent nodes, as they are shipped, in one namespace of a cluster. */
export class AgentFleet {
  readonly namespace: string;
  readonly model: ModelControl;
  readonly #cluster: Cluster;
  readonly #options: AgentFleetOptions;
  readonly #modelProcess: StartedProcess | undefined;
  readonly #modelBaseUrl: string;
  readonly #nodes: StartedProcess[] = [];

  private constructor(cluster: Cluster, options: AgentFleetOptions, model: StartedProcess | undefined) {
    this.#cluster = cluster;
    this.#options = options;
    this.#modelProcess = model;
    const origin = String(model?.hello["url"]);
    this.#modelBaseUrl = options.modelBaseUrl ?? `${origin}/v1`;
    this.model = new ModelControl(origin);
    this.namespace = options.namespace;
  }

  static async start(cluster: Cluster, options: AgentFleetOptions): Promise<AgentFleet> {
    const model =
      options.modelBaseUrl === undefined
        ? await startProcess(fileURLToPath(import.meta.resolve("@holdfast/sim-model/main")), [], {
            SIM_MODEL_EXIT_WITH_STDIN: "1",
          })
        : undefined;
    return new AgentFleet(cluster, options, model);
  }

  /** In the order in which they were started. */
  get nodes(): readonly StartedProcess[] {
    return this.#nodes;
  }

  /** Everything the nodes wrote to standard error. */
  logs(): string {
    return this.#nodes.map((node) => node.log()).join("");
  }

  /**
   * @param crash  places to be passed one after the other; at the last one the node kills itself. Even without any the node can be told some
   *   later; absent: a node as it is shipped, which cannot
   */
  async startNode(name: string, crash?: readonly CrashStep[]): Promise<StartedProcess> {
    const [file, args] =
      crash === undefined
        ? [fileURLToPath(import.meta.resolve("@holdfast/node-app/main")), ["--tied"]]
        : [join(import.meta.dirname, "agent-node-under-test.ts"), [JSON.stringify(crash)]];
    const node = await startProcess(file, args, this.nodeEnvironment(name));
    this.#nodes.push(node);
    return node;
  }

  /** What an agent node needs to join this fleet. */
  nodeEnvironment(name: string): Readonly<Record<string, string>> {
    const { nats } = this.#cluster;
    return {
      HOLDFAST_NATS_URL: nats.url,
      HOLDFAST_NATS_USER: nats.user,
      HOLDFAST_NATS_PASSWORD: nats.password,
      HOLDFAST_NAMESPACE: this.namespace,
      HOLDFAST_NODE: name,
      HOLDFAST_LEASE_TTL_MS: String(this.#options.leaseTtlMs),
      HOLDFAST_LEDGER_URL: this.#cluster.ledgerUrl,
      HOLDFAST_MODEL_BASE_URL: this.#modelBaseUrl,
      HOLDFAST_MODEL_CONNECT_MS: PATIENT_MS,
      HOLDFAST_MODEL_FIRST_TOKEN_MS: PATIENT_MS,
      HOLDFAST_MODEL_IDLE_MS: PATIENT_MS,
      ...this.#options.env,
    };
  }

  /** A client with the rights of a node. */
  client(): Promise<Client> {
    return this.#cluster.client(this.namespace);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.kill()));
    await this.#modelProcess?.kill("SIGTERM");
  }
}
