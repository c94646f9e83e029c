import { strict as assert } from "node:assert";
import type { SendResult } from "@holdfast/client";
import { parsePrincipalToken, type PlainEvent, type Principal } from "@holdfast/protocol";
import { createClient, type Client } from "holdfast";
import { z } from "zod";
import type { RowStage } from "./row-run.ts";

export const Refused = z.object({ kind: z.literal("refused"), code: z.string(), reason: z.string() });

/** Right after a death nobody may be there to apply it yet. */
export const PATIENT = { timeoutMs: 30_000 } as const;

/** Somebody else than the one whom the tests are. */
export async function as(stage: RowStage, kind: Principal["kind"], id: string): Promise<Client> {
  const { url, user, password } = stage.cluster.nats;
  return createClient({
    nats: { servers: [url], user, password },
    namespace: stage.fleet.namespace,
    principal: { kind, id, roles: [] },
  });
}

export const answer = (value: unknown, answerId = "a1") => ({ type: "answer", answerId, value });

/** A refused reply, as `<code> <reason>`. */
export async function refusal(reply: Promise<unknown>): Promise<string> {
  const { code, reason } = Refused.parse(await reply);
  return `${code} ${reason}`;
}

/** Those who answer in the test of one row, by their tokens (`person-anna`), each with a client of their own. */
export class People {
  readonly #stage: RowStage;
  readonly #clients = new Map<string, Promise<Client>>();

  constructor(stage: RowStage) {
    this.#stage = stage;
  }

  async send(token: string, question: string, event: PlainEvent): Promise<SendResult> {
    const { kind, id } = parsePrincipalToken(token);
    const client = this.#clients.get(token) ?? as(this.#stage, kind, id);
    this.#clients.set(token, client);
    return (await client).holdfast.send(question, event, PATIENT);
  }

  /** Says something that is to be applied. */
  async settle(token: string, question: string, event: PlainEvent): Promise<void> {
    const sent = await this.send(token, question, event);
    assert.equal(sent.kind, "applied", `${token}: ${JSON.stringify(sent)}`);
  }

  /** Says something that is to be refused, with the same words each time. */
  async areRefused(tokens: readonly string[], question: string, event: PlainEvent, why: RegExp): Promise<void> {
    for (const token of tokens) assert.match(await refusal(this.send(token, question, event)), why, token);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients.values()) await (await client).close();
  }
}
