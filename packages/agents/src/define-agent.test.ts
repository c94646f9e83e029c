import { expect, test } from "vitest";
import { createAgentRegistry, defineAgent, withDelegates } from "./define-agent.ts";
import { ASK_OWNER, taskTool } from "./delegation-tools.ts";
import { agentNamed, createSurveyAgents } from "./survey-agents.ts";

const agent = (name: string, delegates: readonly string[] = []) =>
  defineAgent({ name, model: "m", delegates: [...delegates] });

test("an agent is plain data with every default filled in", () => {
  const reader = agent("reader");
  expect(reader).toEqual({
    name: "reader",
    model: "m",
    instructions: "",
    tools: [],
    limits: { maxIterations: 50, maxTurnMs: 3_600_000 },
    delegates: [],
  });
  expect(JSON.parse(JSON.stringify(reader))).toEqual(reader);
});

test("HF-1001: an agent whose name does not fit, or that has two tools of one name, is refused", () => {
  expect(() => agent("Not A Name")).toThrow(expect.objectContaining({ code: "HF-1001" }));
  expect(() => defineAgent({ name: "a", model: "m", tools: [ASK_OWNER, ASK_OWNER] })).toThrow(
    /two tools named ask_owner/,
  );
});

test("HF-1001: a budget in money needs the price of the agent's model", () => {
  const limits = { maxCostMicroUsd: 1000 };
  expect(() => defineAgent({ name: "a", model: "m", limits })).toThrow(expect.objectContaining({ code: "HF-1001" }));
  const prices = { m: { inputMicroUsd: 0, outputMicroUsd: 1 } };
  expect(defineAgent({ name: "a", model: "m", limits, prices }).prices).toEqual(prices);
});

test("withDelegates adds to the delegates an agent has and replaces its task tool by one that names them all", () => {
  const [a, b] = [agent("a"), agent("b")];
  const once = withDelegates(agent("boss"), [a], { a: "does it" });
  const twice = withDelegates(once, [b, a], { a: "does it" });
  expect(twice.delegates).toEqual(["a", "b"]);
  expect(twice.tools).toEqual([taskTool([{ name: "a", purpose: "does it" }, { name: "b" }])]);
  expect(twice.tools[0]).toMatchObject({
    kind: "delegate",
    description: expect.stringContaining("Agents: a: does it; b."),
    inputSchema: { properties: { subagent: { enum: ["a", "b"] } }, required: ["subagent", "prompt"] },
  });
});

test("a registry gives an agent with all it may come to delegate to, circles included", () => {
  const registry = createAgentRegistry([agent("a", ["b"]), agent("b", ["c", "a"]), agent("c"), agent("d")]);
  expect(Object.keys(registry.withReachable("a").agents).toSorted()).toEqual(["a", "b", "c"]);
  expect(registry.withReachable("d")).toEqual({ agent: agent("d"), agents: {} });
  expect(registry.names()).toEqual(["a", "b", "c", "d"]);
});

test("HF-5201: an agent that is not there is refused, also as a delegate; HF-1001: so are two of one name", () => {
  expect(() => createAgentRegistry([agent("a")]).get("b")).toThrow(expect.objectContaining({ code: "HF-5201" }));
  expect(() => createAgentRegistry([agent("a", ["gone"])])).toThrow(expect.objectContaining({ code: "HF-5201" }));
  expect(() => createAgentRegistry([agent("a"), agent("a")])).toThrow(expect.objectContaining({ code: "HF-1001" }));
});

test("the demo's surveyor lists, asks, writes and delegates to a reader that reads", () => {
  const { surveyor, reader } = createSurveyAgents({ surveyor: "survey-parent", reader: "survey-reader" });
  expect(surveyor).toMatchObject({ name: "surveyor", model: "survey-parent", delegates: ["reader"] });
  expect(surveyor.tools.map(({ name, kind, crashPolicy }) => [name, kind, crashPolicy])).toEqual([
    ["list_files", "local", "idempotent"],
    ["ask_owner", "ask", "idempotent"],
    ["write_report", "local", "dedupeKey"],
    ["task", "delegate", "idempotent"],
  ]);
  expect(agentNamed("surveyor")).toEqual({ agent: surveyor, agents: { reader } });
  expect(agentNamed("reader", "gpt-x")).toMatchObject({ agent: { model: "gpt-x" }, agents: {} });
  expect(() => agentNamed("nobody")).toThrow(expect.objectContaining({ code: "HF-5201" }));
  expect(reader).toMatchObject({
    name: "reader",
    model: "survey-reader",
    tools: [{ name: "read_file", kind: "local" }],
  });
});
