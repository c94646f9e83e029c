import type { Principal } from "@holdfast/protocol";
import { connectNats, type Link } from "@holdfast/jetstream";
import { provideNatsServer, startManagedNats, type ManagedNats } from "@holdfast/process";
import { createClient, type Client } from "holdfast";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import { waitUntil } from "../harness/wait-until.ts";

/** F: every acknowledged write was fsynced. P: the server's default. */
export type DurabilityClass = "F" | "P";

export const NAMESPACE = "bench";
const PARTITIONS = 32;
/** Not the system's folder for temporary files, which may be memory: an fsync must cost what it costs. */
const cacheDir = join(import.meta.dirname, "../../.holdfast");

/** One server, one node process, and this process as the client. */
export class BenchWorld implements AsyncDisposable {
  readonly nats: ManagedNats;
  readonly node: StartedProcess;
  readonly client: Client;
  /** Connection of the bare writes. */
  readonly link: Link;
  readonly folder: string;
  readonly #stack: AsyncDisposableStack;

  private constructor(
    parts: Pick<BenchWorld, "nats" | "node" | "client" | "link" | "folder">,
    stack: AsyncDisposableStack,
  ) {
    this.nats = parts.nats;
    this.node = parts.node;
    this.client = parts.client;
    this.link = parts.link;
    this.folder = parts.folder;
    this.#stack = stack;
  }

  /** Resolves when the node serves every partition. @throws whatever did not start */
  static async start(durabilityClass: DurabilityClass): Promise<BenchWorld> {
    await using stack = new AsyncDisposableStack();
    mkdirSync(cacheDir, { recursive: true });
    const folder = stack.adopt(mkdtempSync(join(cacheDir, "bench-")), (path) =>
      rmSync(path, { recursive: true, force: true }),
    );
    const server = await provideNatsServer({
      cacheDir,
      env: { PATH: process.env["PATH"], HOLDFAST_NATS_SERVER: process.env["HOLDFAST_NATS_SERVER"] },
    });
    const nats = stack.adopt(
      await startManagedNats({
        binary: server.path,
        storeDir: join(folder, "store"),
        configDir: join(folder, "conf"),
        ns: NAMESPACE,
        durabilityClass,
      }),
      async (started) => void (await started.stop()),
    );
    const access = { servers: [nats.url], user: nats.user, password: nats.password };
    const settings = JSON.stringify({ nats: access, namespace: NAMESPACE });
    const node = stack.adopt(
      await startProcess(join(import.meta.dirname, "bench-node.ts"), [], { BENCH_NODE: settings }),
      (started) => started.kill("SIGTERM"),
    );
    const principal: Principal = { kind: "service", id: "bench", roles: [] };
    const client = stack.use(await createClient({ nats: access, namespace: NAMESPACE, principal }));
    const link = stack.adopt(
      await connectNats({ servers: access.servers, user: access.user, pass: access.password, name: "bench-raw" }),
      (open) => open.close(),
    );
    await waitUntil(
      "the node serves every partition",
      async () =>
        (await client.holdfast.read.fleet()).leases.filter(({ state }) => state === "held").length === PARTITIONS,
      { timeoutMs: 60_000, tickMs: 100, dump: () => node.log() },
    );
    return new BenchWorld({ nats, node, client, link, folder }, stack.move());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}
