// Link: one connection to NATS as this project uses it.
//
// Owns: the connection, its request channel, who wants to know about disconnects.
// Does not own: streams, consumers, retries.
//
//   L1  after a disconnect every open request ends as `lost` and every listener is told before anything is sent again
//   L2  core publishes never throw and may be lost: the client drops them while it is not connected

import { createInbox, PermissionViolationError, type NatsConnection, type Subscription } from "@nats-io/transport-node";
import { pause } from "./pause.ts";
import { RequestChannel } from "./request-channel.ts";
import { isServerVersionAccepted } from "./server-version.ts";

/** What happened to a connection after it was made. Never holds credentials. */
export type LinkStatus =
  | { readonly kind: "connected"; readonly server: string; readonly version: string }
  | { readonly kind: "disconnected"; readonly server: string }
  | { readonly kind: "denied"; readonly operation: string; readonly subject: string }
  | { readonly kind: "serverTooOld"; readonly server: string; readonly version: string }
  | { readonly kind: "error"; readonly reason: string }
  | { readonly kind: "closed" };

const FLUSH_MS = 1000;

export interface CoreMessage {
  readonly subject: string;
  readonly reply: string | undefined;
  readonly bytes: Uint8Array;
}

export class Link {
  readonly nc: NatsConnection;
  readonly requests: RequestChannel;
  readonly inboxPrefix: string;
  readonly #onStatus: (status: LinkStatus) => void;
  readonly #disconnectListeners = new Set<() => void>();
  readonly #connectWaiters = new Set<() => void>();
  readonly #closing = new AbortController();
  readonly #watching: Promise<void>;
  #connected = true;

  constructor(nc: NatsConnection, inboxPrefix: string, onStatus: (status: LinkStatus) => void) {
    this.nc = nc;
    this.inboxPrefix = inboxPrefix;
    this.requests = new RequestChannel(nc, inboxPrefix);
    this.#onStatus = onStatus;
    this.#watching = this.#watchStatus();
  }

  get serverVersion(): string {
    return this.nc.info?.version ?? "unknown";
  }

  get isConnected(): boolean {
    return this.#connected;
  }

  /** Aborts when the link is closed for good. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  /** Largest payload plus headers the server takes, bytes. */
  get maxPayloadBytes(): number {
    return this.nc.info?.max_payload ?? 1024 * 1024;
  }

  /** Waits until connected. @returns false when `timeoutMs` passed, `signal` aborted or the link was closed */
  async whenConnected(timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    if (this.#connected) return true;
    const enough = new AbortController();
    const waiter = (): void => enough.abort();
    this.#connectWaiters.add(waiter);
    const ends = [enough.signal, this.#closing.signal, ...(signal === undefined ? [] : [signal])];
    await pause(timeoutMs, AbortSignal.any(ends));
    this.#connectWaiters.delete(waiter);
    return this.#connected;
  }

  /** @returns function that stops the notices */
  onDisconnect(listener: () => void): () => void {
    this.#disconnectListeners.add(listener);
    return () => this.#disconnectListeners.delete(listener);
  }

  /** Core message: never stored, may be lost (L2). */
  publish(subject: string, bytes: Uint8Array): void {
    if (!this.#connected) return;
    try {
      this.nc.publish(subject, bytes);
    } catch (error) {
      this.#onStatus({ kind: "error", reason: reasonOf(error) });
    }
  }

  /** Core subscription. `deliver` must not throw. @returns function that ends it */
  subscribe(subject: string, deliver: (message: CoreMessage) => void): () => void {
    const subscription: Subscription = this.nc.subscribe(subject, {
      callback: (error, message) => {
        if (error !== null) {
          this.#onStatus({ kind: "error", reason: error.message });
          return;
        }
        this.#guarded(() =>
          deliver({
            subject: message.subject,
            reply: message.reply === "" ? undefined : message.reply,
            bytes: message.data,
          }),
        );
      },
    });
    return () => subscription.unsubscribe();
  }

  /** A subject only this connection listens on, for answers. */
  newInbox(): string {
    return createInbox(this.inboxPrefix);
  }

  /** Closes within a second; what was published before is flushed when the server answers in that time. */
  async close(): Promise<void> {
    if (this.nc.isClosed()) return;
    this.#closing.abort();
    if (this.#connected) {
      const flushed = this.nc
        .flush()
        .catch((error: unknown) => this.#onStatus({ kind: "error", reason: reasonOf(error) }));
      const enough = new AbortController();
      await Promise.race([flushed, pause(FLUSH_MS, enough.signal)]);
      enough.abort();
    }
    await this.nc.close();
    await this.#watching;
  }

  async #watchStatus(): Promise<void> {
    for await (const status of this.nc.status()) {
      if (status.type === "disconnect") {
        this.#setConnected(false);
        this.#onStatus({ kind: "disconnected", server: status.server });
      } else if (status.type === "reconnect") this.#reconnected(status.server);
      else if (status.type === "error") this.#errorSeen(status.error);
    }
    this.#closing.abort();
    this.#setConnected(false);
    this.requests.close();
    this.#onStatus({ kind: "closed" });
  }

  #reconnected(server: string): void {
    const version = this.serverVersion;
    if (!isServerVersionAccepted(version)) this.#onStatus({ kind: "serverTooOld", server, version });
    this.#setConnected(true);
    this.#onStatus({ kind: "connected", server, version });
  }

  #errorSeen(error: Error): void {
    if (!(error instanceof PermissionViolationError)) {
      this.#onStatus({ kind: "error", reason: error.message });
      return;
    }
    if (error.operation === "publish") this.requests.publishDenied(error.subject);
    this.#onStatus({ kind: "denied", operation: error.operation, subject: error.subject });
  }

  #setConnected(connected: boolean): void {
    this.#connected = connected;
    this.requests.connectionChanged(connected);
    if (connected) {
      for (const waiter of this.#connectWaiters) waiter();
    } else {
      for (const listener of this.#disconnectListeners) listener();
    }
  }

  /** An exception inside a subscription callback would end the client's read loop without closing the connection. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#onStatus({ kind: "error", reason: reasonOf(error) });
    }
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
