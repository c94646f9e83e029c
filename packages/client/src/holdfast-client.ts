import type { Codec } from "@holdfast/codec";
import { openNamespace, publishStored, readTypeHomes, type Link } from "@holdfast/jetstream";
import {
  actorKey,
  DEFAULT_POOL,
  principalToken,
  RuntimeFault,
  subjectsOf,
  type DrainRequest,
  type JournalEntry,
  type Manifest,
  type OnBehalf,
  type PlainEvent,
  type Principal,
} from "@holdfast/protocol";
import type { ClientWindow } from "./busy-gate.ts";
import { ConversationDesk } from "./conversation-desk.ts";
import { MessageSender, type SendOptions, type SendResult } from "./message-sender.ts";
import { foldDelegations, type Delegation } from "./family/delegations.ts";
import type { FamilyEntry } from "./family/family-entry.ts";
import { readFamily, type FamilyOptions } from "./family/read-family.ts";
import { readEvents, type EventsOptions, type ReceivedEvent } from "./events/read-events.ts";
import { PanicDesk } from "./panic-desk.ts";
import { RestartDesk } from "./restart-desk.ts";
import { StuckDesk } from "./stuck-desk.ts";
import { NamespaceReader } from "./namespace-reader.ts";
import { WalletDesk } from "./wallets/wallet-desk.ts";
import { WaitDesk } from "./waits/wait-desk.ts";

export interface HoldfastClientOptions {
  readonly link: Link;
  readonly codec: Codec;
  readonly namespace: string;
  readonly principal: Principal;
  /** Pool of actor types that no node has served yet; of the others the namespace knows it. */
  readonly pools?: Readonly<Record<string, string>>;
  /** How much of this client may be unanswered at the same time. */
  readonly window?: ClientWindow;
  readonly randomHex: (bytes: number) => string;
}

export interface StartOptions extends SendOptions {
  /** For whom; shown in lists as `user` and `tenant`, handed on to its children. A person starts for itself only. */
  readonly onBehalf?: OnBehalf;
}

/** Sends to actors and reads what is stored about them. */
export class HoldfastClient {
  readonly read: NamespaceReader;
  readonly conversations: ConversationDesk;
  readonly wallets: WalletDesk;
  /** Questions to people. */
  readonly waits: WaitDesk;
  /** What is stuck, and what an operator can do about it; needs an operator's permissions. */
  readonly stuck: StuckDesk;
  /** Stops the whole fleet, and lifts that; needs an operator's permissions. */
  readonly panic: PanicDesk;
  /** Planned restarts: what they would do, asking for one, acknowledging one; needs an operator's permissions. */
  readonly restarts: RestartDesk;
  readonly #options: HoldfastClientOptions;
  readonly #sender: MessageSender;
  #homes: ReadonlyMap<string, string>;
  #manifest: Manifest;

  private constructor(options: HoldfastClientOptions, manifest: Manifest, homes: ReadonlyMap<string, string>) {
    this.#options = options;
    this.#manifest = manifest;
    this.#homes = homes;
    const { link, codec, principal, randomHex } = options;
    const subjects = subjectsOf(options.namespace);
    this.read = new NamespaceReader({ link, codec, subjects, manifest });
    this.stuck = new StuckDesk({ link, codec, subjects, manifest, principal, randomHex, read: this.read });
    this.panic = new PanicDesk({ link, subjects, principal, randomHex, read: this.read });
    this.restarts = new RestartDesk({ link, subjects, principal, randomHex, read: this.read, stuck: this.stuck });
    this.conversations = new ConversationDesk(this, randomHex);
    this.wallets = new WalletDesk(this);
    this.waits = new WaitDesk({
      link,
      codec,
      subjects,
      manifest: () => this.#manifest,
      keyOf: (id) => this.key("ownerWait", id),
      exists: async (key) => (await this.read.header(key)) !== undefined,
      send: (key, event, sendOptions) => this.send(key, event, sendOptions),
    });
    this.#sender = new MessageSender({
      link,
      codec,
      subjects,
      principal,
      randomHex,
      window: options.window ?? {},
      readHeader: (key) => this.read.header(key),
    });
  }

  /** @throws RuntimeFault HF-4005 when the namespace does not exist */
  static async open(options: HoldfastClientOptions): Promise<HoldfastClient> {
    const { manifest } = await openNamespace(options.link, options.namespace);
    return new HoldfastClient(options, manifest, await readTypeHomes(options.link, options.namespace));
  }

  /** Layout of the namespace as last read. */
  get manifest(): Manifest {
    return this.#manifest;
  }

  /** Version of the NATS server this client is connected to. */
  get serverVersion(): string {
    return this.#options.link.serverVersion;
  }

  /**
   * Address of an actor by type and id. The pool is the one that the namespace knows for the type, as this client last read it.
   * @throws RuntimeFault HF-1002
   */
  key(type: string, id: string): string {
    return actorKey(this.manifest, this.#poolOf(type) ?? DEFAULT_POOL, type, id);
  }

  /** Starts an actor, or finds it started: `ignored` then, or refused with HF-3012 when it was started with another input. */
  async start(type: string, id: string, input: unknown, options: StartOptions = {}): Promise<SendResult> {
    await this.#learn(type);
    const { onBehalf } = options;
    const body = { kind: "start", input, ...(onBehalf !== undefined && { onBehalf }) } as const;
    return this.#sender.send(this.key(type, id), body, options);
  }

  /** Sends an event to an actor by key, or by type and id. */
  async send(
    target: string | { readonly type: string; readonly id: string },
    event: PlainEvent,
    options?: SendOptions,
  ): Promise<SendResult> {
    if (typeof target !== "string") await this.#learn(target.type);
    const key = typeof target === "string" ? target : this.key(target.type, target.id);
    return this.#sender.send(key, { kind: "send", event }, options);
  }

  /**
   * Public events in stored order, each once; begin again at a stored cursor and nothing is missed or repeated.
   * @throws RuntimeFault HF-1001, HF-4006, HF-4007, HF-4008, HF-4009 while it is iterated
   */
  events(options: EventsOptions): AsyncGenerator<ReceivedEvent, void> {
    return readEvents(this.#options.link, subjectsOf(this.#options.namespace), options);
  }

  /**
   * Every macrostep of an actor and of all below it in one order, each once; behind a cursor it goes on without a gap.
   * @throws RuntimeFault HF-1001, HF-2001, HF-2002, HF-3001, HF-4006, HF-4007, HF-4008 while it is iterated
   */
  family(options: FamilyOptions): AsyncGenerator<FamilyEntry, void> {
    const { link, codec, namespace } = this.#options;
    const subjects = subjectsOf(namespace);
    const header = (key: string) => this.read.header(key);
    return readFamily({ link, codec, subjects, manifest: () => this.#manifest, header }, options);
  }

  /** What became of every call of a conversation and of those below it, as stored now. @throws as `family` */
  async delegations(root: string, signal?: AbortSignal): Promise<readonly Delegation[]> {
    const entries: JournalEntry[] = [];
    for await (const item of this.family({ root, signal })) if (item.kind !== "absent") entries.push(item.entry);
    return foldDelegations(entries);
  }

  #poolOf(type: string): string | undefined {
    return this.#options.pools?.[type] ?? this.#homes.get(type);
  }

  /** Of a type that nobody knew when this client was opened, or whose pool came later, it asks again. */
  async #learn(type: string): Promise<void> {
    const pool = this.#poolOf(type);
    if (pool !== undefined && this.#manifest.pools[pool] !== undefined) return;
    const { link, namespace } = this.#options;
    this.#homes = await readTypeHomes(link, namespace);
    if (this.#manifest.pools[this.#poolOf(type) ?? DEFAULT_POOL] !== undefined) return;
    this.#manifest = (await openNamespace(link, namespace)).manifest;
  }

  /**
   * Asks a live node to leave as planned. It obeys when it reads that, and then says `left` in its heartbeat.
   * @returns the incarnation that was asked
   * @throws RuntimeFault HF-3030 when no live node has the name, HF-4007 without the right, HF-4008 when nobody knows whether it was stored
   */
  async askToLeave(node: string): Promise<string> {
    const { link, namespace, principal } = this.#options;
    const { nodes } = await this.read.overview();
    const found = nodes.find(({ name, state }) => name === node && state !== "left" && state !== "silent");
    if (found === undefined) {
      throw new RuntimeFault(
        "HF-3030",
        `Node ${node}: no live node has this name. "holdfast fleet" shows all of them.`,
        { facts: { node } },
      );
    }
    const { incarnation } = found;
    const request: DrainRequest = { v: 1, node, incarnation, by: principalToken(principal) };
    const stored = await publishStored(link, {
      subject: `$KV.${subjectsOf(namespace).fleetBucket}.drain.${node}`,
      bytes: new TextEncoder().encode(JSON.stringify(request)),
    });
    if (stored.kind === "accepted") return incarnation;
    throw new RuntimeFault(
      stored.kind === "refused" ? stored.code : "HF-4008",
      `Request to node ${node}: ${stored.kind} (${stored.reason}). Ask again.`,
      { facts: { node } },
    );
  }

  close(): void {
    this.#sender.close();
  }
}
