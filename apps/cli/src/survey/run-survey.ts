import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { SendResult } from "@holdfast/client";
import { OwnerWaitContext } from "@holdfast/machines";
import { RuntimeFault } from "@holdfast/protocol";
import type { Client } from "holdfast";
import type { Question } from "../ask-person.ts";
import type { agentNamed } from "@holdfast/agents";
import { progressLine, SurveyWatch, type SurveyProgress } from "./survey-progress.ts";

export interface RunSurveyOptions {
  readonly client: Client;
  readonly agent: ReturnType<typeof agentNamed>;
  readonly folder: string;
  readonly say: (line: string) => void;
  /** @returns the owner's answer, or undefined when there is none */
  readonly answer: (question: Question) => Promise<string | undefined>;
  /** Called once while tasks are running; kills a node. @returns what was killed */
  readonly disturb?: (progress: SurveyProgress) => Promise<string | undefined>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface SurveyOutcome {
  readonly conversationId: string;
  readonly key: string;
  readonly status: string;
  readonly finalText: string;
  readonly failure: string | undefined;
  readonly durationMs: number;
}

const LOOK_MS = 400;

/** Starts a survey, shows how it goes, answers its questions, and waits for its end. @throws RuntimeFault HF-5204 when it takes too long */
export async function runSurvey(options: RunSurveyOptions): Promise<SurveyOutcome> {
  const { holdfast } = options.client;
  const startedAt = performance.now();
  const conversationId = `survey-${Date.now().toString(36)}-${randomBytes(2).toString("hex")}`;
  const key = holdfast.key("conversation", conversationId);
  const started = await holdfast.start(
    "conversation",
    conversationId,
    {
      ...options.agent,
      title: `Survey of ${options.folder}`.slice(0, 200),
      prompt: `Survey the documents in "${options.folder}".`,
    },
    { idempotencyKey: conversationId, timeoutMs: 30_000 },
  );
  assertTaken(started, conversationId);
  options.say(`conversation ${conversationId}`);
  const watch = new SurveyWatch(holdfast, key);
  const answered = new Set<string>();
  let { disturb } = options;
  let shown = "";
  while (!options.signal.aborted) {
    const progress = await watch.look();
    const line = progressLine(progress);
    if (line !== shown) options.say(line);
    shown = line;
    if (disturb !== undefined && (await disturb(progress)) !== undefined) disturb = undefined;
    for (const wait of progress.openWaits) if (!answered.has(wait)) await answerWait(options, wait, answered);
    const status = String(progress.conversation?.list["status"] ?? "starting");
    if (["idle", "error", "stuck", "closed"].includes(status))
      return await outcomeOf(options, { conversationId, key, status }, startedAt);
    if (performance.now() - startedAt > options.timeoutMs) {
      throw new RuntimeFault(
        "HF-5204",
        `Survey ${conversationId}: not finished after ${options.timeoutMs} ms, it is ${line}. It goes on: "npx holdfast conversation show ${conversationId}".`,
      );
    }
    await delay(LOOK_MS, undefined, { signal: options.signal }).catch(() => undefined);
  }
  throw new RuntimeFault(
    "HF-5203",
    `Survey ${conversationId}: stopped by the person at the terminal. It is stored and goes on when nodes run again.`,
  );
}

async function answerWait(options: RunSurveyOptions, wait: string, answered: Set<string>): Promise<void> {
  const { holdfast } = options.client;
  const actor = await holdfast.read.actor(wait);
  const context = OwnerWaitContext.safeParse(actor?.record.snapshot.context).data;
  if (context === undefined || context.status !== "open") return;
  const question = {
    question: context.question,
    options: context.options ?? [],
    default: typeof context.default === "string" ? context.default : undefined,
  };
  const value = await options.answer(question);
  if (value === undefined)
    throw new RuntimeFault(
      "HF-6002",
      `"${question.question}" has no answer and no default. Answer it with "npx holdfast wait answer ${wait.split(".")[2] ?? wait} <value>".`,
    );
  const result = await holdfast.send(wait, { type: "answer", answerId: `a-${randomBytes(6).toString("hex")}`, value });
  if (result.kind === "refused") options.say(`the answer was refused: ${result.reason}`);
  answered.add(wait);
}

function assertTaken(result: SendResult, id: string): void {
  if (result.kind === "refused")
    throw new RuntimeFault("HF-1001", `Conversation ${id} was refused: ${result.code} ${result.reason}`);
}

async function outcomeOf(
  options: RunSurveyOptions,
  about: Pick<SurveyOutcome, "conversationId" | "key" | "status">,
  startedAt: number,
): Promise<SurveyOutcome> {
  const actor = await options.client.holdfast.read.actor(about.key);
  const context = actor?.record.snapshot.context;
  const field = (name: string): unknown =>
    typeof context === "object" && context !== null ? Reflect.get(context, name) : undefined;
  const failure = field("lastFailure");
  const text = field("lastText");
  return {
    ...about,
    finalText: typeof text === "string" ? text : "",
    failure: about.status === "idle" || failure === undefined ? undefined : JSON.stringify(failure),
    durationMs: Math.round(performance.now() - startedAt),
  };
}
