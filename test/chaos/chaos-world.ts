import { join } from "node:path";
import { createCodec } from "@holdfast/codec";
import { actorRefExtension } from "@holdfast/durable";
import { connectNats, watchBucket, type Link } from "@holdfast/jetstream";
import { inboxPrefixOf, systemCrc32 } from "@holdfast/process";
import { parseActorKey, subjectsOf, type RecordHeader } from "@holdfast/protocol";
import type { Client } from "holdfast";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import type { FaultPlan } from "../harness/fault-points.ts";
import type { PlantedBreak } from "../harness/planted-breaks.ts";
import { untilServing } from "../harness/until-serving.ts";

export interface ChaosWorldOptions {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly leaseTtlMs: number;
  readonly sweepMs?: number;
  readonly partitions?: number;
  readonly shards?: number;
  readonly modelBaseUrl?: string;
  /** Every node is built with it. */
  readonly planted?: PlantedBreak | undefined;
}

const NODE = join(import.meta.dirname, "../harness/chaos-node-under-test.ts");

/** One namespace under misfortune: its nodes by name, a client, and every header as it changes. */
export class ChaosWorld implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly leaseTtlMs: number;
  /** How the last process of each name ended: status or signal, and what it logged last. */
  readonly lastWords = new Map<string, string>();
  readonly #options: ChaosWorldOptions;
  readonly #nodes = new Map<string, StartedProcess>();
  readonly #all = new Set<StartedProcess>();
  readonly #headers = new Map<string, RecordHeader>();
  #changed: (() => void)[] = [];
  #client: Client | undefined;
  #link: Link | undefined;

  constructor(options: ChaosWorldOptions) {
    this.cluster = options.cluster;
    this.namespace = options.namespace;
    this.leaseTtlMs = options.leaseTtlMs;
    this.#options = options;
  }

  get client(): Client {
    if (this.#client === undefined) throw new Error("no node has been started yet");
    return this.#client;
  }

  /** A connection with the rights of a node. */
  get link(): Link {
    if (this.#link === undefined) throw new Error("no node has been started yet");
    return this.#link;
  }

  /** Latest header of every actor, as the store tells it. */
  get headers(): ReadonlyMap<string, RecordHeader> {
    return this.#headers;
  }

  /** Nodes that were started and did not end. */
  get nodes(): ReadonlyMap<string, StartedProcess> {
    return this.#nodes;
  }

  node(name: string): StartedProcess {
    const node = this.#nodes.get(name);
    if (node === undefined) throw new Error(`${name} does not run`);
    return node;
  }

  /** Starts a node; the first one brings the namespace and the client. @throws Error when it ends before it has joined */
  async start(name: string, faults: FaultPlan = []): Promise<StartedProcess> {
    const { cluster, namespace, leaseTtlMs, sweepMs = 1000, partitions = 12, shards = 4 } = this.#options;
    const { modelBaseUrl, planted } = this.#options;
    const { url, user, password } = cluster.nats;
    const settings = {
      nats: { servers: [url], user, password },
      namespace,
      name,
      ledgerUrl: cluster.ledgerUrl,
      ...(modelBaseUrl !== undefined && { modelBaseUrl }),
      partitions,
      shards,
      runtime: { leaseTtlMs, sweepMs },
      faults,
      ...(planted !== undefined && { planted }),
    };
    const node = await startProcess(NODE, [JSON.stringify(settings)]);
    this.#all.add(node);
    if (!this.#nodes.has(name)) this.#nodes.set(name, node);
    node.child.once("exit", (code, signal) => {
      this.lastWords.set(name, `${code ?? signal}: ${node.log().slice(-2000)}`);
      this.#all.delete(node);
      if (this.#nodes.get(name) === node) this.#nodes.delete(name);
    });
    if (this.#client === undefined) await this.#connect();
    return node;
  }

  /** SIGKILL. */
  async kill(name: string): Promise<void> {
    await this.node(name).kill();
  }

  /** Waits until living nodes hold every partition and have taken it up. */
  async serving(timeoutMs = 60_000): Promise<void> {
    const dump = (): string => this.logs().slice(-4000);
    await untilServing(this.client.holdfast, () => this.#nodes.values(), { timeoutMs, tickMs: 50, dump });
  }

  /** Waits until a header fits. @throws Error when it takes longer, or `signal` aborts */
  async until(what: string, fits: () => boolean, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!fits()) {
      signal?.throwIfAborted();
      if (performance.now() > deadline) throw new Error(`Not within ${timeoutMs} ms: ${what}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 500);
        this.#changed.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** The ledger's log, line by line. */
  async ledgerLines(): Promise<readonly string[]> {
    const response = await fetch(`${this.cluster.ledgerUrl}/entries`);
    return (await response.text()).split("\n").filter((line) => line !== "");
  }

  logs(): string {
    return [...this.#all].map((node) => node.log()).join("");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client?.close();
    await this.#link?.close();
    await Promise.all([...this.#all].map((node) => node.kill()));
  }

  async #connect(): Promise<void> {
    const { cluster, namespace, shards = 4 } = this.#options;
    this.#client = await cluster.client(namespace);
    const { url, user, password } = cluster.nats;
    const inboxPrefix = inboxPrefixOf("node");
    this.#link = await connectNats({ servers: [url], user, pass: password, inboxPrefix, name: "holdfast-chaos" });
    const codec = createCodec({ ref: actorRefExtension, crc32: systemCrc32 });
    const subjects = subjectsOf(namespace);
    for (let shard = 0; shard < shards; shard += 1) {
      await watchBucket(this.#link, {
        bucket: subjects.actorsBucket(shard),
        onFault: (fault) => process.stderr.write(`watch of shard ${shard} ended: ${fault.message}\n`),
        deliver: ({ key, bytes, removed }) => {
          if (removed || key.split(".").length !== 3) return;
          this.#headers.set(key, codec.decodeHeader(bytes));
          for (const tell of this.#changed.splice(0)) tell();
        },
      });
    }
  }
}

/** Type of the actor that a header is of. */
export const typeOf = ({ key }: RecordHeader): string => parseActorKey(key).type;
