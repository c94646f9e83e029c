import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inboxPrefixOf, provideNatsServer, startManagedNats, type ManagedNats } from "@holdfast/process";
import { LedgerFigures, LedgerLine } from "@holdfast/ledger";
import { createClient, type Client } from "holdfast";
import { readEvidence, type Evidence } from "@holdfast/audit";
import { fileURLToPath } from "node:url";
import { startProcess, type StartedProcess } from "./child-process.ts";
import { waitUntil } from "./wait-until.ts";

const root = join(import.meta.dirname, "../..");

export interface CrashPlan {
  readonly point: string;
  readonly nth: number;
  readonly match?: string;
}

export interface StartNodeUnderTest {
  readonly name: string;
  readonly crash?: CrashPlan;
}

/**
 * A fleet of real processes on a real server, for one test file.
 * Verbs here, assertions in the tests. Every namespace is its own world, so tests share a server without meeting.
 */
export class Cluster {
  readonly nats: ManagedNats;
  readonly ledger: StartedProcess;
  readonly #folder: string;
  /** Node → the namespace it serves. */
  readonly #nodes = new Map<StartedProcess, string>();

  private constructor(nats: ManagedNats, ledger: StartedProcess, folder: string) {
    this.nats = nats;
    this.ledger = ledger;
    this.#folder = folder;
  }

  static async start(namespace = "main"): Promise<Cluster> {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-cluster-"));
    const server = await provideNatsServer({
      cacheDir: join(root, ".holdfast"),
      env: { PATH: process.env["PATH"], HOLDFAST_NATS_SERVER: process.env["HOLDFAST_NATS_SERVER"] },
    });
    const nats = await startManagedNats({
      binary: server.path,
      storeDir: join(folder, "store"),
      configDir: join(folder, "conf"),
      ns: namespace,
    });
    const ledger = await startProcess(fileURLToPath(import.meta.resolve("@holdfast/ledger/main")), [], {
      LEDGER_FILE: join(folder, "ledger.jsonl"),
      LEDGER_EXIT_WITH_STDIN: "1",
    });
    return new Cluster(nats, ledger, folder);
  }

  get ledgerUrl(): string {
    return String(this.ledger.hello["url"]);
  }

  async figures(): Promise<LedgerFigures> {
    const response = await fetch(`${this.ledgerUrl}/figures`);
    return LedgerFigures.parse(await response.json());
  }

  async entries(): Promise<readonly LedgerLine[]> {
    const response = await fetch(`${this.ledgerUrl}/entries`);
    const lines = (await response.text()).split("\n").filter((line) => line !== "");
    return lines.map((line) => LedgerLine.parse(JSON.parse(line)));
  }

  async startNode(
    namespace: string,
    options: StartNodeUnderTest,
    settings: { readonly leaseTtlMs: number; readonly sweepMs?: number },
  ): Promise<StartedProcess> {
    const node = await startProcess(join(import.meta.dirname, "node-under-test.ts"), [
      JSON.stringify({
        nats: { servers: [this.nats.url], user: this.nats.user, password: this.nats.password },
        namespace,
        name: options.name,
        ledgerUrl: this.ledgerUrl,
        ...settings,
        ...(options.crash !== undefined && { crash: options.crash }),
      }),
    ]);
    this.#nodes.set(node, namespace);
    void node.exited.then(() => this.#nodes.delete(node));
    return node;
  }

  /** A client with the rights of a node: tests use many namespaces, the restricted user knows one. */
  client(namespace: string, window?: { readonly unanswered: number }): Promise<Client> {
    const open = (): Promise<Client> =>
      createClient({
        nats: { servers: [this.nats.url], user: this.nats.user, password: this.nats.password },
        namespace,
        principal: { kind: "person", id: "local", roles: [] },
        ...(window !== undefined && { window }),
      });
    return waitUntil(`namespace ${namespace} exists`, open);
  }

  evidence(namespace: string): Promise<Evidence> {
    return readEvidence({
      servers: [this.nats.url],
      user: this.nats.user,
      password: this.nats.password,
      inboxPrefix: inboxPrefixOf("node"),
      namespace,
    });
  }

  /** Waits until an actor has ended. @returns its record */
  async ended(client: Client, key: string, timeoutMs = 30_000) {
    return waitUntil(
      `${key} has ended`,
      async () => {
        const actor = await client.holdfast.read.actor(key);
        return actor !== undefined && actor.record.status !== "active" && actor.record.outbox.length === 0
          ? actor.record
          : undefined;
      },
      {
        timeoutMs,
        dump: async () => ({
          headers: await client.holdfast.read.headers(),
          fleet: (await client.holdfast.read.fleet()).stuck,
        }),
      },
    );
  }

  /** SIGKILLs the nodes of a namespace, or all. */
  async stopNodes(namespace?: string): Promise<void> {
    const nodes = [...this.#nodes].filter(([, served]) => namespace === undefined || served === namespace);
    await Promise.all(nodes.map(([node]) => node.kill()));
  }

  async stop(): Promise<void> {
    await this.stopNodes();
    await this.ledger.kill("SIGTERM");
    await this.nats.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
