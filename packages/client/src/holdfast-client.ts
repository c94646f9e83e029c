import type { Codec } from "@holdfast/codec";
import { openNamespace, type Link } from "@holdfast/jetstream";
import { actorKey, DEFAULT_POOL, subjectsOf, type Manifest, type PlainEvent, type Principal } from "@holdfast/protocol";
import type { ClientWindow } from "./busy-gate.ts";
import { MessageSender, type SendOptions, type SendResult } from "./message-sender.ts";
import { NamespaceReader } from "./namespace-reader.ts";

export interface HoldfastClientOptions {
  readonly link: Link;
  readonly codec: Codec;
  readonly namespace: string;
  readonly principal: Principal;
  /** Pool of each actor type that does not live in the default pool. */
  readonly pools?: Readonly<Record<string, string>>;
  /** How much of this client may be unanswered at the same time. */
  readonly window?: ClientWindow;
  readonly randomHex: (bytes: number) => string;
}

/** Sends to actors and reads what is stored about them. */
export class HoldfastClient {
  readonly manifest: Manifest;
  readonly read: NamespaceReader;
  readonly #options: HoldfastClientOptions;
  readonly #sender: MessageSender;

  private constructor(options: HoldfastClientOptions, manifest: Manifest) {
    this.#options = options;
    this.manifest = manifest;
    const { link, codec, principal, randomHex } = options;
    const subjects = subjectsOf(options.namespace);
    this.read = new NamespaceReader({ link, codec, subjects, manifest });
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
    return new HoldfastClient(options, manifest);
  }

  /** Version of the NATS server this client is connected to. */
  get serverVersion(): string {
    return this.#options.link.serverVersion;
  }

  /** Address of an actor by type and id. @throws RuntimeFault HF-1002 */
  key(type: string, id: string): string {
    return actorKey(this.manifest, this.#options.pools?.[type] ?? DEFAULT_POOL, type, id);
  }

  /** Starts an actor, or finds it started: `ignored` then. */
  start(type: string, id: string, input: unknown, options?: SendOptions): Promise<SendResult> {
    return this.#sender.send(this.key(type, id), { kind: "start", input }, options);
  }

  /** Sends an event to an actor by key, or by type and id. */
  send(
    target: string | { readonly type: string; readonly id: string },
    event: PlainEvent,
    options?: SendOptions,
  ): Promise<SendResult> {
    const key = typeof target === "string" ? target : this.key(target.type, target.id);
    return this.#sender.send(key, { kind: "send", event }, options);
  }

  close(): void {
    this.#sender.close();
  }
}
