// Managed NATS — one nats-server that belongs to this process.
// Owns: the process, its configuration file, its log, the claim on its store. Does not own: the binary, streams and buckets, connections.
//   N1 loopback       it listens on 127.0.0.1 only, and nobody gets in without one of its passwords
//   N2 secret-file    passwords exist in memory and in a file of mode 0600; never on a command line, in a log or in a fault
//   N3 one-writer     two servers never run on one store
//   N4 same-address   once started it keeps its port, also over restart()
//   N5 no-orphan      it dies with this process (tied-child.ts)
import type { DurabilityClass } from "./server-config.ts";
import { launchServer, type LaunchedServer, type LaunchOptions } from "./launch-server.ts";
import { NatsServerFault } from "./nats-server-fault.ts";
import { passwordOf, type NatsUserName } from "./permissions.ts";
import { claimStore, type StoreClaim } from "./store-claim.ts";
import type { ChildExit } from "./tied-child.ts";
import { prepareLaunch, type StartManagedNatsOptions } from "./start-options.ts";
import { setTimeout as delay } from "node:timers/promises";

export interface NatsCredentials {
  readonly user: NatsUserName;
  readonly password: string;
}

const STOP_TIMEOUT_MS = 10_000;
const PORT_RETRY_MS = 50;

/**
 * Starts a nats-server on loopback and waits until it serves JetStream. Prints nothing: the returned facts are for the caller to print.
 *
 * @throws NatsServerFault HF-8002 when the binary is too old, HF-8003 when it did not come up or its store is in use, HF-8004 when the given port
 *         is taken; the reason of `signal` when it is aborted meanwhile
 */
export async function startManagedNats(options: StartManagedNatsOptions): Promise<ManagedNats> {
  const { launch, port } = await prepareLaunch(options);
  const claim = await claimStore(launch.config.storeDir);
  try {
    const server = await launchServer(launch, port, options.signal);
    return new ManagedNats(launch, claim, server);
  } catch (error) {
    await claim.release();
    throw error;
  }
}

/** A running, stopped or killed server. Its operations run one after another. */
export class ManagedNats {
  readonly #launch: LaunchOptions;
  #claim: StoreClaim | undefined;
  #server: LaunchedServer;
  #last: Promise<unknown> = Promise.resolve();

  /** Use {@link startManagedNats}. */
  constructor(launch: LaunchOptions, claim: StoreClaim, server: LaunchedServer) {
    this.#launch = launch;
    this.#claim = claim;
    this.#server = server;
  }

  /** Address without credentials: fit for logs. */
  get url(): string {
    return `nats://127.0.0.1:${this.#server.port}`;
  }
  get port(): number {
    return this.#server.port;
  }
  /** Of the server itself; another one after restart(). */
  get pid(): number {
    return this.#server.child.pid;
  }
  get version(): string {
    return this.#server.version;
  }
  get durabilityClass(): DurabilityClass {
    return this.#launch.config.durabilityClass;
  }
  get binary(): string {
    return this.#launch.binary;
  }
  get storeDir(): string {
    return this.#launch.config.storeDir;
  }
  get logFile(): string {
    return this.#launch.config.logFile;
  }
  /** How the process that runs now ends, or how the last one ended. */
  get exited(): Promise<ChildExit> {
    return this.#server.child.exited;
  }
  /** The user of agent nodes. */
  get user(): NatsUserName {
    return "node";
  }
  /** A secret (N2). */
  get password(): string {
    return this.#launch.config.passwords.node;
  }
  /** Secrets (N2). Connect with the inbox prefix `inboxPrefixOf(user)`. @throws RuntimeFault HF-1002 for a seat that is not there */
  credentials(user: NatsUserName): NatsCredentials {
    return { user, password: passwordOf(this.#launch.config, user) };
  }

  /** Asks it to end and waits; kills it when it has not ended after `timeoutMs` (default 10,000). Data stays in the store. */
  stop(options: { readonly timeoutMs?: number } = {}): Promise<ChildExit> {
    return this.#exclusively(() => this.#end("SIGTERM", options.timeoutMs ?? STOP_TIMEOUT_MS));
  }

  /** SIGKILL, as a crash would; resolves when it is gone. */
  kill(): Promise<ChildExit> {
    return this.#exclusively(() => this.#end("SIGKILL", STOP_TIMEOUT_MS));
  }

  /**
   * Starts it again on the same store and port (N4), ending it first when it runs.
   *
   * @throws like {@link startManagedNats}
   */
  restart(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    return this.#exclusively(async () => {
      await this.#end("SIGTERM", STOP_TIMEOUT_MS);
      this.#claim = await claimStore(this.#launch.config.storeDir);
      try {
        this.#server = await this.#relaunch(options.signal);
      } catch (error) {
        await this.#releaseClaim();
        throw error;
      }
    });
  }

  /** A client that keeps dialling the dead port can take it for a moment by connecting to itself, so a taken port is tried again. */
  async #relaunch(signal: AbortSignal | undefined): Promise<LaunchedServer> {
    const deadline = performance.now() + this.#launch.startTimeoutMs;
    for (;;) {
      try {
        return await launchServer(this.#launch, this.#server.port, signal);
      } catch (error) {
        const isTaken = error instanceof NatsServerFault && error.code === "HF-8004";
        if (!isTaken || performance.now() > deadline) throw error;
        await delay(PORT_RETRY_MS);
      }
    }
  }

  async #end(signal: "SIGTERM" | "SIGKILL", timeoutMs: number): Promise<ChildExit> {
    const { child } = this.#server;
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    const exit = await child.exited.finally(() => clearTimeout(timer));
    await this.#releaseClaim();
    return exit;
  }

  async #releaseClaim(): Promise<void> {
    const claim = this.#claim;
    this.#claim = undefined;
    await claim?.release();
  }

  #exclusively<Result>(operation: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(operation, operation);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
