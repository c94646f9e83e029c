import { strict as assert } from "node:assert";
import { defineAgent } from "@holdfast/agents";
import { readTranscript } from "@holdfast/node-app";
import type { ConversationStart } from "@holdfast/client";
import { parseActorKey, type JournalEntry } from "@holdfast/protocol";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import type { RowEvidence, RowStage } from "./row-run.ts";

const echo = defineAgent({ name: "talker", model: "echo" });
const Counted = z.object({ usage: z.object({ modelCalls: z.number() }) });
const blocker = defineAgent({ name: "waiter", model: "blocker" });

/** One conversation of a row's test: verbs, and what is stored of it. */
export class RowTalk {
  readonly id: string;
  readonly key: string;
  readonly #stage: RowStage;

  constructor(stage: RowStage, id: string) {
    this.id = id;
    this.key = stage.holdfast.key("conversation", id);
    this.#stage = stage;
  }

  async begin(input: ConversationStart): Promise<void> {
    await this.#stage.holdfast.conversations.start(this.id, input);
  }

  /** An agent that answers with what it is told. */
  async start(prompt: string): Promise<void> {
    await this.begin({ agent: echo, prompt });
    await this.is("idle");
  }

  /** An agent whose answer is held until it is released. */
  async startHeld(prompt: string): Promise<void> {
    await this.begin({ agent: blocker, prompt });
    await this.#stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 1, match: prompt });
  }

  async say(text: string, messageId = text.replaceAll(/\W/g, "-")): Promise<void> {
    await this.#stage.holdfast.conversations.send(this.id, text, { messageId });
    await this.hears(text);
  }

  /** An event that is taken; right after the death it may be stored before anybody has applied it. */
  async tell(type: string, more: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const sent = await this.#stage.holdfast.send({ type: "conversation", id: this.id }, { type, ...more });
    assert.ok(["applied", "accepted"].includes(sent.kind), `${type}: ${JSON.stringify(sent)}`);
  }

  async list(): Promise<Readonly<Record<string, unknown>>> {
    return (await this.#stage.holdfast.read.header(this.key))?.list ?? {};
  }

  is(status: string): Promise<unknown> {
    return waitUntil(`${this.id} is ${status}`, async () => (await this.list())["status"] === status, {
      timeoutMs: 60_000,
      dump: () => this.list(),
    });
  }

  /** Waits until a text stands in the transcript. */
  hears(text: string): Promise<unknown> {
    return waitUntil(`${this.id} has "${text}"`, async () => (await this.said()).includes(text), {
      timeoutMs: 60_000,
      dump: () => this.said(),
    });
  }

  /** Texts of the transcript, in order; of a tool message its results. */
  async said(): Promise<readonly string[]> {
    await this.entries(); // the journal follows the record by a moment
    const transcript = await readTranscript(this.#stage.holdfast.read, this.key);
    return transcript.flatMap((message) =>
      message.role === "tool" ? message.results.map(({ content }) => content) : [message.text],
    );
  }

  /** What came of the calls that its model made in its last turn, in their order; each is JSON or text. */
  async results(): Promise<readonly unknown[]> {
    return z.array(z.unknown()).parse(JSON.parse((await this.said()).at(-1) ?? ""));
  }

  async modelCalls(): Promise<number> {
    const context = (await this.#stage.holdfast.read.actor(this.key))?.record.snapshot.context;
    return Counted.parse(context).usage.modelCalls;
  }

  /** Its journal, up to the revision of its record. */
  async entries(): Promise<readonly JournalEntry[]> {
    const { read } = this.#stage.holdfast;
    return waitUntil(`the journal of ${this.id} is whole`, async () => {
      const rev = (await read.header(this.key))?.rev;
      const entries = await read.journal(this.key);
      return entries.at(-1)?.rev === rev && entries;
    });
  }

  /** Its first revision, and the last one of every node that it lived on. */
  async evidence(): Promise<RowEvidence> {
    const last = new Map((await this.entries()).map(({ node, rev }) => [node, rev]));
    return [this.key, 1, ...last.values()];
  }
}

/** A conversation that lives on the same partition as another one, at rest. */
export async function neighbourOf(stage: RowStage, { key, id }: RowTalk): Promise<RowTalk> {
  const { partition } = parseActorKey(key);
  const ids = Array.from({ length: 1000 }, (_, n) => `${id}-next-${n}`);
  const found = ids.find((each) => parseActorKey(stage.holdfast.key("conversation", each)).partition === partition);
  const neighbour = new RowTalk(stage, found ?? "");
  await neighbour.start("hello");
  return neighbour;
}

/** The code that a refusal has. */
export async function codeOf(refused: Promise<unknown>): Promise<unknown> {
  try {
    return { notRefused: await refused };
  } catch (error) {
    return error instanceof Error && "code" in error ? error.code : error;
  }
}
