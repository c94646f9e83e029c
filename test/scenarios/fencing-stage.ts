import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { Evidence } from "@holdfast/audit";
import { parseActorKey } from "@holdfast/protocol";
import type { Client } from "holdfast";
import { z } from "zod";
import type { StartedProcess } from "../harness/child-process.ts";
import type { Cluster } from "../harness/cluster.ts";
import { Frozen, type FaultPlan } from "../harness/fault-points.ts";
import type { NodeFleet } from "../harness/node-fleet.ts";
import { abortsOf } from "../harness/parcel-actors.ts";
import { waitUntil } from "../harness/wait-until.ts";

export interface FencingStageOptions {
  readonly cluster: Cluster;
  readonly fleet: NodeFleet;
  readonly namespace: string;
  /** Parcels are packed until this file exists. */
  readonly gate: string;
}

const OrderOutput = z.object({
  results: z.array(z.object({ n: z.number(), receipt: z.object({ key: z.string() }) })),
  progress: z.array(z.number()),
  shipped: z.object({ key: z.string() }),
});
const Packed = z.object({ key: z.string(), node: z.string() });

/** Patience with a machine that is busy with other things. ms */
const PATIENT_MS = 60_000;

/** One namespace in which an owner is stopped, and what can be seen of it from outside: the ledger, what is stored, what a process says. */
export class FencingStage {
  readonly fleet: NodeFleet;
  readonly gate: string;
  readonly #options: FencingStageOptions;
  readonly #jobs = new Map<string, string>();
  #client: Client | undefined;

  constructor(options: FencingStageOptions) {
    this.#options = options;
    this.fleet = options.fleet;
    this.gate = options.gate;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client?.close();
    await this.fleet.stop();
  }

  get client(): Client {
    if (this.#client === undefined) throw new Error("no node has been started yet");
    return this.#client;
  }

  /** Starts a node, and waits until it serves everything when nobody else does. */
  async alone(name: string, faults: FaultPlan = []): Promise<StartedProcess> {
    const node = await this.fleet.start(name, faults);
    this.#client ??= await this.fleet.client();
    await this.fleet.serving(this.client, [node], PATIENT_MS);
    return node;
  }

  openGate(): void {
    writeFileSync(this.gate, "");
  }

  /** Starts an actor. Resolves when its answer came, or could not come any more; nobody needs to wait for that. @returns its key */
  start(type: "order" | "parcel", id: string, input: Readonly<Record<string, unknown>>): string {
    const { holdfast } = this.client;
    holdfast.start(type, id, input, { idempotencyKey: id, timeoutMs: 60_000 }).catch(() => undefined);
    return holdfast.key(type, id);
  }

  /** Sends an event; nobody waits for the answer. */
  send(key: string, event: { readonly type: string }, idempotencyKey: string): void {
    this.client.holdfast.send(key, event, { idempotencyKey, timeoutMs: 60_000 }).catch(() => undefined);
  }

  /** Starts a parcel and waits until the ledger has seen that it is being packed. @returns its key */
  async packing(id: string, kind: "sure" | "once"): Promise<string> {
    const key = this.start("parcel", id, { kind, gate: this.gate });
    await waitUntil(`${id} is being packed`, async () => (await this.attemptsOf(key)).length > 0);
    return key;
  }

  /** Waits until a node has stopped itself at its fault. @returns where */
  async stopped(node: StartedProcess): Promise<Frozen> {
    const line = await waitUntil("the owner stops itself", () => node.lines().find((line) => line.includes("frozen")), {
      timeoutMs: PATIENT_MS,
      dump: () => node.log().slice(-4000),
    });
    await node.frozen();
    return Frozen.parse(JSON.parse(line));
  }

  /** Lets a former owner go on, and waits until it knows that it is one. */
  async thawed(node: StartedProcess, notice = "partition.fenced"): Promise<void> {
    node.thaw();
    await waitUntil("the former owner has noticed", () => node.log().includes(notice), {
      timeoutMs: PATIENT_MS,
      dump: () => node.log().slice(-4000),
    });
  }

  async header(key: string) {
    return this.client.holdfast.read.header(key);
  }

  async record(key: string) {
    return (await this.client.holdfast.read.actor(key))?.record;
  }

  async ended(key: string) {
    return this.#options.cluster.ended(this.client, key, PATIENT_MS);
  }

  /** Nodes that told the ledger about an attempt of the job of a parcel, or of the job with this key; oldest first. */
  async attemptsOf(key: string): Promise<readonly (string | undefined)[]> {
    const job = key.includes(".") ? await this.#jobOf(key) : key;
    return job === undefined ? [] : ((await this.fleet.attempts()).get(job) ?? []);
  }

  /** A record forgets a job once it has settled; its output names it. */
  async #jobOf(parcel: string): Promise<string | undefined> {
    const record = await this.record(parcel);
    const [running] = Object.values(record?.snapshot.children ?? {});
    const job = running?.key ?? Packed.safeParse(record?.snapshot.output).data?.key ?? this.#jobs.get(parcel);
    if (job !== undefined) this.#jobs.set(parcel, job);
    return job;
  }

  /** Attempts that were aborted: `<node> <job key>`. */
  aborted(): readonly string[] {
    const file = abortsOf(this.gate);
    return existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : [];
  }

  async epochs(): Promise<ReadonlyMap<string, number>> {
    const { leases } = await this.client.holdfast.read.fleet();
    return new Map(leases.map(({ partition, epoch }) => [partition, epoch]));
  }

  async holders(): Promise<ReadonlySet<string>> {
    const { leases } = await this.client.holdfast.read.fleet();
    return new Set(leases.map(({ holder }) => holder));
  }

  evidence(): Promise<Evidence> {
    return this.#options.cluster.evidence(this.#options.namespace);
  }

  /** Waits until a parcel has ended. @returns the node whose outcome it took, if any */
  async packedBy(key: string): Promise<string | undefined> {
    return Packed.safeParse((await this.ended(key)).snapshot.output).data?.node;
  }

  /** An order that has ended: whether everything in it happened once and in order, and the keys of its effects. */
  async delivered(key: string): Promise<{ readonly isExact: boolean; readonly effects: readonly string[] }> {
    const record = await this.ended(key);
    const output = OrderOutput.safeParse(record.snapshot.output).data;
    if (output === undefined) return { isExact: false, effects: [] };
    const { results, progress, shipped } = output;
    const numbers = results.map(({ n }) => n).toSorted((a, b) => a - b);
    const expected = numbers.flatMap((n) => [n, n + 1000]).toSorted((a, b) => a - b);
    const isExact =
      JSON.stringify(progress.toSorted((a, b) => a - b)) === JSON.stringify(expected) &&
      numbers.every((n, index) => n === index && progress.indexOf(n) < progress.indexOf(n + 1000));
    return { isExact, effects: [shipped.key, ...results.map(({ receipt }) => receipt.key)] };
  }

  /**
   * Waits until a node that had lost everything owns something again under a greater epoch, and an order that lives there is carried out.
   * @returns whether it was this very process that wrote it
   */
  async rejoins(node: StartedProcess): Promise<boolean> {
    const { holdfast } = this.client;
    const incarnation = String(node.hello["incarnation"]);
    const partition = await waitUntil(
      "the former owner owns something again",
      async () => {
        const { leases, reports } = await holdfast.read.fleet();
        return leases.find(
          (lease) =>
            lease.holder === incarnation &&
            lease.epoch > 2 &&
            reports.some((report) => report.partition === lease.partition && report.epoch === lease.epoch),
        )?.partition;
      },
      { timeoutMs: PATIENT_MS, dump: () => node.log().slice(-4000) },
    );
    const ids = Array.from({ length: 1000 }, (_, n) => `again${n}`);
    const id = ids.find((each) => parseActorKey(holdfast.key("order", each)).partition === partition) ?? "again0";
    const key = this.start("order", id, { items: 1, waitMs: 10 });
    const { isExact } = await this.delivered(key);
    return isExact && (await this.header(key))?.writer === incarnation;
  }
}
