import { createServer, type Server, type ServerResponse } from "node:http";

/** Whoever waits for an answer of the desk. */
interface Visitor {
  readonly kind: string;
  readonly key: string;
  readonly response: ServerResponse;
}

/**
 * The place outside where jobs are done: it answers when it is open, and counts who is there at the same time.
 *
 * Owns: the counts, as seen from outside of the nodes. Does not own: who may come.
 */
export class CountingDesk {
  readonly url: string;
  /** Kind → most that were there at the same time; `all` for all kinds together. */
  readonly highest = new Map<string, number>();
  /** Key of a job → attempts. */
  readonly attempts = new Map<string, number>();
  readonly #server: Server;
  readonly #present = new Set<Visitor>();
  #isOpen = false;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.url = `http://127.0.0.1:${port}`;
    server.on("request", (request, response) => {
      const [, kind = "", key = ""] = (request.url ?? "").split("/");
      request.resume();
      this.#arrive({ kind, key: decodeURIComponent(key), response });
    });
  }

  static async start(): Promise<CountingDesk> {
    const server = createServer({ keepAliveTimeout: 60_000 });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("the desk has no port");
    return new CountingDesk(server, address.port);
  }

  get present(): number {
    return this.#present.size;
  }

  /** Answers those who wait, and everybody who comes from now on. */
  open(): void {
    this.#isOpen = true;
    for (const visitor of this.#present) visitor.response.end("done");
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #arrive(visitor: Visitor): void {
    this.#present.add(visitor);
    this.attempts.set(visitor.key, (this.attempts.get(visitor.key) ?? 0) + 1);
    this.#count("all", this.#present.size);
    this.#count(visitor.kind, [...this.#present].filter(({ kind }) => kind === visitor.kind).length);
    // Also when the one who came was killed.
    visitor.response.once("close", () => this.#present.delete(visitor));
    if (this.#isOpen) visitor.response.end("done");
  }

  #count(kind: string, present: number): void {
    this.highest.set(kind, Math.max(this.highest.get(kind) ?? 0, present));
  }
}
