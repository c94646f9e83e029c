import { inspect } from "node:util";
import {
  createAgentJobs,
  createFileTools,
  createLedgerClient,
  createOpenAiCompatibleModel,
  createSurveyAgents,
  createToolbox,
  type ModelCallContext,
  type ModelRequest,
  type OpenAiCompatibleOptions,
} from "@holdfast/agents";
import { startLedger } from "@holdfast/ledger";
import { RuntimeFault, type ModelReply, type TranscriptMessage } from "@holdfast/protocol";
import { startSimModel, type SimModel } from "@holdfast/sim-model";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const KEY = "sk-planted-key-91ab";
const PROMPT = "planted-prompt-c0de";

let sim: SimModel;
beforeAll(async () => {
  sim = await startSimModel({ apiKey: KEY });
});
afterAll(() => sim.close());

const model = (options: Partial<OpenAiCompatibleOptions> = {}) =>
  createOpenAiCompatibleModel({ baseUrl: `${sim.url}/v1`, apiKey: KEY, maxRetries: 1, retryBaseMs: 5, ...options });

const requestOf = (name: string, text = PROMPT): ModelRequest => ({
  model: name,
  instructions: "",
  messages: [{ role: "user", messageId: "u1", text }],
  tools: [],
});

const contextOf = (more: Partial<ModelCallContext> = {}): ModelCallContext => ({
  signal: new AbortController().signal,
  idempotencyKey: "key-1",
  attempt: 1,
  ...more,
});

async function faultOf(call: Promise<unknown>): Promise<RuntimeFault> {
  const error = await call.catch((error: unknown) => error);
  if (!(error instanceof RuntimeFault)) throw new Error(`No fault: ${inspect(error)}`);
  const everything = inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error) + String(error.stack);
  for (const secret of [KEY, PROMPT]) expect(everything).not.toContain(secret);
  return error;
}

describe("against the scripted endpoint", () => {
  test("an answer streams word by word and carries our headers", async () => {
    const tokens: string[] = [];
    const request = requestOf("echo", "one two three");
    const reply = await model().generate(request, contextOf({ attempt: 4, onToken: (text) => tokens.push(text) }));
    expect(reply).toMatchObject({ text: "one two three", toolCalls: [], finishReason: "stop" });
    expect(reply.usage.outputTokens).toBeGreaterThan(0);
    expect(tokens.length).toBeGreaterThan(1);
    expect(tokens.join("")).toBe("one two three");
    expect(sim.requests().at(-1)).toMatchObject({ idempotencyKey: "key-1", holdfastAttempt: "4", answered: true });
  });

  test("a wrong key is refused at once", async () => {
    const wrong = model({ apiKey: `${KEY}-wrong`, maxRetries: 5 });
    const fault = await faultOf(wrong.generate(requestOf("echo"), contextOf()));
    expect(fault).toMatchObject({ code: "HF-5001", facts: { tries: 1, reason: "invalid_api_key" } });
  });

  test.each([
    ["fault-401", "HF-5001", 1],
    ["fault-429", "HF-5002", 2],
    ["fault-500", "HF-5003", 2],
    ["fault-garbage", "HF-5004", 2],
    ["fault-never", "HF-5005", 2],
    ["fault-idle", "HF-5005", 2],
    ["fault-cut", "HF-5006", 2],
    ["no-such-model", "HF-5003", 1],
  ])("%s ends as %s after %i tries", async (name, code, tries) => {
    const impatient = model({
      timeouts: { connectMs: 300, firstTokenMs: 300, idleMs: 300 },
      maxRetryAfterMs: 20,
    });
    const fault = await faultOf(impatient.generate(requestOf(name), contextOf()));
    expect([fault.code, fault.facts["tries"]]).toEqual([code, tries]);
    expect(fault.message).toContain(`Model ${name} at 127.0.0.1:${sim.port}: `);
  });

  test("a rate limit that passes is waited out for as long as the endpoint asks", async () => {
    const delays: number[] = [];
    const context = contextOf({ onRetry: ({ delayMs }) => delays.push(delayMs) });
    expect(await model().generate(requestOf("fault-429-once"), context)).toMatchObject({
      text: /after the rate limit/,
    });
    expect(delays).toEqual([1000]);
  });

  test("an abort while the endpoint is silent is seen there", async () => {
    const caller = new AbortController();
    const call = faultOf(model().generate(requestOf("blocker", "abort me"), contextOf({ signal: caller.signal })));
    await sim.waitForRequests({ match: "abort me", state: "blocked" });
    caller.abort();
    expect((await call).code).toBe("HF-5203");
    expect(await sim.waitForRequests({ match: "abort me", state: "aborted" })).toMatchObject({ kind: "reached" });
  });
});

test("the demo's agents survey a folder step by step through the jobs", async () => {
  const base = await mkdtemp(join(tmpdir(), "holdfast-survey-"));
  try {
    const [root, outputFolder] = [join(base, "docs"), join(base, "out")];
    await mkdir(root);
    await writeFile(join(root, "b.md"), "# Second\n\nTwo words here.\n");
    await writeFile(join(root, "a.txt"), "First\n\nThe first sentence. And more.\n");
    await writeFile(join(root, "c.md"), Uint8Array.of(0, 1, 2));
    const agents = createSurveyAgents({ surveyor: "survey-parent", reader: "survey-reader" });
    const run = conversationRunner({ root, outputFolder, agents });
    const answer = await run("surveyor", `Survey the documents in ${root}`);
    expect(answer).toMatch(
      /^I surveyed 2 documents with \d+ words in total\. 1 could not be read\. The report is in report\.md\.$/,
    );
    const report = await readFile(join(outputFolder, "report.md"), "utf8");
    expect(report.match(/^## .*$/gm)).toEqual(["## First", "## Second", "## Could not be read"]);
    expect(report).toContain("it is no text");
  } finally {
    await rm(base, { recursive: true, force: true });
  }
});

test("the ledger takes effects and settlements of its client and knows a repeated key", async () => {
  const base = await mkdtemp(join(tmpdir(), "holdfast-ledger-"));
  const ledger = await startLedger({ file: join(base, "ledger.jsonl") });
  try {
    const client = createLedgerClient(ledger.url);
    const effect = { callId: "c1", idempotencyKey: "k1", kind: "write_report", node: "n1", detail: { attempt: 1 } };
    expect(await client.effect(effect)).toEqual({ applied: true, first: 1, attempt: 1 });
    expect(await client.effect(effect)).toEqual({ applied: false, first: 1, attempt: 2 });
    expect(await client.settle("c1", "completed")).toMatchObject({ settled: true });
    await expect(client.effect({ ...effect, callId: "" })).rejects.toMatchObject({ code: "HF-1001" });
  } finally {
    await ledger.close();
    await rm(base, { recursive: true, force: true });
  }
});

/** The loop of a conversation in its smallest form: the machine's place is taken by a recursion. */
function conversationRunner(options: {
  readonly root: string;
  readonly outputFolder: string;
  readonly agents: ReturnType<typeof createSurveyAgents>;
}) {
  let job = 0;
  const contextFor = (kind: string) => {
    job += 1;
    const key = `${kind}-${job}`;
    return {
      key,
      actorKey: "d-0.conversation.c",
      genesis: "g:1",
      rev: job,
      attempt: 1,
      signal: new AbortController().signal,
    };
  };
  const run = async (name: "surveyor" | "reader", prompt: string): Promise<string> => {
    const transcript: TranscriptMessage[] = [{ role: "user", messageId: "u", text: prompt }];
    const jobs = createAgentJobs({
      model: model(),
      toolbox: createToolbox(createFileTools(options)),
      readTranscript: async () => transcript,
    });
    const carryOut = async ({ callId, name, input }: ModelReply["toolCalls"][number]) => {
      if (name === "ask_owner") return { callId, name, ok: true, content: JSON.stringify({ answer: "title" }) };
      if (name === "task") {
        const { prompt } = Object(input);
        return { callId, name, ok: true, content: await run("reader", String(prompt)) };
      }
      const output = await jobs.runTool({ agent: "x", callId, name, input }, contextFor("tool"));
      return { callId, name, ...output };
    };
    for (;;) {
      const reply = await jobs.generate({ agent: options.agents[name], iteration: job }, contextFor("model"));
      transcript.push({ role: "assistant", text: reply.text, toolCalls: reply.toolCalls });
      if (reply.toolCalls.length === 0) return reply.text;
      transcript.push({ role: "tool", results: await Promise.all(reply.toolCalls.map(carryOut)) });
    }
  };
  return run;
}
