import { strict as assert } from "node:assert";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { NODES } from "./openhands-fleet.ts";
import { chiefOf, steps, task } from "./row-agents.ts";
import { ask, asker, Asking } from "./row-asking.ts";
import type { RowEvidence, RowStage, RowTest } from "./row-run.ts";

const Answer = z.object({ answer: z.string() });
/** Long enough for the node to die first, about as long as nobody is there. ms */
const EXPIRES_MS = 3000;

const asked =
  (id: string, test: (asking: Asking, question: string, stage: RowStage) => Promise<void>): RowTest =>
  async (stage): Promise<RowEvidence> => {
    const asking = new Asking(stage, id);
    await test(asking, await asking.begin(), stage);
    return asking.talk.evidence();
  };

/** Rows about questions to people. */
export const WAIT_ROWS: Readonly<Record<string, RowTest>> = {
  "wait-survives": asked("wait-survives", async (asking, question, stage) => {
    await stage.death();
    assert.equal(await asking.question("open"), question);
    await asking.talk.is("waiting");
    await asking.reply(question, "a1", "title");
    assert.match(await asking.result(), /title/);
  }),

  "wait-answered-once": asked("wait-once", async (asking, question, stage) => {
    await asking.reply(question, "a1", "words");
    await stage.death();
    assert.notEqual((await asking.reply(question, "a1", "words")).kind, "applied");
    assert.notEqual((await asking.reply(question, "a2", "title")).kind, "applied");
    assert.match(await asking.result(), /words/);
    await asking.talk.say("thank you"); // it may have ended before the death
    await asking.talk.is("idle");
  }),

  "wait-declined": asked("wait-declined", async (asking, question, stage) => {
    await stage.death();
    await stage.holdfast.send(question, { type: "decline", answerId: "d1", reason: "not today" });
    await asking.question("declined");
    assert.match(await asking.result(), /declin/);
  }),

  "wait-expires": async (stage) => {
    const asking = new Asking(stage, "wait-expires");
    await stage.until("eve");
    await asking.talk.begin({ agent: asker, prompt: steps([ask("quick?", { expiresInMs: EXPIRES_MS })]) });
    const question = await asking.question("open");
    await stage.death();
    await asking.question("expired");
    await asking.talk.is("idle");
    const [result] = z.tuple([z.object({ error: z.object({ cause: z.string() }) })]).parse(await asking.talk.results());
    assert.equal(result.error.cause, "timeout");
    const late = await asking.reply(question, "a1", "too late");
    assert.equal(late.kind, "refused");
    const [opened, ...since] = await stage.holdfast.read.journal(question);
    const expired = since.filter(({ event }) => event.type === "expiryDue");
    assert.deepEqual([expired.length, expired[0]?.node], [1, NODES.after]);
    assert.ok((expired[0]?.atMs ?? 0) - (opened?.atMs ?? 0) >= EXPIRES_MS);
    return asking.talk.evidence();
  },

  "wait-of-child": async (stage) => {
    const asking = new Asking(stage, "wait-of-child");
    await asking.talk.begin({ ...chiefOf([asker]), prompt: steps([task("asker", steps([ask("which file?")]))]) });
    const question = await asking.question("open");
    const isShown = () =>
      waitUntil("it says that it waits for a person", async () => {
        const { status, waitingOn } = await asking.talk.list();
        return status === "waiting" && waitingOn === "owner";
      });
    await isShown();
    await stage.death();
    await isShown();
    assert.equal(await asking.question("open"), question);
    await asking.reply(question, "a1", "the second");
    await asking.talk.is("idle");
    const [[{ answer }]] = z.tuple([z.tuple([Answer])]).parse(await asking.talk.results());
    assert.equal(answer, "the second");
    return asking.talk.evidence();
  },

  "wait-of-other-call": async (stage) => {
    const asking = new Asking(stage, "wait-of-other");
    await asking.talk.begin({ agent: asker, prompt: steps([ask("the first?"), ask("the second?")]) });
    const questions = await waitUntil("both questions are open", async () => {
      const calls = await stage.holdfast.delegations(asking.talk.key);
      const headers = await Promise.all(calls.map(({ key }) => stage.holdfast.read.header(key)));
      return headers.filter((header) => header?.list["status"] === "open").length === 2 && calls.map(({ key }) => key);
    });
    await stage.death();
    const [first = "", second = ""] = questions;
    await asking.reply(second, "a2", "to the second");
    await asking.talk.is("waiting");
    await asking.reply(first, "a1", "to the first");
    await asking.talk.is("idle");
    const answers = z.array(Answer).parse(await asking.talk.results());
    assert.deepEqual(
      answers.map(({ answer }) => answer),
      ["to the first", "to the second"],
    );
    return asking.talk.evidence();
  },

  "fault-message-approves": asked("wait-message", async (asking, question, stage) => {
    await asking.talk.say("do not do that");
    await stage.death();
    await asking.talk.say("not that either");
    assert.equal(await asking.question("open"), question);
    await asking.talk.is("waiting");
    await asking.reply(question, "a1", "title");
    assert.match(await asking.result(), /title/);
  }),

  "fault-answer-after-restart": asked("wait-restart", async (asking, question, stage) => {
    await stage.death();
    await asking.reply(question, "a1", "words");
    const [call] = (await stage.holdfast.delegations(asking.talk.key)).filter(({ key }) => key === question);
    assert.match(await asking.result(), /words/);
    const after = (await stage.holdfast.delegations(asking.talk.key)).find(({ key }) => key === question);
    assert.deepEqual([after?.callId, after?.appliedTimes], [call?.callId, 1]);
  }),
};
