import { strict as assert } from "node:assert";
import { agentNamed, ASK_OWNER, defineAgent } from "@holdfast/agents";
import type { ConversationStart } from "@holdfast/client";
import { OwnerWaitContext } from "@holdfast/machines";
import { waitUntil } from "../harness/wait-until.ts";
import { steps, type Call } from "./row-agents.ts";
import type { RowStage } from "./row-run.ts";
import { RowTalk } from "./row-talk.ts";

/** A call that asks a person. */
export const ask = (question: string, more: Readonly<Record<string, unknown>> = {}): Call => ({
  name: "ask_owner",
  arguments: { question, ...more },
});

/** A puppet that may ask a person. */
export const asker = defineAgent({ name: "asker", model: "puppet", tools: [ASK_OWNER] });

const SURVEY = { ...agentNamed("surveyor"), prompt: "Survey the documents in ." };

/** A conversation that asks one question; by default in which order a report shall list two documents. */
export class Asking {
  readonly talk: RowTalk;
  readonly #stage: RowStage;

  constructor(stage: RowStage, id: string) {
    this.talk = new RowTalk(stage, id);
    this.#stage = stage;
  }

  /** @returns key of the question, once it stands and is all that is waited for */
  async begin(input: ConversationStart = SURVEY): Promise<string> {
    await this.#stage.holdfast.conversations.start(this.talk.id, input);
    const question = await this.question("open");
    await waitUntil(`the answer to ${this.talk.id} is waited for`, async () => {
      const context = (await this.#stage.holdfast.read.actor(question))?.record.snapshot.context;
      return OwnerWaitContext.parse(context).isAwaited === true;
    });
    return question;
  }

  /** A puppet that asks. @returns key of the question, once it stands */
  ask(...asked: Parameters<typeof ask>): Promise<string> {
    return this.begin({ agent: asker, prompt: steps([ask(...asked)]) });
  }

  question(status: string): Promise<string> {
    return waitUntil(
      `the question of ${this.talk.id} is ${status}`,
      async () => {
        const calls = await this.#stage.holdfast.delegations(this.talk.key);
        const key = calls.find(({ src }) => src === "ownerWait")?.key;
        const header = key === undefined ? undefined : await this.#stage.holdfast.read.header(key);
        return [header?.list["status"], header?.list["outcome"]].includes(status) && key;
      },
      { timeoutMs: 60_000 },
    );
  }

  reply(question: string, answerId: string, value: string) {
    return this.#stage.holdfast.send(question, { type: "answer", answerId, value });
  }

  /** The one result of the question, as its conversation has it. */
  async result(): Promise<string> {
    await waitUntil(
      `the result of ${this.talk.id} is applied`,
      async () => {
        const calls = await this.#stage.holdfast.delegations(this.talk.key);
        return calls.some(({ src, appliedTimes }) => src === "ownerWait" && appliedTimes === 1);
      },
      { timeoutMs: 60_000 },
    );
    const results = (await this.talk.said()).filter((text) => /answer|declin/.test(text));
    assert.equal(results.length, 1, results.join("; "));
    return results[0] ?? "";
  }
}
