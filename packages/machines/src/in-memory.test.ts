import type { AgentDefinition, ModelReply, PlainEvent } from "@holdfast/protocol";
import { createActor, fromPromise, SimulatedClock, waitFor, type AnyActorLogic, type AnyActorRef } from "xstate";
import { expect, test } from "vitest";
import { conversationMachine } from "./conversation.machine.ts";
import type { ModelJobInput, ToolJobInput } from "./job-input.ts";
import { ownerWaitMachine } from "./owner-wait.machine.ts";
import { taskMachine } from "./task.machine.ts";
import { problemOfHistory } from "./testing/provider-history.ts";
import { askCall, ASKER, READER, readCall, reply, taskCall, testAgent, testChief } from "./testing/test-agent.ts";
import { foldTranscript } from "./transcript.ts";

// The three machines with each other, by XState's own actors: what the rigs send by hand happens by itself here.

/** Replies by (agent, model call); a missing one never comes. */
type Script = Readonly<Record<string, ModelReply>>;

function conversation(script: Script) {
  const model = fromPromise<unknown, ModelJobInput>(({ input }) => {
    const answer = script[`${input.agent.name}-${input.iteration}`];
    return answer === undefined ? new Promise<never>(() => {}) : Promise.resolve(answer);
  });
  const tool = fromPromise<unknown, ToolJobInput>(({ input }) => Promise.resolve(`${input.name} ${input.callId}`));
  const jobs = {
    "model.generate": model,
    "tool.run.idempotent": tool,
    "tool.run.dedupeKey": tool,
    "tool.run.unsafe": tool,
  };
  const ownerWait: AnyActorLogic = ownerWaitMachine;
  const inner: AnyActorLogic = conversationMachine.provide({ actors: { ...jobs, ownerWait } });
  const task: AnyActorLogic = taskMachine.provide({ actors: { conversation: inner } });
  return conversationMachine.provide({
    actors: { ...jobs, ownerWait, task },
  });
}

function run(
  script: Script,
  agents: { readonly agent: AgentDefinition; readonly agents: Record<string, AgentDefinition> } = {
    agent: testAgent(),
    agents: { reader: READER },
  },
) {
  const journal: PlainEvent[] = [];
  let last: unknown;
  const actor = createActor(conversation(script), {
    id: "c1",
    clock: new SimulatedClock(),
    input: { ...agents, prompt: "go" },
    inspect: (inspected) => {
      if (inspected.type === "@xstate.snapshot" && inspected.actorRef === actor && inspected.snapshot !== last) {
        last = inspected.snapshot;
        journal.push(inspected.event);
      }
    },
  });
  actor.start();
  return { actor, journal };
}

const status = (text: string) => (snapshot: { value: unknown }) => JSON.stringify(snapshot.value).includes(text);
const child = (parent: AnyActorRef, id: string): AnyActorRef => {
  const found: AnyActorRef | undefined = parent.getSnapshot().children[id];
  if (found === undefined) throw new Error(`${parent.id} has no child ${id}.`);
  return found;
};
const anna = { kind: "person", id: "anna", roles: [] };

test("a whole turn: a tool, a task whose agent asks a question, and a question, all at once", async () => {
  const { actor, journal } = run({
    "chief-1": reply("", [readCall("a"), taskCall("b"), askCall("c")]),
    "reader-1": reply("let me ask", [askCall("r")]),
    "reader-2": reply("the reader's answer"),
    "chief-2": reply("done"),
  });
  await waitFor(actor, status("asking"));
  const task = child(actor, "call-1-b");
  const inner = child(child(task, "conversation"), "call-1-r");
  inner.send({ type: "answer", answerId: "a1", value: "yes", principal: anna });
  child(actor, "call-1-c").send({ type: "answer", answerId: "a2", value: "no", principal: anna });
  await waitFor(actor, status("idle"));
  const transcript = foldTranscript(journal);
  expect(problemOfHistory(transcript.slice(0, -1))).toBeUndefined();
  expect(transcript.slice(-2)).toEqual([
    {
      role: "tool",
      results: [
        { callId: "a", name: "read", ok: true, content: "read a" },
        { callId: "b", name: "task", ok: true, content: "the reader's answer" },
        { callId: "c", name: "ask_owner", ok: true, content: '{"answer":"no","by":"owner"}' },
      ],
    },
    { role: "assistant", text: "done", toolCalls: [] },
  ]);
  expect(Object.keys(actor.getSnapshot().children)).toEqual([]);
});

test("an interrupt reaches the question of a task of a task's conversation", async () => {
  const { actor } = run({
    "chief-1": reply("", [taskCall("b")]),
    "reader-1": reply("half of it", [askCall("r")]),
  });
  await waitFor(actor, status("asking"));
  const task = child(actor, "call-1-b");
  const question = child(child(task, "conversation"), "call-1-r");
  actor.send({ type: "interrupt" });
  expect(question.getSnapshot().output).toMatchObject({ status: "cancelled" });
  expect(task.getSnapshot().output).toMatchObject({ status: "cancelled", partial: "half of it" });
  expect(Object.keys(actor.getSnapshot().children)).toEqual([]);
});

test("a task whose agent comes to nothing: its conversation says so, the parent goes on", async () => {
  const { actor, journal } = run({
    "chief-1": reply("", [taskCall("b")]),
    "reader-1": reply(""),
    "chief-2": reply("I could not get it"),
  });
  await waitFor(actor, status("idle"));
  expect(JSON.stringify(foldTranscript(journal))).toContain("The agent ended without an answer.");
});

test("a sub-agent asks its parent and goes on, and later does more, all in one conversation", async () => {
  const parentAsks = (callId: string, prompt: string) =>
    reply("", [{ callId, name: "task", input: { resume: "call-1-b", prompt } }]);
  const { actor, journal } = run(
    {
      "chief-1": reply("", [{ callId: "b", name: "task", input: { subagent: "asker", prompt: "work" } }]),
      "asker-1": reply("", [{ callId: "q", name: "ask_parent", input: { question: "which?" } }]),
      "chief-2": parentAsks("c", "the second"),
      "asker-2": reply("it is done"),
      "chief-3": reply("thanks"),
    },
    { agent: { ...testChief(), delegates: ["asker"] }, agents: { asker: ASKER } },
  );
  await waitFor(actor, status("idle"));
  const results = foldTranscript(journal).flatMap((message) =>
    message.role === "tool" ? message.results.map(({ content }): unknown => JSON.parse(content)) : [],
  );
  expect(results).toEqual([
    { taskId: "call-1-b", status: "waiting", question: "which?" },
    { taskId: "call-1-b", status: "completed", result: "it is done" },
  ]);
  actor.send({ type: "close" });
  expect(actor.getSnapshot()).toMatchObject({ status: "done", output: { outcome: "closed" } });
});

test("close ends the whole tree", async () => {
  const { actor } = run({ "chief-1": reply("", [taskCall("b"), askCall("c")]), "reader-1": reply("", [askCall("r")]) });
  await waitFor(actor, status("asking"));
  const task = child(actor, "call-1-b");
  actor.send({ type: "close" });
  expect(actor.getSnapshot()).toMatchObject({ status: "done", output: { outcome: "closed" } });
  expect(task.getSnapshot().status).toBe("done");
});

test("without an implementation a job fails with a fault that says so, and the conversation rests in error", async () => {
  const actor = createActor(conversationMachine, { input: { agent: testAgent(), prompt: "go" } });
  actor.start();
  await waitFor(actor, status("error"));
  expect(actor.getSnapshot().context.lastFailure).toMatchObject({ cause: "modelError", code: "HF-3003" });
});
