// The one place where rooms meet: connection, codec, adapters, runtime, client. No behaviour of its own.
import {
  HoldfastClient,
  NamespaceReader,
  readEvents,
  type ClientWindow,
  type EventsOptions,
  type ReceivedEvent,
} from "@holdfast/client";
import { createCodec, type Codec } from "@holdfast/codec";
import { actorRefExtension } from "@holdfast/durable";
import {
  connectNats,
  ensureNamespace,
  LiveNamespace,
  settleTypeHomes,
  type Link,
  type OpenNamespace,
} from "@holdfast/jetstream";
import { composeNatsPorts, type NatsPorts } from "@holdfast/nats";
import { createSystemRandom, systemClock, systemCrc32, systemTextHash, thisProcess } from "@holdfast/process";
import { DEFAULT_PARTITIONS, DEFAULT_POOL, subjectsOf, type Manifest, type Principal } from "@holdfast/protocol";
import {
  RuntimeNode,
  type ActorDefinition,
  type NodeEnding,
  type NodeProcess,
  type RuntimeSettings,
} from "@holdfast/runtime";
import { noCrashPoints, silentTelemetry, type CrashPoints, type Telemetry } from "@holdfast/runtime/ports";

/** How to reach NATS. */
export interface NatsOptions {
  /** `nats://host:port`, at least one. */
  readonly servers: readonly string[];
  readonly user?: string;
  readonly password?: string;
  /** Prefix of reply subjects; give each NATS user its own. */
  readonly inboxPrefix?: string;
  /** Limit for the first connect, ms; default 30 s. */
  readonly timeoutMs?: number;
}

export interface StartNodeOptions {
  readonly nats: NatsOptions;
  readonly namespace: string;
  /** Unique among live nodes; default: a random one. */
  readonly name?: string;
  /** Actor types of this node; as a function when their jobs use the node's connection. */
  readonly definitions: readonly ActorDefinition[] | ((context: NodeContext) => readonly ActorDefinition[]);
  /** Pools this node serves; default `d`. What is not in the namespace yet is added to it, with 32 partitions unless `layout` says otherwise. */
  readonly pools?: readonly string[];
  /** Share of partitions relative to the other nodes of a pool; default 1. */
  readonly weight?: number;
  /** What you call this build; shown by `holdfast fleet`. */
  readonly build?: string;
  /** Record formats this build reads; default: those of its codec. */
  readonly readableFormats?: readonly number[];
  /** Layout of the namespace; default one pool `d` with 32 partitions. Shards and the size of a pool are fixed when they are created. */
  readonly layout?: { readonly pools?: Readonly<Record<string, number>>; readonly shards?: number };
  readonly replicas?: number;
  readonly settings?: Partial<RuntimeSettings>;
  /** The process it lives in, for its planned restart; default: this one, without anybody who could acknowledge its end. */
  readonly process?: Partial<NodeProcess>;
  readonly telemetry?: Telemetry;
  readonly crashPoints?: CrashPoints;
}

/** What jobs and tools of a node may use of it. */
export interface NodeContext {
  readonly link: Link;
  readonly codec: Codec;
  readonly manifest: Manifest;
  /** Reads records and journals. */
  readonly read: NamespaceReader;
}

/** A running node. */
export interface Node {
  readonly name: string;
  readonly incarnation: string;
  readonly runtime: RuntimeNode;
  readonly context: NodeContext;
  /** Resolves when the node ends, or begins to, for a reason that is not its process's: let the process follow. */
  readonly ending: Promise<NodeEnding>;
  /** Planned leave: ownership moves at once, running jobs end here. */
  drain(): Promise<void>;
  /** Leave now. */
  stop(): Promise<void>;
}

/** What a node's runtime reads and writes through. */
export interface NodeWiring {
  readonly codec: Codec;
  readonly ports: NatsPorts;
}

/**
 * Starts an agent node: creates or opens the namespace, joins the fleet, takes partitions over.
 * @throws RuntimeFault HF-1003 when a machine cannot be made durable, HF-3004 when the name is taken, HF-4xxx for NATS
 */
export const startNode = (options: StartNodeOptions): Promise<Node> => composeNode(options, (wiring) => wiring);

/**
 * `startNode` with something put between the node's runtime and what it is wired to; what its jobs use stays as it is.
 * @throws as startNode
 */
export async function composeNode(
  options: StartNodeOptions,
  rewire: (wiring: NodeWiring) => NodeWiring,
): Promise<Node> {
  const random = createSystemRandom();
  const name = options.name ?? `n-${random.hex(4)}`;
  const telemetry = options.telemetry ?? silentTelemetry;
  const connectAs = (purpose: string): Promise<Link> =>
    connectNats({
      servers: options.nats.servers,
      user: options.nats.user,
      pass: options.nats.password,
      inboxPrefix: options.nats.inboxPrefix,
      timeoutMs: options.nats.timeoutMs,
      name: `holdfast-node-${name}${purpose}`,
      onStatus: ({ kind, ...facts }) => telemetry.warn(`nats.${kind}`, { ...facts, connection: `node${purpose}` }),
    });
  await using links = new AsyncDisposableStack();
  const opened = async (purpose: string): Promise<Link> =>
    links.adopt(await connectAs(purpose), (connected) => connected.close());
  const link = await opened("");
  const fleetLink = await opened("-leases");
  const ensure = (pools?: Readonly<Record<string, number>>): Promise<OpenNamespace> =>
    ensureNamespace(link, {
      ns: options.namespace,
      newGeneration: () => random.hex(4),
      shards: options.layout?.shards,
      pools,
      replicas: options.replicas,
    });
  const namespace = new LiveNamespace(link, await ensure(options.layout?.pools));
  const codec = createCodec({ ref: actorRefExtension, crc32: systemCrc32 });
  const ports = composeNatsPorts(link, namespace, {
    fleetLink,
    tokenOf: (bytes) => tokenOf(codec, bytes),
    onFault: (fault) => telemetry.error("nats.reader-stopped", { code: fault.code, reason: fault.message }),
    onUnreadable: (message) => telemetry.error("nats.unreadable", { ...message }),
  });
  const { manifest } = namespace;
  const pools = options.pools ?? [DEFAULT_POOL];
  const read = new NamespaceReader({ link, codec, subjects: subjectsOf(options.namespace), manifest });
  const context: NodeContext = { link, codec, manifest, read };
  const definitions = typeof options.definitions === "function" ? options.definitions(context) : options.definitions;
  const named = poolsNamedBy(definitions, pools).filter((pool) => namespace.pools[pool] === undefined);
  if (named.length > 0)
    namespace.replace(await ensure(Object.fromEntries(named.map((pool) => [pool, DEFAULT_PARTITIONS]))));
  const types = new Map(definitions.map(({ type, pool }) => [type, pool ?? DEFAULT_POOL]));
  const homes = await settleTypeHomes(link, options.namespace, types, () => random.hex(8));
  const runtime = new RuntimeNode({
    name,
    definitions,
    pools,
    homes,
    scheme: namespace,
    layoutChanged: () => namespace.refresh(),
    ...(options.weight !== undefined && { weight: options.weight }),
    ...(options.build !== undefined && { build: options.build }),
    ...(options.readableFormats !== undefined && { readableFormats: options.readableFormats }),
    ...rewire({ codec, ports }),
    textHash: systemTextHash,
    clock: systemClock,
    random,
    telemetry,
    crashPoints: options.crashPoints ?? noCrashPoints,
    ...(options.settings !== undefined && { settings: options.settings }),
    process: { ...thisProcess(), ...options.process },
  });
  await runtime.start();
  const open = links.move();
  const leave = async (how: () => Promise<void>): Promise<void> => {
    await how();
    await open.disposeAsync();
  };
  return {
    name,
    incarnation: runtime.incarnation,
    runtime,
    context,
    ending: runtime.ending,
    drain: () => leave(() => runtime.drain()),
    stop: () => leave(() => runtime.stop()),
  };
}

/** Pools a node serves, and those its actors and their children live in: messages for them need a place, also when nobody serves it. */
function poolsNamedBy(definitions: readonly ActorDefinition[], served: readonly string[]): readonly string[] {
  const named = definitions.flatMap(({ pool, childActors }) => [
    pool,
    ...Object.values(childActors ?? {}).map((child) => child.pool),
  ]);
  return [...new Set([...served, ...named.filter((pool) => pool !== undefined)])];
}

/** A stored value that nobody can read is not ours. */
function tokenOf(codec: Codec, bytes: Uint8Array): string | undefined {
  try {
    return codec.decodeHeader(bytes).token;
  } catch {
    return undefined;
  }
}

export interface CreateClientOptions {
  readonly nats: NatsOptions;
  readonly namespace: string;
  readonly principal: Principal;
  /** Pool of an actor type that no node has served yet, or to be sure; default: where its first node put it, then `d`. */
  readonly pools?: Readonly<Record<string, string>>;
  /** Messages that may wait for an answer at the same time, in all (1024) and to one partition (256); more are refused with HF-3020. */
  readonly window?: ClientWindow;
}

/** A client with a connection of its own. */
export interface Client extends AsyncDisposable {
  readonly holdfast: HoldfastClient;
  close(): Promise<void>;
}

/** @throws RuntimeFault HF-4001, HF-4005, HF-4007 */
export async function createClient(options: CreateClientOptions): Promise<Client> {
  const random = createSystemRandom();
  const link = await connectNats({
    servers: options.nats.servers,
    user: options.nats.user,
    pass: options.nats.password,
    inboxPrefix: options.nats.inboxPrefix,
    timeoutMs: options.nats.timeoutMs,
    name: `holdfast-client-${options.principal.kind}-${options.principal.id}`,
  });
  try {
    const holdfast = await HoldfastClient.open({
      link,
      codec: createCodec({ ref: actorRefExtension, crc32: systemCrc32 }),
      namespace: options.namespace,
      principal: options.principal,
      ...(options.pools !== undefined && { pools: options.pools }),
      ...(options.window !== undefined && { window: options.window }),
      randomHex: (bytes) => random.hex(bytes),
    });
    const close = async (): Promise<void> => {
      holdfast.close();
      await link.close();
    };
    return { holdfast, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await link.close();
    throw error;
  }
}

/** Reads public events, with a connection of its own and no right but that. */
export interface Subscriber extends AsyncDisposable {
  /** @see HoldfastClient.events */
  events(options: EventsOptions): AsyncGenerator<ReceivedEvent, void>;
  close(): Promise<void>;
}

/** @throws RuntimeFault HF-4001, HF-4007 */
export async function createSubscriber(options: Pick<CreateClientOptions, "nats" | "namespace">): Promise<Subscriber> {
  const { nats, namespace } = options;
  const link = await connectNats({
    servers: nats.servers,
    user: nats.user,
    pass: nats.password,
    inboxPrefix: nats.inboxPrefix,
    timeoutMs: nats.timeoutMs,
    name: "holdfast-subscriber",
  });
  const subjects = subjectsOf(namespace);
  const close = (): Promise<void> => link.close();
  return { events: (wanted) => readEvents(link, subjects, wanted), close, [Symbol.asyncDispose]: close };
}
