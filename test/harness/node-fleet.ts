import { join } from "node:path";
import { LedgerLine } from "@holdfast/ledger";
import { createClient, type Client } from "holdfast";
import { startProcess, type StartedProcess } from "./child-process.ts";
import type { FaultPlan } from "./fault-points.ts";
import { untilServing } from "./until-serving.ts";

export interface NodeFleetOptions {
  readonly servers: readonly string[];
  readonly user?: string;
  readonly password?: string;
  readonly namespace: string;
  readonly ledgerUrl: string;
  readonly replicas?: number;
  /** Settings of every node, ms and counts. */
  readonly runtime: Readonly<Record<string, number>>;
}

/** Real nodes of one namespace, and what can be seen of them from outside. */
export class NodeFleet {
  readonly #options: NodeFleetOptions;
  readonly #nodes: StartedProcess[] = [];

  constructor(options: NodeFleetOptions) {
    this.#options = options;
  }

  /** @param faults  what happens to it at which crash points */
  async start(name: string, faults: FaultPlan = []): Promise<StartedProcess> {
    const { servers, user, password, namespace, ledgerUrl, replicas = 1, runtime } = this.#options;
    const nats = { servers, ...(user !== undefined && { user }), ...(password !== undefined && { password }) };
    const settings = { nats, namespace, name, ledgerUrl, replicas, runtime, faults };
    const file = join(import.meta.dirname, "fleet-node-under-test.ts");
    const node = await startProcess(file, [JSON.stringify(settings)]);
    this.#nodes.push(node);
    return node;
  }

  client(): Promise<Client> {
    const { servers, user, password, namespace } = this.#options;
    return createClient({
      nats: { servers, ...(user !== undefined && { user }), ...(password !== undefined && { password }) },
      namespace,
      principal: { kind: "person", id: "local", roles: [] },
    });
  }

  /** Waits until nodes serve everything between them: every lease is held by one of them, and taken up. */
  async serving(client: Client, nodes: readonly StartedProcess[], timeoutMs = 30_000): Promise<void> {
    await untilServing(client.holdfast, () => nodes, { timeoutMs, dump: () => this.logs() });
  }

  /** Attempts of packing that the ledger has seen, by key of the job. */
  async attempts(): Promise<ReadonlyMap<string, readonly (string | undefined)[]>> {
    const response = await fetch(`${this.#options.ledgerUrl}/entries`);
    const attempts = new Map<string, (string | undefined)[]>();
    for (const text of (await response.text()).split("\n")) {
      if (text === "") continue;
      const line = LedgerLine.parse(JSON.parse(text));
      if (line.line !== "attempt") continue;
      attempts.set(line.idempotencyKey, [...(attempts.get(line.idempotencyKey) ?? []), line.node]);
    }
    return attempts;
  }

  logs(): string {
    return this.#nodes.map((node) => node.log()).join("");
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.kill()));
  }
}
