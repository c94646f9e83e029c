import { strict as assert } from "node:assert";
import { defineAgent, withDelegates } from "@holdfast/agents";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { blocker, chiefOf, steps, stepsAgain, stubborn, task } from "./row-agents.ts";
import { neighbourOf, RowTalk } from "./row-talk.ts";
import type { RowStage, RowTest } from "./row-run.ts";

const Failed = z.object({
  error: z.object({ cause: z.string(), code: z.string(), partial: z.string().optional() }),
});
const failureIn = (result: unknown) => Failed.parse(result).error;

/** The same delegation before the death and after it: each time a failure that says why, with what there was. */
const failsTwice =
  (id: string, subagent: ReturnType<typeof stubborn>, cause: string): RowTest =>
  async (stage) => {
    const talk = new RowTalk(stage, id);
    const delegation = [task(subagent.name, "do it")];
    const judge = async (): Promise<void> => {
      await talk.is("idle");
      const [result] = await talk.results();
      assert.deepEqual([failureIn(result).cause, failureIn(result).partial], [cause, "still at it"]);
    };
    await talk.begin({ ...chiefOf([subagent]), prompt: steps(delegation) });
    await judge();
    await stage.death();
    await talk.say(stepsAgain(delegation), "again");
    await judge();
    const calls = (await stage.holdfast.delegations(talk.key)).filter(({ src }) => src === "task");
    const statuses = await Promise.all(calls.map(async ({ key }) => stage.holdfast.read.header(key)));
    assert.deepEqual(
      statuses.map((header) => [header?.list["status"], header?.list["cause"]]),
      calls.map(() => ["failed", cause]),
    );
    return talk.evidence();
  };

/** Held in their model calls at this moment. */
const heldOf = async ({ fleet }: RowStage, of: string): Promise<readonly string[]> =>
  (await fleet.model.requests())
    .filter(({ lastUser, aborted, answered }) => lastUser.endsWith(of) && !aborted && !answered)
    .map(({ lastUser }) => lastUser);

/** Rows about work that comes to no good end, and what may not come of it. */
export const FAILURE_ROWS: Readonly<Record<string, RowTest>> = {
  "task-cause": failsTwice("task-cause", stubborn({ maxIterations: 2 }), "limit"),
  "fault-empty-success": failsTwice("empty-success", stubborn(), "stuck"),

  "stuck-detected": async (stage) => {
    const talk = new RowTalk(stage, "stuck");
    await talk.begin({ agent: stubborn(), prompt: "go" });
    await talk.is("stuck");
    const steps = await talk.modelCalls();
    await stage.death();
    await talk.say("go on");
    await talk.is("stuck");
    assert.equal((await talk.list())["cause"], "stuck");
    assert.equal(await talk.modelCalls(), 2 * steps);
    return talk.evidence();
  },

  "fault-stuck-for-ever": async (stage) => {
    const talk = new RowTalk(stage, "stuck-for-ever");
    await talk.begin({ agent: stubborn(), prompt: "go" });
    await talk.is("stuck");
    const steps = await talk.modelCalls();
    await stage.death();
    await talk.tell("resume");
    await waitUntil("it has tried again", async () => (await talk.modelCalls()) === 2 * steps);
    await talk.is("stuck");
    await talk.say("enough");
    await talk.is("idle");
    assert.equal((await talk.said()).at(-1), "enough");
    return talk.evidence();
  },

  "task-depth": async (stage) => {
    const talk = new RowTalk(stage, "task-depth");
    const middle = withDelegates(defineAgent({ name: "middle", model: "puppet" }), [blocker]);
    const { agent, agents } = chiefOf([middle], { maxTaskDepth: 1 });
    const delegation = [task("middle", steps([task("blocker", "never of task-depth")]))];
    const judge = async (): Promise<void> => {
      await talk.is("idle");
      const [[refused]] = z.tuple([z.tuple([z.unknown()])]).parse(await talk.results());
      assert.deepEqual([failureIn(refused).cause, failureIn(refused).code], ["limit", "HF-5202"]);
    };
    await talk.begin({ agent, agents: { ...agents, blocker }, prompt: steps(delegation) });
    await judge();
    await stage.death();
    await talk.say(stepsAgain(delegation), "again");
    await judge();
    assert.deepEqual(await heldOf(stage, "of task-depth"), []);
    return talk.evidence();
  },

  "fault-cycle": async (stage) => {
    const talk = new RowTalk(stage, "cycle");
    const names = ["ping", "pong"] as const;
    const [ping, pong] = names.map((name) => defineAgent({ name, model: "puppet", delegates: [...names] }));
    assert.ok(ping !== undefined && pong !== undefined);
    const agents = { ping: withDelegates(ping, [pong]), pong: withDelegates(pong, [ping]) };
    let prompt = "nobody gets here";
    for (let level = 9; level >= 1; level -= 1) prompt = steps([task(level % 2 === 1 ? "pong" : "ping", prompt)]);
    const judge = async (): Promise<void> => {
      await talk.is("idle");
      assert.ok((await talk.said()).at(-1)?.includes("HF-5202"));
    };
    await talk.begin({ agent: agents.ping, agents, prompt });
    const neighbour = await neighbourOf(stage, talk);
    await judge();
    await stage.death();
    await talk.say(`${prompt} `, "again");
    await neighbour.say("and you?");
    await neighbour.is("idle");
    await judge();
    assert.equal((await stage.holdfast.delegations(talk.key)).filter(({ src }) => src === "task").length, 2 * 8);
    return talk.evidence();
  },

  "fault-timeout-as-crash": async (stage) => {
    const talk = new RowTalk(stage, "timeout-crash");
    const delegation = [
      task("blocker", "overdue of timeout-crash", { deadlineMs: 1000 }),
      task("blocker", "patient of timeout-crash"),
    ];
    await talk.begin({ ...chiefOf([blocker]), prompt: steps(delegation) });
    await waitUntil("the first one is over", async () => {
      const [first] = await stage.holdfast.delegations(talk.key);
      return first?.applied !== undefined;
    });
    await stage.death();
    await stage.fleet.model.release("patient of timeout-crash");
    await talk.is("idle");
    const [overdue, patient] = await talk.results();
    assert.equal(failureIn(overdue).cause, "timeout");
    assert.equal(patient, "result of patient of timeout-crash");
    const [, second] = await stage.holdfast.delegations(talk.key);
    assert.ok((second?.reissued ?? 0) >= 1); // its node did die
    return talk.evidence();
  },

  "fault-no-admission": async (stage) => {
    const talk = new RowTalk(stage, "admission");
    const crowd = Array.from({ length: 8 }, (_, n) => `${n} of admission`);
    const chief = chiefOf([blocker], { maxRunningTasks: 2 }, { resumable: true });
    await talk.begin({ ...chief, prompt: steps(crowd.map((prompt) => task("blocker", prompt))) });
    const held = async (count: number): Promise<readonly string[]> =>
      waitUntil(`${count} are at work`, async () => {
        const now = await heldOf(stage, "of admission");
        assert.ok(now.length <= 2, now.join());
        return now.length === count && now;
      });
    assert.deepEqual(new Set(await held(2)).size, 2);
    await stage.death();
    for (let left = crowd.length; left > 0; left -= 1) {
      const [next = ""] = await held(Math.min(2, left));
      await stage.fleet.model.release(next);
    }
    await talk.is("idle");
    assert.equal((await talk.results()).length, crowd.length);
    return talk.evidence();
  },

  "fault-hung-cleanup": async (stage) => {
    const hung = new RowTalk(stage, "hung");
    await hung.begin({ ...chiefOf([blocker]), prompt: steps([task("blocker", "held of hung")]) });
    const neighbour = await neighbourOf(stage, hung);
    await stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 1, match: "held of hung" });
    await hung.tell("delete", { children: "await" });
    await stage.death();
    for (const text of ["one", "two", "three"]) await neighbour.say(text);
    await neighbour.hears("three");
    await neighbour.is("idle");
    const status = async () => (await stage.holdfast.read.header(hung.key))?.status;
    assert.equal((await hung.list())["status"], "closed");
    assert.notEqual(await status(), "done"); // its task still holds it
    await stage.fleet.model.release("held of hung");
    await waitUntil("what hung has ended", async () => (await status()) === "done", { timeoutMs: 60_000 });
    return neighbour.evidence();
  },
};
