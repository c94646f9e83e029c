import {
  jetstream,
  jetstreamManager,
  type JetStreamClient,
  type JetStreamManager,
  type JsMsg,
} from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";

/** Where a namespace is stored, and with which rights it is read: those of a reader are enough. */
export interface ReadEvidenceOptions {
  readonly servers: readonly string[];
  readonly user: string;
  readonly password: string;
  readonly inboxPrefix: string;
  readonly namespace: string;
}

/** A stored message, copied out of the connection's buffers. */
export interface StoredMessage {
  readonly subject: string;
  readonly seq: number;
  readonly bytes: Uint8Array;
  readonly storedAtMs: number;
  readonly messageId: string;
}

/** The streams of a server, read with a connection of its own. */
export class StoredStreams {
  readonly names: readonly string[];
  readonly #js: JetStreamClient;
  readonly #jsm: JetStreamManager;

  private constructor(js: JetStreamClient, jsm: JetStreamManager, names: readonly string[]) {
    this.#js = js;
    this.#jsm = jsm;
    this.names = names;
  }

  /** Opens a connection for the time of `work`. */
  static async with<T>(options: ReadEvidenceOptions, work: (streams: StoredStreams) => Promise<T>): Promise<T> {
    const nc = await connect({
      servers: [...options.servers],
      user: options.user,
      pass: options.password,
      inboxPrefix: options.inboxPrefix,
      name: "holdfast-audit",
      noAsyncTraces: true,
    });
    try {
      const jsm = await jetstreamManager(nc);
      const names: string[] = [];
      for await (const name of jsm.streams.names()) names.push(name);
      return await work(new StoredStreams(jetstream(nc), jsm, names));
    } finally {
      await nc.close();
    }
  }

  /** Last sequence of a stream, and the server's time, Unix ms. */
  async position(stream: string): Promise<{ readonly lastSeq: number; readonly atMs: number }> {
    const { state, ts } = await this.#jsm.streams.info(stream);
    return { lastSeq: state.last_seq, atMs: Date.parse(ts ?? state.last_ts) };
  }

  /** Hands over everything that a stream holds, in order. What is written meanwhile may be among it. */
  async read(stream: string, take: (message: StoredMessage) => void): Promise<void> {
    const { state } = await this.#jsm.streams.info(stream);
    if (state.messages === 0) return;
    const consumer = await this.#js.consumers.get(stream);
    const messages = await consumer.consume({ idle_heartbeat: 1000, expires: 5000 });
    for await (const message of messages) {
      take(copyOf(message));
      // The last message may have been removed: what is still to come tells the end, not a sequence.
      if (message.info.pending === 0) break;
    }
    await messages.close();
  }
}

const copyOf = ({ subject, seq, data, headers, time }: JsMsg): StoredMessage => ({
  subject,
  seq,
  bytes: new Uint8Array(data),
  storedAtMs: time.getTime(),
  messageId: headers?.get("Nats-Msg-Id") ?? "",
});
