import { describe, expect, test } from "vitest";
import { reachableAgents } from "./call-arguments.ts";
import { planReply, type PlannedCall } from "./call-plan.ts";
import { askCall, READER, reply, taskCall, testAgent } from "./testing/test-agent.ts";

const planCalls = (...asked: Parameters<typeof planReply>): readonly PlannedCall[] => planReply(...asked).calls;
const caller = (depth: number) => ({ agent: testAgent(), agents: { reader: READER }, depth });

describe("planCalls", () => {
  test("is a function of its arguments: a step is planned the same by machine and transcript", () => {
    const asked = reply("", [taskCall("b"), { callId: "?!", name: "no such tool!", input: [] }]);
    expect(planCalls(3, asked, caller(0))).toEqual(planCalls(3, asked, caller(0)));
    expect(planCalls(3, asked, caller(0)).map(({ callId, childId, name }) => [callId, childId, name])).toEqual([
      ["b", "call-3-b", "task"],
      ["--", "call-3---", "no_such_tool_"],
    ]);
  });

  test("one question too many is refused, and none is dropped for it", () => {
    const agent = testAgent({ limits: { ...testAgent().limits, maxOpenWaits: 2 } });
    const asked = reply("", [askCall("a"), askCall("b"), askCall("c"), taskCall("d")]);
    const plans = planCalls(1, asked, { ...caller(0), agent }).map(({ plan }) => plan);
    expect(plans.map(({ kind }) => kind)).toEqual(["ask", "ask", "refused", "tasks"]);
    expect(JSON.stringify(plans[2])).toContain("HF-5202");
  });

  test("work is delegated only so deep", () => {
    expect(planCalls(1, reply("", [taskCall("b")]), caller(7))[0]?.plan).toMatchObject({
      kind: "tasks",
      starts: [{ depth: 8 }],
    });
    const [deep] = planCalls(1, reply("", [taskCall("b")]), caller(8));
    expect(deep?.plan).toMatchObject({ kind: "refused" });
    expect(JSON.stringify(deep?.plan)).toContain("HF-5202");
  });

  test("a task is started with a whole definition: a model that is inherited is that of who delegates", () => {
    const agents = { reader: { ...READER, model: "inherit" } };
    const { plan } = planCalls(1, reply("", [taskCall("b")]), { ...caller(0), agents })[0] ?? {};
    expect(plan).toMatchObject({ starts: [{ subagent: { name: "reader", model: "test-model" } }] });
  });

  test("an agent that the caller does not list is not reached, also when it is defined", () => {
    const call = { callId: "b", name: "task", input: { subagent: "toString", prompt: "p" } };
    const [planned] = planCalls(1, reply("", [call]), { ...caller(0), agent: testAgent({ delegates: ["toString"] }) });
    expect(planned?.plan.kind).toBe("refused");
  });
});

test("a task carries the definitions its agent may come to need, and no others", () => {
  const a = testAgent({ name: "a", delegates: ["b"] });
  const b = testAgent({ name: "b", delegates: ["a", "c", "missing"] });
  const c = testAgent({ name: "c", delegates: [] });
  const other = testAgent({ name: "other", delegates: [] });
  expect(Object.keys(reachableAgents({ a, b, c, other }, a))).toEqual(["a", "b", "c"]);
  expect(Object.keys(reachableAgents({ a, b, c, other }, c))).toEqual([]);
});
