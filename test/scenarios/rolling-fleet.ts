import { join } from "node:path";
import { rendezvousOwner } from "@holdfast/protocol";
import type { Client } from "holdfast";
import { z } from "zod";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import type { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";

export type Build = "first" | "second";

/** One line of a node's log, as far as it is used. */
const LogLine = z.looseObject({
  time: z.number(),
  event: z.string(),
  node: z.string(),
  partition: z.string().optional(),
  epoch: z.number().optional(),
});

/** A partition on its way from one node to the next. */
export interface Handover {
  readonly partition: string;
  /** From its release to the end of its takeover, ms. */
  readonly ms: number;
}

/** Three real nodes that are restarted one after the other. */
export class RollingFleet {
  readonly #cluster: Cluster;
  readonly #namespace: string;
  readonly #leaseTtlMs: number;
  readonly #nodes = new Map<string, StartedProcess>();
  readonly #all: StartedProcess[] = [];

  constructor(cluster: Cluster, namespace: string, leaseTtlMs: number) {
    this.#cluster = cluster;
    this.#namespace = namespace;
    this.#leaseTtlMs = leaseTtlMs;
  }

  async start(name: string, build: Build): Promise<void> {
    const { nats, ledgerUrl } = this.#cluster;
    const settings = {
      nats: { servers: [nats.url], user: nats.user, password: nats.password },
      namespace: this.#namespace,
      name,
      ledgerUrl,
      leaseTtlMs: this.#leaseTtlMs,
      build,
    };
    const file = join(import.meta.dirname, "../harness/build-node-under-test.ts");
    const node = await startProcess(file, [JSON.stringify(settings)]);
    this.#nodes.set(name, node);
    this.#all.push(node);
  }

  /** SIGTERM, and wait until the process has ended. @returns how long that took, ms */
  async leave(name: string): Promise<number> {
    const node = this.#nodes.get(name);
    if (node === undefined) throw new Error(`${name} does not run`);
    const from = performance.now();
    node.child.kill("SIGTERM");
    const { code } = await node.exited;
    this.#nodes.delete(name);
    if (code !== 0) throw new Error(`${name} ended with ${code ?? "a signal"}:\n${node.log().slice(-4000)}`);
    return performance.now() - from;
  }

  /** Waits until every partition is served by the node it belongs to. */
  async balanced(client: Client): Promise<void> {
    const nodes = [...this.#nodes].map(([name, { hello }]) => ({ name, weight: 1, incarnation: hello["incarnation"] }));
    await waitUntil(
      "every partition is served where it belongs",
      async () => {
        const { leases, reports } = await client.holdfast.read.fleet();
        const served = leases.filter(({ partition, state, holder, epoch }) => {
          const owner = nodes.find(({ name }) => name === rendezvousOwner(partition, nodes));
          const isTaken = reports.some((report) => report.partition === partition && report.epoch === epoch);
          return state === "held" && holder === owner?.incarnation && isTaken;
        });
        return served.length === (client.holdfast.manifest.pools["d"] ?? 0);
      },
      { timeoutMs: 60_000, tickMs: 50, dump: () => this.logs().slice(-4000) },
    );
  }

  /** Every planned move of a partition so far, from the logs of those who gave and those who took. */
  handovers(): readonly Handover[] {
    const lines = this.logs()
      .split("\n")
      .flatMap((text) => tryLine(text) ?? []);
    const taken = new Map(
      lines
        .filter(({ event }) => event === "partition.taken")
        .map(({ partition, epoch, time }) => [`${partition ?? ""}@${epoch ?? 0}`, time]),
    );
    return lines
      .filter(({ event }) => event === "partition.released")
      .flatMap(({ partition = "", epoch = 0, time }) => {
        const next = taken.get(`${partition}@${epoch + 1}`);
        return next === undefined ? [] : [{ partition, ms: next - time }];
      });
  }

  logs(): string {
    return this.#all.map((node) => node.log()).join("");
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#nodes.values()].map((node) => node.kill()));
  }
}

function tryLine(text: string): z.infer<typeof LogLine> | undefined {
  try {
    return LogLine.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // the end of a line that is still being written
  }
}
