import { RuntimeFault, type ModelReply, type TranscriptMessage } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createAgentJobs, type AgentJobContext, type AgentJobsOptions, type EffectReport } from "./agent-jobs.ts";
import { defineAgent } from "./define-agent.ts";
import { defineTool } from "./define-tool.ts";
import type { ModelCallContext, ModelRequest } from "./model-port.ts";
import { cutProblem, modelFault } from "./model-problem.ts";
import { createToolbox } from "./toolbox.ts";

const job = (more: Partial<AgentJobContext> = {}): AgentJobContext => ({
  key: "d-0.conversation.c1^g:1/model-1",
  actorKey: "d-0.conversation.c1",
  genesis: "g:1",
  rev: 7,
  attempt: 2,
  signal: new AbortController().signal,
  ...more,
});
const reply: ModelReply = {
  text: "hi",
  toolCalls: [],
  finishReason: "stop",
  usage: { inputTokens: 1, outputTokens: 1 },
};
const transcript: readonly TranscriptMessage[] = [{ role: "user", messageId: "u", text: "hello" }];
const agent = defineAgent({ name: "a", model: "m1", instructions: "Be brief." });

const echo = defineTool({
  name: "echo",
  description: "",
  input: z.object({ text: z.string() }),
  crashPolicy: "idempotent",
  run: ({ text }, context) => (text === "fail" ? Promise.reject(new Error("failed so")) : { text, context }),
});

function jobsWith(more: Partial<AgentJobsOptions> = {}) {
  const calls: { request: ModelRequest; context: ModelCallContext }[] = [];
  const reads: unknown[][] = [];
  const jobs = createAgentJobs({
    model: {
      generate: async (request, context) => {
        calls.push({ request, context });
        return reply;
      },
    },
    toolbox: createToolbox([echo]),
    readTranscript: async (...read) => {
      reads.push(read);
      return transcript;
    },
    ...more,
  });
  return { jobs, calls, reads };
}

describe("model.generate", () => {
  test("reads the transcript of the conversation up to the revision that decided it and calls the agent's model", async () => {
    const { jobs, calls, reads } = jobsWith();
    const context = job();
    expect(await jobs.generate({ agent, iteration: 3, messagesTaken: 2 }, context)).toEqual(reply);
    const wanted = { conversation: "d-0.conversation.c1", throughRev: 7, messagesTaken: 2 };
    expect(reads).toEqual([[wanted, context.signal]]);
    expect(calls[0]?.request).toEqual({ model: "m1", instructions: "Be brief.", messages: transcript, tools: [] });
    expect(calls[0]?.context).toMatchObject({ idempotencyKey: context.key, attempt: 2, signal: context.signal });
  });

  test("follows a conversation and revision that its input names", async () => {
    const { jobs, reads } = jobsWith();
    await jobs.generate({ agent, iteration: 1, conversation: "d-1.conversation.other", throughRev: 3 }, job());
    expect(reads[0]?.[0]).toEqual({ conversation: "d-1.conversation.other", throughRev: 3 });
  });

  test("tells the model what its input says besides, after the transcript", async () => {
    const { jobs, calls } = jobsWith();
    await jobs.generate({ agent, iteration: 1, nudge: "Do something else." }, job());
    expect(calls[0]?.request.messages).toEqual([
      ...transcript,
      { role: "user", messageId: "nudge", text: "Do something else." },
    ]);
  });

  test("asks for a summary of the same messages, with instructions of its own and nothing to call", async () => {
    const { jobs, calls } = jobsWith();
    const withTool = { ...agent, tools: [echo.definition] };
    await jobs.generate({ agent: withTool, iteration: 1, purpose: "condense" }, job());
    const { model, instructions, messages, tools } = calls[0]?.request ?? {};
    expect([model, tools]).toEqual(["m1", []]);
    expect(instructions).not.toContain("Be brief.");
    expect(messages?.slice(0, -1)).toEqual(transcript);
    expect(messages?.at(-1)).toMatchObject({ role: "user", text: expect.stringContaining("Summarise") });
  });

  test("numbers the pieces of an answer, anew for every try", async () => {
    const seen: unknown[] = [];
    const fault = modelFault(cutProblem, { endpoint: "h", model: "m1" }, 1);
    const { jobs } = jobsWith({
      onToken: ({ attempt, tries, index, text }) => seen.push([attempt, tries, index, text]),
      model: {
        generate: async (_request, context) => {
          context.onToken?.("a");
          context.onToken?.("b");
          context.onRetry?.({ fault, tries: 1, delayMs: 1 });
          context.onToken?.("c");
          return reply;
        },
      },
    });
    await jobs.generate({ agent }, job());
    expect(seen).toEqual([
      [2, 1, 0, "a"],
      [2, 1, 1, "b"],
      [2, 2, 0, "c"],
    ]);
  });

  test("HF-1001: input that is none is refused without repeating it", async () => {
    const { jobs } = jobsWith();
    const error = await jobs.generate({ agent: { name: "planted-name!" } }, job()).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: "HF-1001" });
    expect(String(error)).not.toContain("planted-name");
  });
});

describe("tool.run", () => {
  const call = { agent: "a", callId: "c9", name: "echo", input: { text: "x" }, crashPolicy: "idempotent" };

  test("runs the tool with the job's key and gives its result", async () => {
    const { jobs } = jobsWith();
    const output = await jobs.runTool(call, job({ key: "job-key" }));
    expect(output.ok).toBe(true);
    expect(JSON.parse(output.content)).toMatchObject({
      text: "x",
      context: { callId: "c9", idempotencyKey: "job-key", attempt: 2, conversation: "d-0.conversation.c1", agent: "a" },
    });
  });

  test.each([
    ["an unknown tool", { ...call, name: "nope" }, "HF-5101"],
    ["wrong input", { ...call, input: { text: 1 } }, "HF-5102"],
    ["arguments that were no JSON", { ...call, input: "{oops" }, "HF-5102"],
    ["a tool that throws", { ...call, input: { text: "fail" } }, "HF-5103"],
  ])("of %s is an answer to the model, not a failed job", async (_what, input, code) => {
    const output = await jobsWith().jobs.runTool(input, job());
    expect(output.ok).toBe(false);
    expect(JSON.parse(output.content)).toEqual({ error: { cause: "toolError", code, message: expect.any(String) } });
  });

  test("tells of its effect before and after, with the same key", async () => {
    const reports: EffectReport[] = [];
    const { jobs } = jobsWith({ reportEffect: async (report) => void reports.push(report) });
    await jobs.runTool(call, job());
    await jobs.runTool({ ...call, input: { text: "fail" } }, job());
    const effect = {
      callId: "c9",
      idempotencyKey: job().key,
      kind: "echo",
      attempt: 2,
      actorKey: job().actorKey,
      genesis: "g:1",
    };
    expect(reports).toEqual([
      { phase: "before", ...effect },
      { phase: "after", ...effect, outcome: "completed" },
      { phase: "before", ...effect },
      { phase: "after", ...effect, outcome: "failed" },
    ]);
  });

  test("does not run when its effect could not be told", async () => {
    let runs = 0;
    const counting = defineTool({
      name: "echo",
      description: "",
      input: z.object({}),
      crashPolicy: "unsafe",
      run: () => String((runs += 1)),
    });
    const outage = new RuntimeFault("HF-4008", "Ledger at h: no answer.");
    const { jobs } = jobsWith({ toolbox: createToolbox([counting]), reportEffect: () => Promise.reject(outage) });
    await expect(jobs.runTool(call, job())).rejects.toBe(outage);
    expect(runs).toBe(0);
  });

  test("that is stopped fails instead of answering", async () => {
    const signal = AbortSignal.abort();
    await expect(jobsWith().jobs.runTool(call, job({ signal }))).rejects.toMatchObject({ code: "HF-5203" });
  });
});
