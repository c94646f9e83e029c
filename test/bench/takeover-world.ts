import { connectNats, type Link } from "@holdfast/jetstream";
import { provideNatsServer, startManagedNats, type ManagedNats } from "@holdfast/process";
import { partitionsOf, rendezvousOwner, type Principal } from "@holdfast/protocol";
import { createClient, type Client } from "holdfast";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import { waitUntil } from "../harness/wait-until.ts";
import type { DurabilityClass } from "./bench-world.ts";
import { storeSleepers } from "./sleepers.ts";

const NAMESPACE = "takeover";
/** Names under which rendezvous gives 16 of the 32 partitions to each. */
export const SURVIVOR = "stay";
export const VICTIM = "fall";
const SERVING_MS = 120_000;
const cacheDir = join(import.meta.dirname, "../../.holdfast");

/** One server with a store that was filled once, a node that stays, and this process as the client. */
export class TakeoverWorld implements AsyncDisposable {
  readonly nats: ManagedNats;
  readonly client: Client;
  readonly link: Link;
  readonly folder: string;
  readonly survivor: StartedProcess;
  readonly #stack: AsyncDisposableStack;

  private constructor(
    parts: Pick<TakeoverWorld, "nats" | "client" | "link" | "folder" | "survivor">,
    stack: AsyncDisposableStack,
  ) {
    this.nats = parts.nats;
    this.client = parts.client;
    this.link = parts.link;
    this.folder = parts.folder;
    this.survivor = parts.survivor;
    this.#stack = stack;
  }

  /** Resolves when the node that stays serves every partition. @throws whatever did not start */
  static async start(
    durabilityClass: DurabilityClass,
    sleepers: number,
    say: (line: string) => void,
  ): Promise<TakeoverWorld> {
    await using stack = new AsyncDisposableStack();
    mkdirSync(cacheDir, { recursive: true });
    const folder = stack.adopt(mkdtempSync(join(cacheDir, "takeover-")), (path) =>
      rmSync(path, { recursive: true, force: true }),
    );
    if (sleepers > 0) {
      const startedMs = performance.now();
      await fill(folder, sleepers);
      say(`${sleepers} sleepers stored in ${seconds(performance.now() - startedMs)} s`);
    }
    const nats = stack.adopt(
      await startServer(folder, durabilityClass),
      async (started) => void (await started.stop()),
    );
    const startedMs = performance.now();
    const survivor = stack.adopt(await startNode(nats, SURVIVOR, false), (node) => node.kill());
    const client = stack.use(await openClient(nats));
    const link = stack.adopt(await openLink(nats), (open) => open.close());
    await holds(client, SURVIVOR, partitionsOf(client.holdfast.manifest, "d"), survivor);
    say(
      `nats-server ${nats.version}, class ${durabilityClass}, ${sleepers} sleepers: served ${seconds(performance.now() - startedMs)} s after the start of its first node`,
    );
    return new TakeoverWorld({ nats, client, link, folder, survivor }, stack.move());
  }

  /** Partitions of the node that is to be killed. */
  get victimsPartitions(): readonly string[] {
    const partitions = partitionsOf(this.client.holdfast.manifest, "d");
    const nodes = [SURVIVOR, VICTIM].map((name) => ({ name, weight: 1 }));
    return partitions.filter((partition) => rendezvousOwner(partition, nodes) === VICTIM);
  }

  /** Starts the node that is to be killed; resolves when it serves its share. */
  async startVictim(): Promise<StartedProcess> {
    const victim = await startNode(this.nats, VICTIM, true);
    await holds(this.client, VICTIM, this.victimsPartitions, victim);
    return victim;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** Without an fsync per write, which nobody's state depends on yet; the server that is measured starts on the same store afterwards. */
async function fill(folder: string, sleepers: number): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const nats = stack.adopt(await startServer(folder, "P"), async (started) => void (await started.stop()));
  const node = stack.adopt(await startNode(nats, SURVIVOR, false), (started) => started.kill("SIGTERM"));
  const client = stack.use(await openClient(nats));
  const link = stack.adopt(await openLink(nats), (open) => open.close());
  const { holdfast } = client;
  await holds(client, SURVIVOR, partitionsOf(holdfast.manifest, "d"), node);
  const pattern = holdfast.key("duty", "pattern");
  await holdfast.start("duty", "pattern", { isAwake: false });
  await waitUntil("the pattern sleeps", async () => (await holdfast.read.header(pattern))?.needsWork === false);
  await storeSleepers(link, holdfast.manifest, pattern, sleepers);
}

async function startServer(folder: string, durabilityClass: DurabilityClass): Promise<ManagedNats> {
  const server = await provideNatsServer({
    cacheDir,
    env: { PATH: process.env["PATH"], HOLDFAST_NATS_SERVER: process.env["HOLDFAST_NATS_SERVER"] },
  });
  return startManagedNats({
    binary: server.path,
    storeDir: join(folder, "store"),
    configDir: join(folder, "conf"),
    ns: NAMESPACE,
    durabilityClass,
  });
}

const accessOf = (nats: ManagedNats) => ({ servers: [nats.url], user: nats.user, password: nats.password });

const startNode = (nats: ManagedNats, name: string, holdsJobs: boolean): Promise<StartedProcess> =>
  startProcess(join(import.meta.dirname, "takeover-node.ts"), [], {
    TAKEOVER_NODE: JSON.stringify({ nats: accessOf(nats), namespace: NAMESPACE, name, holdsJobs }),
  });

async function openClient(nats: ManagedNats): Promise<Client> {
  const principal: Principal = { kind: "service", id: "bench", roles: [] };
  return waitUntil("the namespace exists", () =>
    createClient({ nats: accessOf(nats), namespace: NAMESPACE, principal }),
  );
}

function openLink(nats: ManagedNats): Promise<Link> {
  const { servers, user, password } = accessOf(nats);
  return connectNats({ servers, user, pass: password, name: "takeover-bench" });
}

/** Waits until a node holds these partitions and has taken them up. */
async function holds(client: Client, name: string, partitions: readonly string[], node: StartedProcess): Promise<void> {
  await waitUntil(
    `${name} serves ${partitions.length} partitions`,
    async () => {
      const { leases, reports } = await client.holdfast.read.fleet();
      const epochs = new Map(
        reports.map(({ partition, epoch, incarnation }) => [`${partition}@${epoch}`, incarnation]),
      );
      const served = leases.filter(
        ({ partition, epoch, state, holder }) =>
          state === "held" && holder.startsWith(`${name}:`) && epochs.get(`${partition}@${epoch}`) === holder,
      );
      const names = new Set(served.map(({ partition }) => partition));
      return partitions.every((partition) => names.has(partition));
    },
    { timeoutMs: SERVING_MS, tickMs: 100, dump: () => node.log() },
  );
}

const seconds = (ms: number): string => (ms / 1000).toFixed(1);
