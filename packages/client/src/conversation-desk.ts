import {
  AgentDefinition,
  Budget,
  isTerminal,
  ModelReply,
  RuntimeFault,
  type JournalEntry,
  type OnBehalf,
} from "@holdfast/protocol";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { faultOfFailure, faultOfRefusal } from "./conversation-fault.ts";
import type { HoldfastClient } from "./holdfast-client.ts";
import type { SendResult } from "./message-sender.ts";

/** What a conversation is started with. */
export interface ConversationStart {
  readonly agent: AgentDefinition;
  /** Agents it may come to delegate to, by name. */
  readonly agents?: Readonly<Record<string, AgentDefinition>>;
  readonly title?: string;
  readonly tags?: Readonly<Record<string, string>>;
  /** First message. */
  readonly prompt?: string;
  /** Who pays for its model calls, and for those of all below it. */
  readonly budget?: z.input<typeof Budget>;
}

export interface ForkOptions {
  /** Id of the new conversation; the same id finds the same fork. */
  readonly as: string;
  /** Last revision it shares with its origin; default: the present one. */
  readonly rev?: number;
  /** Its first message of its own. */
  readonly prompt?: string;
  readonly title?: string;
  readonly onBehalf?: OnBehalf;
}

/** What a model said last without calling anything. */
export interface FinalAnswer {
  readonly text: string;
  /** Revision of the conversation that took it in. */
  readonly rev: number;
}

const Origin = z.looseObject({
  agent: AgentDefinition,
  agents: z.record(z.string(), AgentDefinition).default({}),
  title: z.string().optional(),
  tags: z.record(z.string(), z.string()).default({}),
  budget: Budget.optional(),
  fork: z.looseObject({ conversation: z.string(), rev: z.number() }).optional(),
  isDeleted: z.boolean().optional(),
});
const Output = z.looseObject({
  outcome: z.string(),
  text: z.string().optional(),
  failure: z.looseObject({ cause: z.string(), code: z.string(), message: z.string() }).optional(),
});

const TYPE = "conversation";
const LOOK_MS = 50;
const MAX_LOOK_MS = 500;

/**
 * Conversations by their ids: what is more than one message to one actor.
 *
 * Owns: nothing but the order of its messages. Does not own: what a conversation does with them (its machine).
 *   K1 a fork is remembered by its origin before it begins: what it shares stays as long as it lives
 *   K2 a question aside writes nothing to the conversation it is about
 *   K3 what comes of a conversation is paid for by who pays for it
 */
export class ConversationDesk {
  readonly #holdfast: HoldfastClient;
  readonly #randomHex: (bytes: number) => string;

  constructor(holdfast: HoldfastClient, randomHex: (bytes: number) => string) {
    this.#holdfast = holdfast;
    this.#randomHex = randomHex;
  }

  /** Starts a conversation, or finds it. @throws RuntimeFault HF-3012 when the id is taken by one with other content */
  async start(id: string, input: ConversationStart, onBehalf?: OnBehalf): Promise<SendResult> {
    return accepted(id, await this.#holdfast.start(TYPE, id, input, { ...(onBehalf !== undefined && { onBehalf }) }));
  }

  /**
   * Sends a message; one id is taken once.
   * @param run  false: at rest it opens no turn
   * @throws RuntimeFault HF-3001, HF-3005 when 64 wait, HF-3006 when the id was used for another text, HF-3009
   */
  async send(
    id: string,
    text: string,
    { messageId, run }: { readonly messageId: string; readonly run?: boolean },
  ): Promise<SendResult> {
    const event = { type: "userMessage", messageId, text, ...(run !== undefined && { run }) };
    return accepted(id, await this.#holdfast.send({ type: TYPE, id }, event, { idempotencyKey: messageId }));
  }

  /**
   * A new conversation that goes on from a place in this one, also when this one has ended. What they share is not copied.
   * @throws RuntimeFault HF-3001, HF-3009 when it was deleted, or ended so long ago that its content is gone, HF-1001 when it has no such revision, HF-3012 when the id is taken, HF-5202 when it has too many forks
   */
  async fork(id: string, { as, prompt, title, onBehalf, ...place }: ForkOptions): Promise<SendResult> {
    const found = await this.#origin(id);
    const { key, origin } = found;
    if (origin.isDeleted === true) throw goneFault(id);
    const before = await this.#tryOrigin(as);
    const again = before?.origin.fork?.conversation === key ? before.origin.fork.rev : undefined;
    const fork = await this.#placeIn(id, found, place.rev ?? again);
    const { agent, agents, tags, budget } = origin;
    const named = title ?? origin.title;
    const pin = { type: "forked", fork: this.#holdfast.key(TYPE, as) };
    accepted(id, await this.#holdfast.send(key, pin)); // K1
    const input = {
      agent,
      agents,
      tags,
      fork,
      ...paidLike(budget), // K3
      ...(named !== undefined && { title: named }),
      ...(prompt !== undefined && { prompt }),
    };
    return accepted(as, await this.#holdfast.start(TYPE, as, input, { ...(onBehalf !== undefined && { onBehalf }) }));
  }

  /**
   * Asks the agent something about a conversation, at any time, and leaves the conversation as it is (K2).
   * @param askId  the same id has the same answer
   * @returns the answer
   * @throws RuntimeFault HF-3001, HF-4008 when it takes longer than `timeoutMs`, or the code of what went wrong
   */
  async askAside(
    id: string,
    question: string,
    {
      askId = `aside-${this.#randomHex(6)}`,
      timeoutMs = 120_000,
    }: { readonly askId?: string; readonly timeoutMs?: number } = {},
  ): Promise<string> {
    const before = await this.#tryOrigin(askId);
    const found = await this.#origin(id);
    const fork = await this.#placeIn(id, found, before?.origin.fork?.rev);
    const agent = before?.origin.agent ?? { ...found.origin.agent, tools: [], delegates: [] };
    const { budget } = before?.origin ?? found.origin;
    const input = { agent, fork, once: true, prompt: question, ...paidLike(budget) }; // K3
    accepted(askId, await this.#holdfast.start(TYPE, askId, input));
    return this.#answerOf(askId, timeoutMs);
  }

  /** The last answer of the agent, whole; undefined when there is none yet. @throws RuntimeFault HF-3001 */
  async finalAnswer(id: string): Promise<FinalAnswer | undefined> {
    const { key, rev: present } = await this.#origin(id);
    const entries = await this.#holdfast.read.journalThrough(key, present);
    for (const { rev, event } of entries.toReversed()) {
      const text = answerIn(event);
      if (text !== undefined) return { rev, text };
    }
    return undefined;
  }

  async #tryOrigin(id: string) {
    const key = this.#holdfast.key(TYPE, id);
    const actor = await this.#holdfast.read.actor(key);
    if (actor === undefined) return undefined;
    const { record } = actor;
    const origin = Origin.safeParse(record.snapshot.context).data;
    const { genesis, rev } = record;
    return origin && { key, genesis, rev, origin };
  }

  async #origin(id: string) {
    const found = await this.#tryOrigin(id);
    if (found !== undefined) return found;
    if ((await this.#holdfast.read.header(this.#holdfast.key(TYPE, id))) !== undefined) throw goneFault(id);
    throw new RuntimeFault("HF-3001", `Conversation ${id}: there is none. "holdfast conversation list" shows all.`);
  }

  async #placeIn(
    id: string,
    { key, genesis, rev: present }: { readonly key: string; readonly genesis: string; readonly rev: number },
    rev: number = present,
  ) {
    if (rev < 1 || rev > present)
      throw new RuntimeFault("HF-1001", `Conversation ${id}: revision ${rev} is none of its ${present}. Name one.`);
    const entries = await this.#holdfast.read.journalThrough(key, rev);
    return { conversation: key, genesis, rev, isUnanswered: isUnanswered(entries.filter((entry) => entry.rev <= rev)) };
  }

  async #answerOf(id: string, timeoutMs: number): Promise<string> {
    const key = this.#holdfast.key(TYPE, id);
    const untilMs = performance.now() + timeoutMs;
    for (let lookMs = LOOK_MS; performance.now() < untilMs; lookMs = Math.min(MAX_LOOK_MS, lookMs * 2)) {
      const header = await this.#holdfast.read.header(key);
      if (header !== undefined && isTerminal(header.status)) {
        const output = Output.safeParse((await this.#holdfast.read.actor(key))?.record.snapshot.output).data;
        if (output?.outcome === "answered") return output.text ?? "";
        throw faultOfFailure(id, output?.failure);
      }
      await delay(lookMs);
    }
    throw new RuntimeFault("HF-4008", `Question ${id}: no answer within ${timeoutMs} ms. Ask again under the same id.`);
  }
}

const paidLike = (budget: Budget | undefined): { readonly budget?: Budget } => (budget === undefined ? {} : { budget });

const goneFault = (id: string): RuntimeFault =>
  new RuntimeFault("HF-3009", `Conversation ${id}: it has ended, and what it held is gone. Start a new one.`);

/** @throws RuntimeFault with the code of the refusal */
function accepted(id: string, result: SendResult): SendResult {
  if (result.kind === "refused") throw faultOfRefusal(id, result);
  return result;
}

const MODEL_DONE = /^xstate\.done\.actor\.model-/;

function answerIn(event: JournalEntry["event"]): string | undefined {
  const reply = MODEL_DONE.test(event.type) ? ModelReply.safeParse(event["output"]).data : undefined;
  return reply === undefined || reply.toolCalls.length > 0 || reply.text.trim() === "" ? undefined : reply.text;
}

/** Whether the last thing that was said to the agent has no answer of its yet. */
function isUnanswered(entries: readonly JournalEntry[]): boolean {
  const isQuestion = ({ event }: JournalEntry): boolean =>
    event.type === "userMessage" || (event.type === "xstate.init" && PROMPTED.safeParse(event["input"]).success);
  const asked = entries.findLastIndex(isQuestion);
  return asked >= 0 && entries.findLastIndex(({ event }) => answerIn(event) !== undefined) < asked;
}

const PROMPTED = z.looseObject({ prompt: z.string() });
