import { createCodec, type Codec } from "@holdfast/codec";
import { actorRefExtension } from "@holdfast/durable";
import {
  actorKey,
  Lease,
  MessageReply,
  type ActorRecord,
  type Envelope,
  type MessageOutcome,
  type PlainEvent,
  type RecordHeader,
} from "@holdfast/protocol";
import type { ActorDefinition } from "../actor-definition.ts";
import type { CrashPoint, Telemetry } from "../ports/index.ts";
import { RuntimeNode } from "../runtime-node.ts";
import type { NodeProcess } from "../runtime-node-options.ts";
import type { RuntimeSettings } from "../settings.ts";
import { ManualClock, MemoryBroker, SeededRandom, type ConnectedNode, type FaultRates } from "../testing/index.ts";
import { GatedLog } from "./gated-log.ts";
import { GatedRegistry } from "./gated-registry.ts";
import { JobDesk } from "./job-desk.ts";
import { ProcessClock } from "./process-clock.ts";
import { testActors } from "./test-actors.ts";

export interface StartOptions {
  readonly definitions?: readonly ActorDefinition[];
  readonly settings?: Partial<RuntimeSettings>;
  readonly faults?: FaultRates;
  /** How far this machine's wall clock is ahead, ms. */
  readonly aheadMs?: number;
  /** Default: `d`. */
  readonly pools?: readonly string[];
  readonly weight?: number;
  readonly readableFormats?: readonly number[];
  readonly process?: NodeProcess;
}

/** One line of a node's log. */
export interface Told {
  readonly node: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

interface Hold {
  readonly point: CrashPoint;
  readonly match: string;
  /** Occasions to let pass. */
  skip: number;
  readonly reached: () => void;
  readonly released: Promise<void>;
}

/** A simulated process. Its node is as it would be in a real one; its links to time and broker are in the test's hands. */
export class MemoryProcess {
  readonly name: string;
  readonly node: RuntimeNode;
  readonly clock: ProcessClock;
  readonly ports: ConnectedNode;
  /** Its consumers of inboxes. */
  readonly log: GatedLog;
  /** Its view of the fleet's bucket. */
  readonly registry: GatedRegistry;
  readonly holds: Hold[];
  readonly #goOn: (() => void)[] = [];

  constructor(parts: Pick<MemoryProcess, "name" | "node" | "clock" | "ports" | "log" | "registry" | "holds">) {
    this.name = parts.name;
    this.node = parts.node;
    this.clock = parts.clock;
    this.ports = parts.ports;
    this.log = parts.log;
    this.registry = parts.registry;
    this.holds = parts.holds;
  }

  /**
   * Whatever reaches a crash point next with a detail that contains `match` waits there, until it is released. Everything else goes on.
   * @param skip  occasions to let pass before
   */
  holdAt(point: CrashPoint, match = "", skip = 0): { readonly reached: Promise<void>; readonly release: () => void } {
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    this.holds.push({ point, match, skip, reached: reached.resolve, released: released.promise });
    return { reached: reached.promise, release: released.resolve };
  }

  /** Stops the whole process at the next occasion of a crash point; `resume` lets it go on from there. */
  stopAt(point: CrashPoint, match = "", skip = 0): { readonly reached: Promise<void> } {
    const { reached, release } = this.holdAt(point, match, skip);
    this.#goOn.push(release);
    return { reached: reached.then(() => this.stop()) };
  }

  /** SIGSTOP: nothing leaves, nothing arrives, nothing runs; what had left is on its way. */
  stop(): void {
    this.clock.stop();
    this.ports.link.pause();
  }

  /** SIGCONT. */
  resume(): void {
    this.ports.link.resume();
    this.clock.resume();
    for (const goOn of this.#goOn.splice(0)) goOn();
  }

  /** SIGKILL. */
  kill(): void {
    this.clock.kill();
    this.ports.link.kill();
  }

  /** The line between node and broker is cut. */
  disconnect(): void {
    this.ports.link.disconnect();
  }

  reconnect(): void {
    this.ports.link.reconnect();
  }
}

const OWNER = { kind: "person", id: "ada" } as const;

/**
 * A fleet of nodes in one process, over one hostile broker and one clock. Verbs here, assertions in the tests.
 */
export class MemoryFleet {
  readonly clock = new ManualClock();
  readonly codec: Codec = createCodec({ ref: actorRefExtension });
  readonly broker: MemoryBroker;
  readonly desk = new JobDesk();
  readonly told: Told[] = [];
  readonly processes: MemoryProcess[] = [];
  readonly replies = new Map<string, MessageOutcome[]>();
  readonly #settings: Partial<RuntimeSettings>;
  readonly #retains: boolean;
  /** A connection of nobody: what an operator or a foreign node could do. */
  readonly outsider: ConnectedNode;
  #messages = 0;

  constructor(
    options: {
      readonly settings?: Partial<RuntimeSettings>;
      readonly maxPayloadBytes?: number;
      /** Pool → number of partitions; default four of `d`. */
      readonly pools?: Readonly<Record<string, number>>;
      /** What nobody needs any more goes. Default: everything stays. */
      readonly retains?: boolean;
    } = {},
  ) {
    // Partitions stay where they are until somebody dies or leaves: a test that is about moves asks for them.
    this.#retains = options.retains ?? false;
    this.#settings = { movesAtOnce: 0, ...options.settings };
    this.broker = new MemoryBroker({
      clock: this.clock,
      scheme: { pools: options.pools ?? { d: 4 }, shards: 2 },
      tokenOf: (bytes) => this.#tokenOf(bytes),
      ...(options.maxPayloadBytes !== undefined && { maxPayloadBytes: options.maxPayloadBytes }),
    });
    this.outsider = this.broker.connect("outsider");
    this.broker.listen("_INBOX.>", ({ bytes }) => {
      const { id, outcome } = MessageReply.parse(this.codec.decodeReply(bytes));
      this.replies.set(id, [...(this.replies.get(id) ?? []), outcome]);
    });
  }

  /** Starts a node and waits until it has joined. */
  async start(name: string, options: StartOptions = {}): Promise<MemoryProcess> {
    const process = this.make(name, options);
    const started = process.node.start();
    await this.happened(
      `${name} has joined, or could not`,
      started.catch(() => undefined),
    );
    await started;
    return process;
  }

  /** A node that was not started yet. */
  make(name: string, options: StartOptions = {}): MemoryProcess {
    const ports = this.broker.connect(name, options.faults ?? {});
    const clock = new ProcessClock(this.clock.withWallOffset(options.aheadMs ?? 0));
    const holds: Hold[] = [];
    const log = new GatedLog(ports.log);
    const registry = new GatedRegistry(ports.fleet);
    const removal = this.#retains ? { retention: ports.removal, erasures: ports.removal } : {};
    const node = new RuntimeNode({
      name,
      definitions: options.definitions ?? testActors(this.desk),
      pools: options.pools ?? ["d"],
      ...(options.weight !== undefined && { weight: options.weight }),
      ...(options.process !== undefined && { process: options.process }),
      ...(options.readableFormats !== undefined && { readableFormats: options.readableFormats }),
      scheme: this.broker.scheme,
      codec: this.codec,
      ports: { ...ports, log, fleet: registry, ...removal },
      clock,
      random: new SeededRandom(`${name}/${this.processes.length}`),
      telemetry: this.#telemetryOf(name),
      crashPoints: { reach: (point, detail) => reach(holds, point, detail) },
      settings: { ...this.#settings, ...options.settings },
    });
    const process = new MemoryProcess({ name, node, clock, ports, log, registry, holds });
    this.processes.push(process);
    return process;
  }

  /** Waits until the node serves everything. */
  async serving(process: MemoryProcess, partitions = 4): Promise<void> {
    await this.until(
      `${process.name} serves ${partitions} partitions`,
      () => [...process.node.partitions.values()].filter((owner) => owner.isCaughtUp).length === partitions,
    );
  }

  /** One node that serves everything. */
  async alone(name = "n1", options: StartOptions = {}): Promise<MemoryProcess> {
    const process = await this.start(name, options);
    await this.serving(process);
    return process;
  }

  /** Lets time pass until something has happened that is not a matter of state. */
  async happened(description: string, event: Promise<unknown>): Promise<void> {
    let isOver = false;
    void event.then(() => (isOver = true));
    await this.until(description, () => isOver);
  }

  until(description: string, condition: () => boolean, limitMs = 60_000): Promise<void> {
    return this.clock.advanceUntil(description, condition, { stepMs: 50, limitMs, dump: () => this.dump() });
  }

  key(type: string, id: string): string {
    return actorKey(this.broker.scheme, "d", type, id);
  }

  /** Sends a start from outside. @returns its message id */
  async begin(type: string, id: string, input?: unknown): Promise<string> {
    return this.outside(this.key(type, id), { kind: "start", ...(input !== undefined && { input }) });
  }

  /** Sends an event from outside, resolves when the stream has it. @returns its message id */
  async send(key: string, event: PlainEvent, id?: string): Promise<string> {
    return this.outside(key, { kind: "send", event }, id);
  }

  async outside(
    key: string,
    body: Record<string, unknown> & { readonly kind: string },
    given?: string,
  ): Promise<string> {
    this.#messages += 1;
    const id = given ?? `m${this.#messages}`;
    await this.publishOutside(key, { replyTo: "_INBOX.ada.1", ...body, v: 1, id }, id);
    return id;
  }

  /** Whatever a client may put on the wire, also what no honest one would. */
  async publishOutside(key: string, envelope: unknown, messageId: string): Promise<void> {
    const outcome = await this.broker.publishOutside(OWNER, key, this.codec.encodeValue(envelope), messageId);
    if (outcome.kind !== "accepted") throw new Error(`the stream did not take ${messageId}: ${outcome.reason}`);
  }

  /** What another actor's node would send. */
  async publishInside(key: string, envelope: Envelope, messageId: string): Promise<void> {
    const bytes = this.codec.encodeEnvelope(envelope);
    const outcome = await this.outsider.log.publish("inbox", key, bytes, messageId);
    if (outcome.kind !== "accepted") throw new Error(`the stream did not take ${messageId}: ${outcome.reason}`);
  }

  /** Begins an actor and waits until it is stored. @returns its key */
  async born(type: string, id: string, input?: unknown): Promise<string> {
    await this.begin(type, id, input);
    const key = this.key(type, id);
    await this.until(`${key} exists`, () => this.record(key) !== undefined);
    return key;
  }

  /** Present record. @returns undefined when there is none that can be read */
  record(key: string): ActorRecord | undefined {
    return this.#stored(key)?.record;
  }

  header(key: string): RecordHeader | undefined {
    return this.#stored(key)?.header;
  }

  context(key: string): unknown {
    return this.record(key)?.snapshot.context;
  }

  /** Key of a child, once its parent has decided it. */
  async child(parentKey: string, childId: string): Promise<string> {
    const find = (): string | undefined => this.record(parentKey)?.snapshot.children[childId]?.key;
    await this.until(`${parentKey} has a child ${childId}`, () => find() !== undefined);
    return find() ?? "";
  }

  /** Every revision that was ever stored. */
  revisions(key: string): readonly number[] {
    return this.broker.writesOf(key).map(({ bytes }) => this.codec.decodeHeader(bytes).rev);
  }

  lease(partition: string): Lease | undefined {
    return this.processes
      .flatMap(({ node }) => node.view.leases.get(partition)?.lease ?? [])
      .toSorted((a, b) => b.epoch - a.epoch)[0];
  }

  /** What actors said to the senders of a message. */
  outcomes(messageId: string): readonly MessageOutcome[] {
    return this.replies.get(messageId) ?? [];
  }

  events(event: string, node?: string): readonly Told[] {
    return this.told.filter((line) => line.event === event && (node === undefined || line.node === node));
  }

  /** What a person wants to see when something did not happen. */
  dump(): string {
    const nodes = this.processes.map(({ name, node }) => {
      const owned = [...node.partitions].map(
        ([partition, { epoch, isCaughtUp }]) => `${partition}@${epoch}${isCaughtUp ? "" : "…"}`,
      );
      return `${name}: ${owned.join(" ")} jobs ${node.jobs.keys().join(" ")}`;
    });
    const told = this.told
      .slice(-40)
      .map(({ node, event, fields }) => `${node} ${event} ${JSON.stringify(fields).slice(0, 200)}`);
    return [...nodes, ...told].join("\n");
  }

  #stored(key: string) {
    const last = this.broker.writesOf(key).at(-1);
    if (last === undefined) return undefined;
    try {
      return this.codec.decodeRecord(last.bytes);
    } catch {
      return undefined; // damaged on purpose
    }
  }

  #tokenOf(bytes: Uint8Array): string | undefined {
    try {
      return this.codec.decodeHeader(bytes).token;
    } catch {
      return undefined;
    }
  }

  #telemetryOf(node: string): Telemetry {
    const tell = (event: string, fields: Readonly<Record<string, unknown>>): void => {
      if (event !== "machine.lint") this.told.push({ node, event, fields });
    };
    return { info: tell, warn: tell, error: tell, debug: tell };
  }
}

function reach(holds: Hold[], point: CrashPoint, detail: string): Promise<void> | undefined {
  const index = holds.findIndex((hold) => hold.point === point && detail.includes(hold.match));
  const hold = holds[index];
  if (hold === undefined) return undefined;
  hold.skip -= 1;
  if (hold.skip >= 0) return undefined;
  holds.splice(index, 1);
  hold.reached();
  return hold.released;
}
