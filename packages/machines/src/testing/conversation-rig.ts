import type { ModelReply, PlainEvent, TranscriptMessage } from "@holdfast/protocol";
import { createActor, fromPromise, SimulatedClock, type InputFrom } from "xstate";
import { conversationStatus, type ConversationState } from "../conversation-status.ts";
import { conversationMachine } from "../conversation.machine.ts";
import type { ModelJobInput, ToolJobInput } from "../job-input.ts";
import { foldTranscript } from "../transcript.ts";
import { READER, testAgent } from "./test-agent.ts";

const endless = <JobInput>() => fromPromise<unknown, JobInput>(() => new Promise<never>(() => {}));

const machine = conversationMachine.provide({
  actors: {
    "model.generate": endless<ModelJobInput>(),
    "tool.run.idempotent": endless<ToolJobInput>(),
    "tool.run.dedupeKey": endless<ToolJobInput>(),
    "tool.run.unsafe": endless<ToolJobInput>(),
  },
});

/** A model call as it was started. */
interface ModelStart {
  readonly childId: string;
  /** What the job would read out of the journal at that moment. */
  readonly transcript: readonly TranscriptMessage[];
}

/** A conversation whose children do nothing by themselves: a test says when and how each of them ends. */
export interface ConversationRig {
  /** Applied events, as a journal would hold them. */
  readonly journal: readonly PlainEvent[];
  readonly modelStarts: readonly ModelStart[];
  /** What was sent to children, `<child id> <event type>`. */
  readonly sent: readonly string[];
  readonly emitted: readonly PlainEvent[];
  readonly clock: SimulatedClock;
  snapshot(): ReturnType<ReturnType<typeof createActor<typeof machine>>["getSnapshot"]>;
  state(): ConversationState;
  /** @returns whether it changed anything */
  send(event: Parameters<ReturnType<typeof createActor<typeof machine>>["send"]>[0]): boolean;
  say(messageId: string): boolean;
  /** The running model call replies. */
  reply(reply: ModelReply): boolean;
  /** The running model call fails. */
  failModel(error: unknown): boolean;
  /** A child ends. As the runtime does, outcomes of children that are not there are dropped. */
  settle(childId: string, output: unknown): boolean;
  fail(childId: string, error: unknown): boolean;
  /** Ids of the living children. */
  children(): readonly string[];
  /** Input of a job that runs. */
  jobInput(childId: string): unknown;
  transcript(): readonly TranscriptMessage[];
}

const idOf = (ref: object): string => ("id" in ref && typeof ref.id === "string" ? ref.id : "");

type Input = Partial<InputFrom<typeof machine>>;

/** Starts a conversation of the test agent. @param shared  what a fork has in common with its origin */
export function startConversation(input: Input = {}, shared: readonly TranscriptMessage[] = []): ConversationRig {
  const inputs = new Map<string, unknown>();
  const journal: PlainEvent[] = [];
  const modelStarts: ModelStart[] = [];
  const sent: string[] = [];
  const emitted: PlainEvent[] = [];
  const clock = new SimulatedClock();
  let last: unknown;
  const actor = createActor(machine, {
    id: "c1",
    clock,
    input: { agent: testAgent(), agents: { reader: READER }, ...input },
    inspect: (inspected) => {
      if (inspected.type === "@xstate.event" && inspected.event.type === "xstate.init")
        inputs.set(idOf(inspected.actorRef), inspected.event["input"]);
      if (inspected.type === "@xstate.event" && !inspected.event.type.startsWith("xstate.")) {
        const receiver = idOf(inspected.actorRef);
        if (/^(call|group|doubt)-/.test(receiver)) sent.push(`${receiver} ${inspected.event.type}`);
      }
      if (inspected.type !== "@xstate.snapshot" || inspected.actorRef !== actor || inspected.snapshot === last) return;
      last = inspected.snapshot;
      journal.push(inspected.event);
      const running = children().find((id) => id.startsWith("model-"));
      if (running !== undefined && modelStarts.at(-1)?.childId !== running) {
        modelStarts.push({ childId: running, transcript: foldTranscript(journal, shared) });
      }
    },
  });
  const children = () => Object.keys(actor.getSnapshot().children);
  actor.on("*", (event) => emitted.push({ ...event }));
  actor.subscribe({ error: () => {} });
  actor.start();

  const send: ConversationRig["send"] = (event) => {
    const before = actor.getSnapshot();
    // As the runtime does: nothing is applied to an actor that has ended.
    if (before.status !== "active") return false;
    actor.send(event);
    return actor.getSnapshot() !== before;
  };
  const settle: ConversationRig["settle"] = (childId, output) =>
    children().includes(childId) && send({ type: `xstate.done.actor.${childId}`, output });
  const fail: ConversationRig["fail"] = (childId, error) =>
    children().includes(childId) && send({ type: `xstate.error.actor.${childId}`, error });
  const model = () => children().find((id) => id.startsWith("model-")) ?? "no model call runs";

  return {
    journal,
    modelStarts,
    sent,
    emitted,
    clock,
    snapshot: () => actor.getSnapshot(),
    state: () => conversationStatus(actor.getSnapshot().value, actor.getSnapshot().context),
    send,
    say: (messageId) => send({ type: "userMessage", messageId, text: `text of ${messageId}` }),
    reply: (reply) => settle(model(), reply),
    failModel: (error) => fail(model(), error),
    settle,
    fail,
    children,
    jobInput: (childId) => inputs.get(childId),
    transcript: () => foldTranscript(journal, shared),
  };
}
