import { strict as assert } from "node:assert";
import { defineAgent, withDelegates } from "@holdfast/agents";
import { waitUntil } from "../harness/wait-until.ts";
import type { AgentFleet } from "./agent-fleet.ts";
import { blocker, chiefOf, steps, stepsAgain, task } from "./row-agents.ts";
import { RowTalk } from "./row-talk.ts";
import type { RowEvidence, RowStage, RowTest } from "./row-run.ts";

const delegator = withDelegates(defineAgent({ name: "delegator", model: "delegate-two" }), [blocker]);
const CHILDREN = ["child A", "child B"] as const;

/** What the rows about delegation look at together: one conversation that delegates twice in parallel, its node killed in the middle. */
interface Delegated {
  readonly talk: RowTalk;
  /** Delegations before the death and when all is over, and once more after another reading. */
  readonly before: Awaited<ReturnType<RowStage["holdfast"]["delegations"]>>;
  readonly after: Awaited<ReturnType<RowStage["holdfast"]["delegations"]>>;
}

/** They share it, because everybody holds two model calls and a node makes only so many at a time. */
const begun = new WeakMap<AgentFleet, Promise<Pick<Delegated, "talk" | "before">>>();
async function begin(stage: RowStage): Promise<Pick<Delegated, "talk" | "before">> {
  const talk = new RowTalk(stage, "delegating");
  return { talk, before: await beginDelegating(stage, talk, delegator) };
}

/** A row that judges this conversation. */
const judged =
  (judge: (delegated: Delegated, stage: RowStage) => Promise<void> | void): RowTest =>
  async (stage): Promise<RowEvidence> => {
    const { holdfast, fleet } = stage;
    const beginning = begun.get(fleet) ?? begin(stage);
    begun.set(fleet, beginning);
    const { talk, before } = await beginning;
    await stage.death();
    for (const child of CHILDREN) await fleet.model.release(child);
    await talk.is("idle");
    await talk.entries();
    const after = await waitUntil("both results are applied", async () => {
      const rows = await holdfast.delegations(talk.key);
      return rows.every(({ applied }) => applied !== undefined) && rows;
    });
    await judge({ talk, before, after }, stage);
    return talk.evidence();
  };

/** Waits until two tasks of a conversation are at work. */
const atWork = (stage: RowStage, talk: RowTalk) =>
  waitUntil(`both tasks of ${talk.id} are at work`, async () => {
    const rows = await stage.holdfast.delegations(talk.key);
    return rows.length === 2 && rows.every(({ attempts }) => attempts === 1) && rows;
  });
async function beginDelegating(stage: RowStage, talk: RowTalk, agent: typeof delegator): Promise<Delegated["after"]> {
  await stage.holdfast.conversations.start(talk.id, { agent, agents: { blocker }, prompt: `Ask both for ${talk.id}.` });
  return atWork(stage, talk);
}
const statusesOf = (stage: RowStage, calls: Delegated["after"]): Promise<readonly unknown[]> =>
  Promise.all(calls.map(async ({ key }) => (await stage.holdfast.read.header(key))?.list["status"]));

const inShort = ({ callId, key, src }: Delegated["after"][number]): string => `${callId} ${src} ${key}`;

/** Rows about delegation, and the faults that were reported of it. */
export const TASK_ROWS: Readonly<Record<string, RowTest>> = {
  "task-result-once": judged(({ after }) => {
    assert.deepEqual(
      after.map(({ appliedTimes, applied }) => [appliedTimes, applied?.outcome]),
      [
        [1, "done"],
        [1, "done"],
      ],
    );
  }),

  "tasks-in-parallel": judged(async ({ talk }) => {
    const results = (await talk.said()).filter((text) => text.includes("result of child"));
    assert.ok(results[0]?.includes("child A") && results[1]?.includes("child B"), JSON.stringify(results));
  }),

  "task-ids-stay": judged(({ before, after }) => {
    assert.deepEqual(after.map(inShort), before.map(inShort));
  }),

  "goes-on-by-itself": judged(({ after }) => {
    assert.ok(after.every(({ reissued }) => reissued >= 1));
  }),

  "reserved-first": judged(({ before }) => {
    for (const { decided, created } of before) assert.ok(created !== undefined && decided.atMs <= created.atMs);
  }),

  "fault-child-running-for-ever": judged(async ({ after }, { holdfast }) => {
    const tasks = new Map((await holdfast.read.headers("task")).map(({ key, list }) => [key, list["status"]]));
    assert.deepEqual(
      after.map(({ key }) => tasks.get(key)),
      ["completed", "completed"],
    );
  }),

  "fault-tool-run-twice": judged(async ({ talk }) => {
    const types = (await talk.entries()).map(({ event }) => event.type).filter((type) => type.includes(".actor.call-"));
    assert.equal(types.length, new Set(types).size);
    assert.ok(
      types.every((type) => type.startsWith("xstate.done.")),
      types.join(" "),
    );
  }),

  "fault-replayed-launch": judged(async ({ talk, before }, { holdfast }) => {
    const started = new Set<string>();
    for await (const item of holdfast.family({ root: talk.key })) started.add(item.key);
    assert.equal([...started].filter((key) => key.includes(".task.")).length, before.length);
  }),

  "fault-other-host": judged(async ({ talk }) => {
    assert.deepEqual([...new Set((await talk.entries()).map(({ node }) => node))], ["node-a", "node-b"]);
  }),

  "task-cancelled-alone": async (stage) => {
    const talk = new RowTalk(stage, "cancelled-alone");
    const { holdfast, fleet } = stage;
    await holdfast.conversations.start(talk.id, { agent: delegator, agents: { blocker }, prompt: "Ask both." });
    const [first] = await waitUntil("both tasks are at work", async () => {
      const rows = await holdfast.delegations(talk.key);
      return rows.length === 2 && rows.every(({ attempts }) => attempts === 1) && rows;
    });
    await talk.tell("cancelTask", { callId: first?.callId });
    await stage.death();
    for (const child of CHILDREN) await fleet.model.release(child);
    await talk.is("idle");
    const results = (await talk.said()).filter((text) => /child|cancel/.test(text));
    assert.ok(
      results.some((text) => text.includes("result of child B")),
      results.join("; "),
    );
    assert.ok(!results.some((text) => text === "result of child A"), results.join("; "));
    return talk.evidence();
  },

  "task-result-after-sibling": async (stage) => {
    const talk = new RowTalk(stage, "sibling");
    const { holdfast, fleet } = stage;
    const names = ["early of sibling", "late of sibling"] as const;
    await talk.begin({ ...chiefOf([blocker]), prompt: steps(names.map((name) => task("blocker", name))) });
    await fleet.model.release(names[0]);
    const applied = async () => (await holdfast.delegations(talk.key)).map((call) => call.applied?.outcome);
    await waitUntil("the early one has ended", async () => (await applied()).includes("done"));
    assert.deepEqual(await applied(), ["done", undefined]);
    await stage.death();
    await fleet.model.release(names[1]);
    await talk.is("idle");
    assert.deepEqual(
      await talk.results(),
      names.map((name) => `result of ${name}`),
    );
    const asked = (await fleet.model.requests()).filter(({ lastUser }) => lastUser === names[0]);
    assert.equal(asked.length, 1);
    return talk.evidence();
  },

  "ids-not-reused": async (stage) => {
    const talk = new RowTalk(stage, "new-ids");
    const delegation = ["one", "two"].map((prompt) => task("echo", prompt));
    const echo = defineAgent({ name: "echo", model: "echo" });
    const keys = async () => {
      await talk.is("idle");
      return (await stage.holdfast.delegations(talk.key)).map(({ key }) => key);
    };
    await talk.begin({ ...chiefOf([echo]), prompt: steps(delegation) });
    const before = await keys();
    await stage.death();
    await talk.say(stepsAgain(delegation), "again");
    const after = await keys();
    assert.deepEqual(after.slice(0, 2), before);
    assert.deepEqual([after.length, new Set(after).size], [4, 4]);
    assert.deepEqual(await talk.results(), ["one", "two"]);
    return talk.evidence();
  },

  "limit-iterations": async (stage) => {
    const talk = new RowTalk(stage, "limited");
    const limits = { ...delegator.limits, maxIterations: 1 };
    await beginDelegating(stage, talk, { ...delegator, limits });
    await stage.death();
    for (const child of CHILDREN) await stage.fleet.model.release(child);
    await talk.is("error");
    assert.equal((await talk.list())["cause"], "limit");
    return talk.evidence();
  },

  "task-unknown-agent": async (stage) => {
    const talk = new RowTalk(stage, "unknown-agent");
    await stage.holdfast.conversations.start(talk.id, { agent: delegator, agents: {}, prompt: "Ask both." });
    await talk.is("idle");
    assert.equal((await stage.holdfast.delegations(talk.key)).length, 0);
    assert.ok(
      (await talk.said()).filter((text) => text.includes("HF-5201")).length >= 2,
      (await talk.said()).join("; "),
    );
    await stage.death();
    await talk.say("go on");
    await talk.is("idle");
    return talk.evidence();
  },

  "delete-awaits-children": async (stage) => {
    const talk = new RowTalk(stage, "delete-awaits");
    const calls = await beginDelegating(stage, talk, delegator);
    await talk.tell("delete", { children: "await" });
    await stage.death();
    for (const child of CHILDREN) await stage.fleet.model.release(child);
    await waitUntil(
      "it has ended for good",
      async () => (await stage.holdfast.read.header(talk.key))?.status === "done",
    );
    assert.deepEqual(await statusesOf(stage, calls), ["completed", "completed"]);
    return talk.evidence();
  },

  "fault-orphaned-children": async (stage) => {
    const talk = new RowTalk(stage, "orphaned");
    const calls = await beginDelegating(stage, talk, delegator);
    await talk.tell("interrupt");
    await stage.death();
    await talk.is("paused");
    await waitUntil("both tasks have ended", async () =>
      (await statusesOf(stage, calls)).every((status) => status === "cancelled"),
    );
    await talk.say("and now?");
    await talk.is("idle");
    return talk.evidence();
  },

  "family-one-order": async (stage) => {
    const talk = new RowTalk(stage, "family");
    const { holdfast, fleet } = stage;
    await holdfast.conversations.start(talk.id, { agent: delegator, agents: { blocker }, prompt: "Ask both." });
    await waitUntil("both tasks are at work", async () => (await holdfast.delegations(talk.key)).length === 2);
    const places: string[] = [];
    let from: string | undefined;
    const readOn = async (): Promise<void> => {
      for await (const item of holdfast.family({ root: talk.key, from })) {
        if (item.kind !== "absent") places.push(`${item.key}@${item.entry.rev}`);
        from = item.cursor;
      }
    };
    await readOn();
    const before = places.length;
    await stage.death();
    for (const child of CHILDREN) await fleet.model.release(child);
    await talk.is("idle");
    await talk.entries();
    await readOn();
    assert.ok(before > 0 && places.length > before);
    assert.equal(places.length, new Set(places).size);
    const whole: string[] = [];
    for await (const item of holdfast.family({ root: talk.key }))
      if (item.kind !== "absent") whole.push(`${item.key}@${item.entry.rev}`);
    assert.deepEqual(places.toSorted(), whole.toSorted());
    return talk.evidence();
  },

  "event-each-once": async (stage) => {
    const talk = new RowTalk(stage, "events");
    const { holdfast } = stage;
    await talk.start("hello");
    const ids: string[] = [];
    let from = "first";
    const readOn = async (): Promise<void> => {
      for await (const { event, cursor } of holdfast.events({
        subject: "conversation.*.events.*",
        from,
        follow: false,
      })) {
        ids.push(`${event.type.split(".").at(-1)} ${event.id}`);
        from = cursor;
      }
    };
    await waitUntil("its rest is announced", async () => {
      await readOn();
      return ids.at(-1)?.startsWith("idle");
    });
    await stage.death();
    await talk.say("more");
    await talk.hears("more");
    await talk.is("idle");
    await waitUntil("its next rest is announced", async () => {
      await readOn();
      return ids.length >= 5;
    });
    assert.deepEqual(
      ids.map((id) => id.split(" ")[0]),
      ["created", "running", "idle", "running", "idle"],
    );
    assert.equal(ids.length, new Set(ids).size);
    return talk.evidence();
  },

  "journal-whole": async (stage) => {
    const talk = new RowTalk(stage, "journal");
    await talk.start("hello");
    await stage.death();
    await talk.say("more");
    await talk.hears("more");
    await talk.is("idle");
    const entries = await talk.entries();
    assert.deepEqual(
      entries.map(({ rev }) => rev),
      entries.map((_, at) => at + 1),
    );
    assert.deepEqual(
      entries.map(({ prevRev }) => prevRev),
      entries.map((_, at) => at),
    );
    const [, ...revs] = entries.map(({ rev }) => rev);
    return [talk.key, 1, ...revs];
  },
};
