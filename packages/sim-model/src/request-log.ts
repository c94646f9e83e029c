// RequestLog — which requests the server has seen, and which of them it holds.
// Owns: the list, the releases, the waiters.  Does not own: sockets, scripts.
//   S1 arrival-first      a request is listed before its script runs and before a byte is answered
//   S2 release-is-lasting a release frees the matching requests present and all that come later
//   S3 one-ending         a request ends at most once: answered, or aborted by its client; neither if the
//                         server itself broke the answer off

/** One request as the server saw it. Requests that were not valid are not listed. */
export type SeenRequest = {
  /** 1 for the first request of this server. */
  readonly number: number;
  /** Arrival, Unix time in milliseconds. */
  readonly at: number;
  readonly model: string;
  /** Text of the last user message; empty when there is none. */
  readonly lastUser: string;
  readonly messageCount: number;
  /** True while the answer is held until a release. */
  readonly blocked: boolean;
  /** The client went away before the answer was complete. */
  readonly aborted: boolean;
  /** The whole answer was handed to the operating system. */
  readonly answered: boolean;
  /** Value of the `idempotency-key` header, if it was sent. */
  readonly idempotencyKey?: string;
  /** Value of the `x-holdfast-attempt` header, if it was sent. */
  readonly holdfastAttempt?: string;
};

/** A state to wait for; every listed request has `arrived`. */
export type RequestState = "arrived" | "blocked" | "aborted" | "answered";

/** Which requests are meant: those whose last user message contains `match` (default: all). */
export type RequestQuery = {
  readonly match?: string;
  readonly model?: string;
  /** Default `arrived`. */
  readonly state?: RequestState;
};

/** The matching requests, oldest first; at least as many as asked for when `reached`. */
export type WaitResult = {
  readonly kind: "reached" | "timed-out";
  readonly requests: readonly SeenRequest[];
};

/** Keeps what the server has seen; see the invariants at the top of the file. */
export class RequestLog {
  readonly #nowMs: () => number;
  readonly #requests: SeenRequest[] = [];
  readonly #releases = new Set<string>();
  readonly #changed = new Set<() => void>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Lists a new request and returns it. */
  arrive(facts: Omit<SeenRequest, "number" | "at" | "blocked" | "aborted" | "answered">): SeenRequest {
    const request = {
      ...facts,
      number: this.#requests.length + 1,
      at: this.#nowMs(),
      blocked: false,
      aborted: false,
      answered: false,
    };
    this.#requests.push(request);
    this.#announce();
    return request;
  }

  /** How many requests up to this one had its model and its last user message, itself included. */
  attemptOf(request: SeenRequest): number {
    return this.#requests.filter(
      (other) => other.number <= request.number && other.model === request.model && other.lastUser === request.lastUser,
    ).length;
  }

  /** Resolves when the request is released (S2) or `signal` aborts; never rejects. */
  async hold(request: SeenRequest, signal: AbortSignal): Promise<void> {
    const isFree = () => signal.aborted || [...this.#releases].some((match) => request.lastUser.includes(match));
    if (isFree()) return;
    this.#update(request.number, { blocked: true });
    await this.#until(isFree, signal);
    this.#update(request.number, { blocked: false });
  }

  /**
   * Frees the requests whose last user message contains `match`, now and in the future.
   *
   * @returns how many were held and are freed by this call
   */
  release(match: string): number {
    const freed = this.list({ match, state: "blocked" }).length;
    this.#releases.add(match);
    this.#announce();
    return freed;
  }

  /** Records how a request ended (S3). */
  end(request: SeenRequest, ending: "answered" | "aborted"): void {
    const current = this.#requests[request.number - 1];
    if (current === undefined || current.answered || current.aborted) return;
    this.#update(request.number, { [ending]: true, blocked: false });
  }

  /** The requests meant by `query`, oldest first. */
  list(query: RequestQuery = {}): readonly SeenRequest[] {
    const { match, model, state = "arrived" } = query;
    return this.#requests.filter(
      (request) =>
        (match === undefined || request.lastUser.includes(match)) &&
        (model === undefined || request.model === model) &&
        (state === "arrived" || request[state]),
    );
  }

  /** Waits until at least `count` requests are in the state asked for, or `signal` aborts. */
  async waitFor(query: RequestQuery, count: number, signal: AbortSignal): Promise<WaitResult> {
    const isReached = () => this.list(query).length >= count;
    await this.#until(() => signal.aborted || isReached(), signal);
    return { kind: isReached() ? "reached" : "timed-out", requests: this.list(query) };
  }

  async #until(condition: () => boolean, signal: AbortSignal): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve) => {
      const check = () => {
        if (!condition()) return;
        this.#changed.delete(check);
        signal.removeEventListener("abort", check);
        resolve();
      };
      this.#changed.add(check);
      signal.addEventListener("abort", check);
    });
  }

  #update(number: number, change: Partial<SeenRequest>): void {
    const current = this.#requests[number - 1];
    if (current === undefined) return;
    // A copy, because callers of list() hold the old one as a value.
    this.#requests[number - 1] = { ...current, ...change };
    this.#announce();
  }

  #announce(): void {
    for (const check of this.#changed) check();
  }
}
