import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provideNatsServer } from "@holdfast/process";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";

const root = join(import.meta.dirname, "../..");

/** What the monitoring port says about streams. */
const StreamsPage = z.object({
  meta_cluster: z.object({ leader: z.string().optional(), cluster_size: z.number().optional() }).optional(),
  account_details: z
    .array(
      z.object({
        stream_detail: z
          .array(z.object({ name: z.string(), cluster: z.object({ leader: z.string().optional() }).optional() }))
          .optional(),
      }),
    )
    .optional(),
});

interface Server {
  readonly name: string;
  readonly url: string;
  readonly monitor: string;
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Ports nobody listens on at this moment. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  });
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** Three nats-servers on loopback that replicate for each other. No passwords: nobody else lives on this machine for that minute. */
export class ReplicatedServers implements AsyncDisposable {
  readonly #servers: readonly Server[];
  readonly #folder: string;

  private constructor(servers: readonly Server[], folder: string) {
    this.#servers = servers;
    this.#folder = folder;
  }

  /** Resolves when they have elected a leader. */
  static async start(): Promise<ReplicatedServers> {
    const binary = await provideNatsServer({
      cacheDir: join(root, ".holdfast"),
      env: { PATH: process.env["PATH"], HOLDFAST_NATS_SERVER: process.env["HOLDFAST_NATS_SERVER"] },
    });
    const folder = mkdtempSync(join(tmpdir(), "holdfast-r3-"));
    const ports = await freePorts(9);
    const routes = ports.slice(6).map((port) => `nats-route://127.0.0.1:${port}`);
    const servers = [0, 1, 2].map((index) => {
      const [port, http, route] = [ports[index] ?? 0, ports[index + 3] ?? 0, ports[index + 6] ?? 0];
      const name = `s${index}`;
      const store = join(folder, name);
      mkdirSync(store);
      const config = {
        server_name: name,
        host: "127.0.0.1",
        port,
        http: `127.0.0.1:${http}`,
        jetstream: { store_dir: store, max_memory_store: 268_435_456, max_file_store: 4_294_967_296 },
        cluster: { name: "holdfast", listen: `127.0.0.1:${route}`, routes },
      };
      writeFileSync(join(folder, `${name}.conf`), JSON.stringify(config));
      const log = openSync(join(folder, `${name}.log`), "w");
      const child = spawn(binary.path, ["-c", join(folder, `${name}.conf`)], { stdio: ["ignore", log, log] });
      running.add(child);
      const exited = new Promise((resolve) => child.once("exit", resolve)).then(() => running.delete(child));
      return { name, url: `nats://127.0.0.1:${port}`, monitor: `http://127.0.0.1:${http}`, child, exited };
    });
    const cluster = new ReplicatedServers(servers, folder);
    await waitUntil("the servers have a leader", async () => {
      const pages = await Promise.all(servers.map(({ monitor }) => pageOf(monitor)));
      return pages.every(({ meta_cluster }) => meta_cluster?.leader !== undefined && meta_cluster.cluster_size === 3);
    });
    return cluster;
  }

  get urls(): readonly string[] {
    return this.#servers.map(({ url }) => url);
  }

  /** SIGKILLs the server that leads a stream. @returns its name */
  async killLeaderOf(stream: string): Promise<string> {
    const leader = await waitUntil(`${stream} has a leader`, async () => {
      const page = await pageOf(this.#servers[0]?.monitor ?? "");
      const streams = (page.account_details ?? []).flatMap(({ stream_detail = [] }) => stream_detail);
      return streams.find(({ name }) => name === stream)?.cluster?.leader;
    });
    const server = this.#servers.find(({ name }) => name === leader);
    server?.child.kill("SIGKILL");
    await server?.exited;
    return leader;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#servers) child.kill("SIGKILL");
    await Promise.all(this.#servers.map(({ exited }) => exited));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function pageOf(monitor: string): Promise<z.infer<typeof StreamsPage>> {
  const response = await fetch(`${monitor}/jsz?streams=true&accounts=true`);
  return StreamsPage.parse(await response.json());
}
