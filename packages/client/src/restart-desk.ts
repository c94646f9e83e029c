import { publishStored, readLast, type Link } from "@holdfast/jetstream";
import {
  exitKey,
  ExitReport,
  parseActorKey,
  planActor,
  poolOf,
  principalToken,
  Restart,
  restartKey,
  restartState,
  RuntimeFault,
  type DrainRequest,
  type KeptActor,
  type Principal,
  type RestartRequest,
  type Subjects,
} from "@holdfast/protocol";
import { setTimeout as delay } from "node:timers/promises";
import type { FleetOverview, NodeOverview } from "./fleet-overview.ts";
import type { NamespaceReader } from "./namespace-reader.ts";
import type { StuckDesk } from "./stuck-desk.ts";

export interface RestartDeskOptions {
  readonly link: Link;
  readonly subjects: Subjects;
  readonly principal: Principal;
  readonly randomHex: (bytes: number) => string;
  readonly read: NamespaceReader;
  readonly stuck: StuckDesk;
}

/** What a restart of some nodes would do, as stored now; nothing is changed by asking. */
export interface RestartPlan {
  readonly nodes: readonly string[];
  readonly actors: readonly (KeptActor & { readonly node: string })[];
}

/** A restart as it is stored, with an acknowledgement that no node has taken note of yet. */
export interface RestartRow {
  readonly restart: Restart;
  readonly state: Restart["state"];
}

const LOOK_MS = 100;
const isAlive = ({ state }: NodeOverview): boolean => state !== "left" && state !== "silent";

/** Planned restarts of a namespace, as an operator and a supervisor use them. */
export class RestartDesk {
  readonly #options: RestartDeskOptions;

  constructor(options: RestartDeskOptions) {
    this.#options = options;
  }

  /**
   * What becomes of every actor with work when nodes are restarted together.
   * @param names  nodes; all live ones when empty
   * @throws RuntimeFault HF-3030 when one of them is not alive
   */
  async plan(names: readonly string[] = [], resume = true): Promise<RestartPlan> {
    const { read, stuck } = this.#options;
    const overview = await read.overview();
    const live = overview.nodes.filter(isAlive);
    const nodes = names.length === 0 ? live : names.map((name) => liveNode(live, name));
    const staying = live.filter(({ state, name }) => state === "serving" && !nodes.some((node) => node.name === name));
    const unreadable: string[] = [];
    const headers = await read.headers(undefined, (key) => unreadable.push(key));
    const held = new Map(
      (await stuck.entries()).filter(({ subject }) => subject === "actor").map(({ key, reason }) => [key, reason]),
    );
    const heldTypes = new Set(nodes.flatMap((node) => node.heldTypes ?? []));
    const facts = [
      ...headers
        .filter(({ needsWork }) => needsWork)
        .map(({ key, status }) => ({ key, isClosing: status === "closing" })),
      ...unreadable.map((key) => ({ key, isClosing: false })),
    ];
    const actors = facts.flatMap(({ key, isClosing }) => {
      const { partition, type } = parseActorKey(key);
      const node = ownerOf(overview, partition);
      if (!nodes.some(({ name }) => name === node) || node === undefined) return [];
      const isMoving = staying.some(({ pools }) => pools.includes(poolOf(partition)));
      const isUnreadable = unreadable.includes(key);
      const heldBecause = held.get(key) ?? (isUnreadable ? "its record cannot be read" : undefined);
      const planned = planActor(
        { key, isClosing, heldBecause, isHeldAfterCrash: heldTypes.has(type), isMoving },
        resume,
      );
      return [{ ...planned, node }];
    });
    return { nodes: nodes.map(({ name }) => name), actors: actors.toSorted((a, b) => (a.key < b.key ? -1 : 1)) };
  }

  /**
   * Asks a node to leave and come back. Resolves when it has stored what it keeps; it leaves then.
   * @throws RuntimeFault HF-3030 when it is not alive, HF-4007 without the right, HF-4008 when it has not prepared that in time
   */
  async prepare(
    node: string,
    { timeoutMs = 10_000, ...wanted }: Omit<RestartRequest, "id"> & { readonly timeoutMs?: number },
  ): Promise<Restart> {
    const { principal, randomHex, read } = this.#options;
    const { incarnation } = liveNode((await read.overview()).nodes.filter(isAlive), node);
    const request: DrainRequest = {
      v: 1,
      node,
      incarnation,
      by: principalToken(principal),
      restart: { id: randomHex(8), ...wanted },
    };
    await this.#put(`drain.${node}`, request);
    for (const endMs = performance.now() + timeoutMs; ; await delay(LOOK_MS)) {
      const restart = await this.#restartOf(node);
      if (restart?.generation.incarnation === incarnation) return restart;
      if (performance.now() >= endMs)
        throw new RuntimeFault(
          "HF-4008",
          `Node ${node}: it has not prepared its restart within ${timeoutMs} ms. Look at "holdfast restart list" and "holdfast fleet"; asking again changes nothing more.`,
          { facts: { node } },
        );
    }
  }

  /** The newest restart of every node. */
  async list(): Promise<readonly RestartRow[]> {
    const { nodes } = await this.#options.read.overview();
    const rows = await Promise.all(nodes.map(({ name }) => this.show(name)));
    return rows.filter((row) => row !== undefined);
  }

  /** @returns undefined when none was ever prepared under this name */
  async show(node: string): Promise<RestartRow | undefined> {
    const restart = await this.#restartOf(node);
    if (restart === undefined) return undefined;
    const exit = ExitReport.safeParse(await this.#read(exitKey(node))).data;
    return { restart, state: restartState(restart, exit) };
  }

  /**
   * Says how a process has ended that the caller had started and waited for. Nothing is written when it had prepared no restart.
   * @returns the restart that is acknowledged by that
   * @throws RuntimeFault HF-4007 without the right: nodes do not have it; HF-4008 when nobody knows whether it was stored
   */
  async acknowledge(report: ExitReport): Promise<RestartRow | undefined> {
    const restart = await this.#restartOf(report.node);
    if (restart?.generation.incarnation !== report.generation.incarnation) return undefined;
    await this.#put(exitKey(report.node), report);
    return this.show(report.node);
  }

  async #restartOf(node: string): Promise<Restart | undefined> {
    return Restart.safeParse(await this.#read(restartKey(node))).data;
  }

  async #read(key: string): Promise<unknown> {
    const { link, subjects } = this.#options;
    const stored = await readLast(link, `KV_${subjects.fleetBucket}`, `$KV.${subjects.fleetBucket}.${key}`);
    return stored === undefined ? undefined : parseJson(stored.bytes);
  }

  async #put(key: string, value: unknown): Promise<void> {
    const { link, subjects } = this.#options;
    const stored = await publishStored(link, {
      subject: `$KV.${subjects.fleetBucket}.${key}`,
      bytes: new TextEncoder().encode(JSON.stringify(value)),
    });
    if (stored.kind === "accepted") return;
    throw new RuntimeFault(
      stored.kind === "refused" ? stored.code : "HF-4008",
      `${key}: ${stored.kind} (${stored.reason}). Try again; doing so twice changes nothing more.`,
    );
  }
}

function liveNode(live: readonly NodeOverview[], name: string): NodeOverview {
  const found = live.find((node) => node.name === name);
  if (found !== undefined) return found;
  throw new RuntimeFault("HF-3030", `Node ${name}: no live node has this name. "holdfast fleet" shows all of them.`, {
    facts: { node: name },
  });
}

const ownerOf = ({ partitions }: FleetOverview, partition: string): string | undefined =>
  partitions.find((each) => each.partition === partition)?.owner;

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined; // the schema then says what is missing
  }
}
