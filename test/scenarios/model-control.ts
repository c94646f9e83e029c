import { z } from "zod";

const SeenRequest = z.looseObject({
  at: z.number(),
  model: z.string(),
  lastUser: z.string(),
  blocked: z.boolean(),
  aborted: z.boolean(),
  answered: z.boolean(),
  idempotencyKey: z.string().optional(),
});
/** One request as the simulated model saw it; `at` is Unix time in ms. */
export type SeenRequest = Readonly<z.infer<typeof SeenRequest>>;

const Requests = z.object({ requests: z.array(SeenRequest) });
const Released = z.object({ released: z.number() });

/** The control side of a simulated model that runs as a process. */
export class ModelControl {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** Everything seen so far, oldest first. */
  async requests(): Promise<readonly SeenRequest[]> {
    const response = await fetch(`${this.#url}/control/requests`);
    return Requests.parse(await response.json()).requests;
  }

  /**
   * Waits until `count` requests are in a state.
   *
   * @throws Error with what was seen when it takes longer than `timeoutMs`
   */
  async wait(query: {
    readonly model: string;
    readonly state: "arrived" | "blocked" | "answered";
    readonly count: number;
    readonly match?: string;
    readonly timeoutMs?: number;
  }): Promise<readonly SeenRequest[]> {
    const { timeoutMs = 60_000, ...rest } = query;
    const asked = new URLSearchParams({ ...rest, count: String(rest.count), timeoutMs: String(timeoutMs) });
    const response = await fetch(`${this.#url}/control/wait?${asked.toString()}`);
    const { requests } = Requests.parse(await response.json());
    if (response.ok) return requests;
    throw new Error(
      `${query.model}: expected ${query.count} requests ${query.state}, seen ${JSON.stringify(requests)}`,
    );
  }

  /** Frees the requests whose last user message contains `match`, now and later. @returns how many were held */
  async release(match: string): Promise<number> {
    const response = await fetch(`${this.#url}/control/release`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ match }),
    });
    return Released.parse(await response.json()).released;
  }
}
