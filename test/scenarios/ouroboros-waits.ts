import { strict as assert } from "node:assert";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { NODES } from "./openhands-fleet.ts";
import { chiefOf, steps, task } from "./row-agents.ts";
import { ask, asker, Asking } from "./row-asking.ts";
import { answer, as, Refused, refusal } from "./row-people.ts";
import { propertiesHold } from "./row-properties.ts";
import type { RowTest } from "./row-run.ts";

const Answered = z.tuple([z.object({ answer: z.string(), by: z.string() })]);
const Unanswered = z.tuple([z.object({ error: z.object({ cause: z.string(), code: z.string() }) })]);
/** Rows about questions to people, and about who may answer them. */
export const WAIT_PROMISES: Readonly<Record<string, RowTest>> = {
  "wait-refusals": async (stage) => {
    const asking = new Asking(stage, "refusals");
    const question = await asking.ask("which?", { options: ["left", "right"] });
    const refuses = async (value: unknown): Promise<void> => {
      assert.match(await refusal(stage.holdfast.send(question, answer(value, "wrong"))), /^HF-600[25] the answer /);
      assert.equal(await asking.question("open"), question);
    };
    const wrong = ["middle", "Left", "", 0, null, ["left"], "x".repeat(20_000)];
    for (const value of wrong) await refuses(value);
    await stage.death();
    for (const value of wrong) await refuses(value);
    assert.equal((await asking.reply(question, "a1", "right")).kind, "applied");
    assert.equal((await asking.reply(question, "a1", "right")).kind, "ignored");
    assert.match(await refusal(asking.reply(question, "a2", "left")), /^HF-6001 .* is answered/);
    await asking.talk.is("idle");
    const [{ answer: taken }] = Answered.parse(await asking.talk.results());
    assert.equal(taken, "right");
    return asking.talk.evidence();
  },

  "wait-silence": async (stage) => {
    const asking = new Asking(stage, "silence");
    const allowed = new Asking(stage, "silence-allowed");
    const options = { options: ["yes", "no"], default: "yes", expiresInMs: 3000 };
    await stage.until("eve");
    const questions = [
      await asking.ask("delete everything?", options),
      await allowed.ask("shorten it?", { ...options, default: "no", onExpiry: "default" }),
    ];
    await stage.death();
    assert.deepEqual([await asking.question("expired"), await allowed.question("expired")], questions);
    for (const { talk } of [asking, allowed]) await talk.is("idle");
    const [{ error }] = Unanswered.parse(await asking.talk.results());
    assert.deepEqual([error.cause, error.code], ["timeout", "HF-5204"]);
    assert.deepEqual(Answered.parse(await allowed.talk.results()), [{ answer: "no", by: "default" }]);
    assert.match(await refusal(asking.reply(questions[0] ?? "", "a1", "yes")), /^HF-6004 .* has expired/);
    return asking.talk.evidence();
  },

  "wait-agent-never-approves": async (stage) => {
    const asking = new Asking(stage, "agent-approves");
    await asking.talk.begin({ ...chiefOf([asker]), prompt: steps([task("asker", steps([ask("may I?")]))]) });
    const question = await asking.question("open");
    const tries = async (): Promise<void> => {
      for (const id of ["chief", "asker", "local"]) {
        await using agent = await as(stage, "agent", id);
        for (const reply of [answer("yes"), { type: "decline", answerId: "d1" }]) {
          assert.match(await refusal(agent.holdfast.send(question, reply)), /^HF-6003 An agent may not/);
        }
        assert.notEqual((await agent.holdfast.send(question, { type: "cancel" })).kind, "applied");
      }
      await asking.talk.say("yes, do it", `yes-${(await asking.talk.said()).length}`); // words to the chief are no answer
      assert.equal(await asking.question("open"), question);
    };
    await tries();
    await stage.death();
    await tries();
    assert.equal((await asking.reply(question, "a1", "you may")).kind, "applied");
    await asking.talk.is("idle");
    const calls = await stage.holdfast.delegations(asking.talk.key);
    assert.deepEqual(
      calls.filter(({ src }) => src === "ownerWait").map(({ appliedTimes }) => appliedTimes),
      [1],
    );
    assert.ok((await asking.talk.said()).some((text) => text.includes("you may")));
    return asking.talk.evidence();
  },
};

/** Rows about what a question survives. */
export const WAIT_FAULTS: Readonly<Record<string, RowTest>> = {
  "fault-approval-in-memory": async (stage) => {
    const asking = new Asking(stage, "in-memory");
    const question = await asking.ask("ship it?", { options: ["yes", "no"] });
    const before = await stage.holdfast.read.actor(question);
    await stage.death();
    assert.equal(await asking.question("open"), question);
    const after = await stage.holdfast.read.actor(question);
    assert.deepEqual(after?.record.snapshot.context, before?.record.snapshot.context);
    assert.equal((await asking.reply(question, "a1", "yes")).kind, "applied");
    await asking.talk.is("idle");
    assert.deepEqual(Answered.parse(await asking.talk.results()), [{ answer: "yes", by: "owner" }]);
    const [call, ...more] = await stage.holdfast.delegations(asking.talk.key);
    assert.deepEqual([call?.key, call?.appliedTimes, more.length], [question, 1, 0]);
    return asking.talk.evidence();
  },

  "inbox-ten-racing": async (stage) => {
    const asking = new Asking(stage, "ten-racing");
    const question = await asking.ask("who is first?");
    await stage.death();
    const people = await Promise.all(Array.from({ length: 10 }, (_, n) => as(stage, "person", `racer${n}`)));
    try {
      const told = await Promise.all(
        people.map(({ holdfast }, n) =>
          holdfast.send(question, answer(`mine ${n}`, `race-${n}`), { timeoutMs: 30_000 }),
        ),
      );
      const winners = told.flatMap(({ kind }, n) => (kind === "applied" ? [n] : []));
      assert.equal(winners.length, 1, JSON.stringify(told));
      for (const [n, each] of told.entries()) if (n !== winners[0]) assert.equal(Refused.parse(each).code, "HF-6001");
      await asking.talk.is("idle");
      const [{ answer: taken }] = Answered.parse(await asking.talk.results());
      assert.equal(taken, `mine ${winners[0]}`);
      const [opened, ...since] = await stage.holdfast.read.journal(question);
      const answers = since.filter(({ event }) => event.type === "answer").map(({ node }) => node);
      assert.deepEqual([opened?.node, answers], [NODES.killed, [NODES.after]]);
    } finally {
      await Promise.all(people.map((person) => person[Symbol.asyncDispose]()));
    }
    return asking.talk.evidence();
  },

  "inv-2": async (stage) => {
    await propertiesHold("inv-2");
    const asking = new Asking(stage, "never-again");
    const question = await asking.ask("once?");
    await asking.reply(question, "a1", "yes");
    await asking.talk.is("idle");
    const ended = await waitUntil("the question has ended", async () => {
      const actor = await stage.holdfast.read.actor(question);
      return actor?.record.status === "done" && actor.record.outbox.length === 0 && actor;
    });
    await stage.death();
    const late = [answer("no", "a2"), { type: "decline", answerId: "d1" }, { type: "cancel" }];
    for (const event of late) assert.notEqual((await stage.holdfast.send(question, event)).kind, "applied");
    await asking.talk.say("again", "again");
    await asking.talk.is("idle");
    const after = await stage.holdfast.read.actor(question);
    assert.deepEqual([after?.record.rev, after?.record.snapshot], [ended.record.rev, ended.record.snapshot]);
    return asking.talk.evidence();
  },
};
