import { strict as assert } from "node:assert";
import { ASK_OWNER, defineAgent } from "@holdfast/agents";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { NODES } from "./openhands-fleet.ts";
import { blocker, chiefOf, steps, task, type Call } from "./row-agents.ts";
import { ask } from "./row-asking.ts";
import { answer, PATIENT, People, refusal } from "./row-people.ts";
import type { RowStage, RowTest } from "./row-run.ts";
import { RowTalk } from "./row-talk.ts";

const Result = z.union([
  z.looseObject({ answer: z.unknown() }),
  z.looseObject({ error: z.looseObject({ cause: z.string(), code: z.string() }) }),
]);

/** Keys of the questions of a conversation, in the order of their calls, once there are so many that are open. */
const questionsOf = (stage: RowStage, { key, id }: RowTalk, count: number): Promise<readonly string[]> =>
  waitUntil(`${id} has ${count} open questions`, async () => {
    const calls = (await stage.holdfast.delegations(key)).filter(({ src }) => src === "ownerWait");
    const headers = await Promise.all(calls.map((call) => stage.holdfast.read.header(call.key)));
    const open = headers.filter((header) => header?.list["status"] === "open");
    return open.length === count && calls.length === count && calls.map((call) => call.key);
  });

const isAt = ({ holdfast }: RowStage, question: string, status: string): Promise<unknown> =>
  waitUntil(
    `the question is ${status}`,
    async () => (await holdfast.read.header(question))?.list["status"] === status,
    { timeoutMs: 60_000 },
  );

/** A conversation that asks, and has given work to a held sub-agent in the same step. @returns key of its question */
async function askingBeside(stage: RowStage, id: string): Promise<readonly [talk: RowTalk, question: string]> {
  const talk = new RowTalk(stage, id);
  const { agent, agents } = chiefOf([blocker]);
  const chief = { ...agent, tools: [...agent.tools, ASK_OWNER] };
  await talk.begin({ agent: chief, agents, prompt: steps([ask("which?"), task("blocker", `beside of ${id}`)]) });
  await stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 1, match: `beside of ${id}` });
  const [question = ""] = await questionsOf(stage, talk, 1);
  return [talk, question];
}

/** What its question came to. */
async function firstResult(talk: RowTalk): Promise<unknown> {
  await talk.is("idle");
  const [first] = z.tuple([Result], z.unknown()).parse(await talk.results());
  return first["answer"];
}

const payment = { id: "t1", name: "pay", args: { amount: 5 } };
const amount = { type: "object", required: ["amount"], properties: { amount: { type: "integer", maximum: 9 } } };
const approval = { kind: "tool_call", toolCall: payment, answerSchema: amount };
const act = (action: string, value?: unknown) => ({
  type: "answer",
  answerId: "a1",
  action,
  ...(value !== undefined && { value }),
});

/** How each kind is asked, what does not settle it, what does, and what that comes to. */
const KINDS: readonly {
  readonly asks: Readonly<Record<string, unknown>>;
  readonly wrong: Readonly<Record<string, unknown>> & { readonly type: string };
  readonly right: Readonly<Record<string, unknown>> & { readonly type: string };
  readonly result: unknown;
}[] = [
  {
    asks: { ...approval, actions: ["accept", "reject"] },
    wrong: act("edit", { amount: 3 }),
    right: act("accept"),
    result: { answer: true, by: "owner", action: "accept" },
  },
  {
    asks: { ...approval, actions: ["accept", "edit"] },
    wrong: act("edit", { amount: 10 }),
    right: act("edit", { amount: 3 }),
    result: { answer: { amount: 3 }, by: "owner", action: "edit" },
  },
  {
    asks: { ...approval, actions: ["edit", "respond"] },
    wrong: act("accept"),
    right: act("respond", "why so much?"),
    result: { answer: "why so much?", by: "owner", action: "respond" },
  },
  {
    asks: { ...approval, actions: ["accept", "reject"] },
    wrong: act("respond", "why?"),
    right: { ...act("reject"), reason: "too much" },
    result: { error: { cause: "policy", code: "HF-6007" } },
  },
  {
    asks: { kind: "input_required", answerSchema: amount },
    wrong: answer({ amount: "3" }),
    right: answer({ amount: 3 }),
    result: { answer: { amount: 3 }, by: "owner" },
  },
  {
    asks: { kind: "confirmation", options: ["yes", "no"] },
    wrong: answer("maybe"),
    right: answer("no"),
    result: { answer: "no", by: "owner" },
  },
  {
    asks: { kind: "deploy:window" },
    wrong: answer("  "),
    right: answer("tonight"),
    result: { answer: "tonight", by: "owner" },
  },
];

/** Rows about what is asked, and about when an answer counts. */
export const ANSWER_PROMISES: Readonly<Record<string, RowTest>> = {
  "wait-kinds": async (stage) => {
    const talk = new RowTalk(stage, "kinds");
    const calls: readonly Call[] = KINDS.map(({ asks }, n) => ask(`question ${n}?`, asks));
    await talk.begin({
      agent: defineAgent({ name: "asker", model: "puppet", tools: [ASK_OWNER] }),
      prompt: steps(calls),
    });
    const questions = await questionsOf(stage, talk, KINDS.length);
    const shown = async (): Promise<void> => {
      const kinds = await Promise.all(
        questions.map(async (key) => (await stage.holdfast.read.header(key))?.list["kind"]),
      );
      assert.deepEqual(
        kinds,
        KINDS.map(({ asks }) => asks["kind"]),
      );
      for (const [n, { wrong }] of KINDS.entries())
        assert.match(
          await refusal(stage.holdfast.send(questions[n] ?? "", wrong, PATIENT)),
          /^HF-600[256] /,
          `question ${n}`,
        );
    };
    await shown();
    await stage.death();
    await shown();
    for (const [n, { right }] of KINDS.entries())
      assert.equal((await stage.holdfast.send(questions[n] ?? "", right, PATIENT)).kind, "applied", `question ${n}`);
    await talk.is("idle");
    const results = z.array(Result).parse(await talk.results());
    for (const [n, { result }] of KINDS.entries()) assert.partialDeepStrictEqual(results[n], result, `question ${n}`);
    return talk.evidence();
  },

  "wait-early-answers": async (stage) => {
    const [talk, kept] = await askingBeside(stage, "early"); // its conversation works on something else of the step
    const [absent, unheard] = await askingBeside(stage, "unheard");
    assert.equal((await stage.holdfast.send(kept, answer("early"))).kind, "applied");
    await stage.until("absence");
    // Nobody is there at all.
    assert.equal((await stage.holdfast.send(unheard, answer("unheard"), { timeoutMs: 300 })).kind, "accepted");
    await stage.death();
    for (const question of [kept, unheard]) {
      await isAt(stage, question, "answered");
      assert.match(await refusal(stage.holdfast.send(question, answer("late", "a2"), PATIENT)), /^HF-6001 /);
    }
    await stage.fleet.model.release("beside of early");
    await stage.fleet.model.release("beside of unheard");
    assert.deepEqual([await firstResult(talk), await firstResult(absent)], ["early", "unheard"]);
    return talk.evidence();
  },

  "wait-consumed": async (stage) => {
    const [talk, question] = await askingBeside(stage, "consumed");
    assert.equal((await stage.holdfast.send(question, answer("first"))).kind, "applied");
    await stage.death();
    await isAt(stage, question, "answered");
    assert.equal((await talk.list())["status"], "waiting"); // nobody has gone on, and that is seen
    await stage.fleet.model.release("beside of consumed");
    assert.equal(await firstResult(talk), "first");
    await isAt(stage, question, "consumed");
    const [call] = (await stage.holdfast.delegations(talk.key)).filter(({ key }) => key === question);
    assert.equal(call?.appliedTimes, 1);
    const taken = (await stage.holdfast.read.journal(question)).filter(({ event }) => event.type === "consumed");
    assert.equal(taken.length, 1);
    const applied = (await talk.entries()).find(({ rev }) => rev === call?.applied?.rev);
    assert.deepEqual([taken[0]?.node, applied?.node], [NODES.after, NODES.after]);
    assert.ok((taken[0]?.atMs ?? 0) >= (applied?.atMs ?? Infinity), "consumed before the step that goes on was stored");
    return talk.evidence();
  },

  "wait-revoked": async (stage) => {
    await using people = new People(stage);
    const [talk, question] = await askingBeside(stage, "revoked");
    const revoke = (answerId: string) => ({ type: "revoke", answerId });
    await people.settle("person-anna", question, answer("the first"));
    await isAt(stage, question, "answered");
    await stage.death();
    await people.areRefused(["person-ben"], question, revoke("a1"), /^HF-6003 /);
    await people.settle("person-anna", question, revoke("a1"));
    await isAt(stage, question, "open");
    await people.areRefused(["person-anna"], question, answer("the first"), /^HF-6001 .* was revoked/);
    await people.settle("person-ben", question, answer("the second", "b1"));
    await stage.fleet.model.release("beside of revoked");
    assert.equal(await firstResult(talk), "the second");
    await isAt(stage, question, "consumed");
    await people.areRefused(["person-ben"], question, revoke("b1"), /^HF-6001 .* is consumed/);
    return talk.evidence();
  },

  "wait-cap": async (stage) => {
    const talk = new RowTalk(stage, "cap");
    const limits = { maxOpenWaits: 2 };
    const agent = defineAgent({ name: "asker", model: "puppet", tools: [ASK_OWNER], limits });
    const several = ["first", "second", "third"].map((text) => ask(`the ${text}?`));
    await talk.begin({ agent, prompt: steps(several, [ask("the last?")]) });
    const questions = await questionsOf(stage, talk, 2);
    await stage.death();
    assert.deepEqual(await questionsOf(stage, talk, 2), questions);
    for (const question of questions)
      assert.equal((await stage.holdfast.send(question, answer("yes"), PATIENT)).kind, "applied");
    const last = await waitUntil("there is room for another one", async () => {
      const calls = await stage.holdfast.delegations(talk.key);
      return calls.filter(({ src, key }) => src === "ownerWait" && !questions.includes(key)).at(0)?.key;
    });
    await isAt(stage, last, "open");
    assert.equal((await stage.holdfast.send(last, answer("yes"))).kind, "applied");
    await talk.is("idle");
    const results = z.array(Result).parse(await talk.results());
    const said = results.map((result) =>
      "answer" in result ? result["answer"] : z.object({ code: z.string() }).parse(result["error"]).code,
    );
    assert.deepEqual(said, ["yes", "yes", "HF-5202", "yes"]);
    return talk.evidence();
  },

  "wait-batch": async (stage) => {
    await using people = new People(stage);
    const talk = new RowTalk(stage, "batch");
    const calls = [ask("one?"), ask("two?", { options: ["yes", "no"] }), ask("three?", { assignee: "person-anna" })];
    await talk.begin({
      agent: defineAgent({ name: "asker", model: "puppet", tools: [ASK_OWNER] }),
      prompt: steps(calls),
    });
    const questions = await questionsOf(stage, talk, calls.length);
    const ids = questions.map((key) => key.split(".")[2] ?? "");
    await stage.death();
    const values = ["tonight", "maybe", "mine"];
    const batch = [...ids, "nobody"].map((id, n) => ({ id, answerId: `b${n}`, value: values[n] ?? "" }));
    await refusal(stage.holdfast.send(questions[1] ?? "", answer("neither"), PATIENT)); // somebody is there again
    const told = await stage.holdfast.waits.answerAll(batch);
    assert.partialDeepStrictEqual(told, [
      { id: ids[0], result: { kind: "applied" } },
      { id: ids[1], result: { kind: "refused", code: "HF-6005" } },
      { id: ids[2], result: { kind: "refused", code: "HF-6003" } },
      { id: "nobody", fault: { code: "HF-3001" } },
    ]);
    const again = await stage.holdfast.waits.answerAll(batch.slice(0, 1)); // the same batch counts once
    assert.partialDeepStrictEqual(again, [{ result: { kind: "ignored" } }]);
    await people.settle("person-local", questions[1] ?? "", answer("yes"));
    await people.settle("person-anna", questions[2] ?? "", answer("hers"));
    await talk.is("idle");
    const results = z.array(Result).parse(await talk.results());
    assert.deepEqual(
      results.map((result) => result["answer"]),
      ["tonight", "yes", "hers"],
    );
    return talk.evidence();
  },

  "inbox-filters": async (stage) => {
    const talk = new RowTalk(stage, "inbox");
    const calls = [
      ask("first?", { assignee: "person-iris" }),
      ask("second?"),
      ask("third?", { assignee: "person-iris" }),
    ];
    await talk.begin({
      agent: defineAgent({ name: "asker", model: "puppet", tools: [ASK_OWNER] }),
      prompt: steps(calls),
    });
    const questions = await questionsOf(stage, talk, calls.length);
    const beganMs = (await stage.holdfast.read.journal(questions[0] ?? ""))[0]?.atMs ?? 0;
    const conversation = "inbox";
    const list = async (filter: Parameters<typeof stage.holdfast.waits.list>[0]): Promise<readonly string[]> =>
      (await stage.holdfast.waits.list(filter)).map(({ question }) => question).toSorted();
    const isListed = async (): Promise<void> => {
      assert.deepEqual(await list({ conversation }), ["first?", "second?", "third?"]);
      assert.deepEqual(await list({ assignee: "person-iris" }), ["first?", "third?"]);
      assert.deepEqual(await list({ conversation: "of-nobody" }), []);
      assert.deepEqual(await list({ conversation, olderThanMs: Date.now() - beganMs + 600_000 }), []);
    };
    await isListed();
    await stage.until("absence");
    await isListed(); // from what is stored: nobody is there to be asked
    await stage.death();
    assert.equal((await stage.holdfast.send(questions[1] ?? "", answer("yes"), PATIENT)).kind, "applied");
    assert.deepEqual(await list({ conversation }), ["first?", "third?"]);
    assert.deepEqual(await list({ conversation, olderThanMs: 1000 }), ["first?", "third?"]); // a takeover takes longer
    assert.deepEqual(await list({ conversation, status: "all" }), ["first?", "second?", "third?"]);
    await using people = new People(stage);
    for (const question of [questions[0], questions[2]])
      await people.settle("person-iris", question ?? "", answer("yes"));
    await talk.is("idle");
    assert.deepEqual(await list({ assignee: "person-iris" }), []);
    return talk.evidence();
  },
};
