import { strict as assert } from "node:assert";
import type { EnvelopeOf } from "@holdfast/protocol";
import { waitUntil } from "../harness/wait-until.ts";
import { RawStreams, type Letter } from "./raw-streams.ts";
import { blocker, chiefOf, steps, task } from "./row-agents.ts";
import type { RowStage, RowTest } from "./row-run.ts";
import { neighbourOf, RowTalk } from "./row-talk.ts";

/**
 * A record is spoilt while nobody owns it. It is set aside as it is, and said; who lives beside it is answered. Once the record is what it was, it
 * goes on with what was said meanwhile.
 */
const spoilt =
  (
    id: string,
    spoil: (bytes: Uint8Array) => Uint8Array,
    wanted: { readonly state: string; readonly code: string },
  ): RowTest =>
  async (stage) => {
    await using raw = await RawStreams.open(stage);
    const { holdfast } = stage;
    const talk = new RowTalk(stage, id);
    await talk.start("hello");
    await talk.entries();
    const neighbour = await neighbourOf(stage, talk);
    await stage.until("absence");
    const whole = await raw.record(talk.key);
    const broken = spoil(Uint8Array.from(whole));
    await raw.overwrite(talk.key, broken);
    try {
      await stage.death();
      await holdfast.send(
        talk.key,
        { type: "userMessage", messageId: "m1", text: "are you there?" },
        { timeoutMs: 300 },
      );
      await neighbour.say("and you?");
      await neighbour.is("idle");
      const [entry, ...more] = await waitUntil("it is said", async () => {
        const entries = await holdfast.stuck.entries(talk.key);
        return entries.length > 0 && entries;
      });
      assert.deepEqual(
        [entry?.subject, entry?.state, entry?.code, more.length],
        ["actor", wanted.state, wanted.code, 0],
      );
      assert.deepEqual(await raw.record(talk.key), broken);
    } finally {
      await raw.overwrite(talk.key, whole);
    }
    assert.equal((await holdfast.stuck.command("retry", talk.key, { timeoutMs: 60_000 })).kind, "done");
    await talk.hears("are you there?");
    await talk.is("idle");
    assert.deepEqual(await talk.said(), ["hello", "hello", "are you there?", "are you there?"]);
    return talk.evidence();
  };

type Settled = EnvelopeOf<"settled">;
const settledIn = (letters: readonly Letter[]): readonly Settled[] =>
  letters.flatMap(({ envelope }) => (envelope.kind === "settled" ? [envelope] : []));

/** A delegation to two that has ended, with everything that was sent to the conversation and to its tasks. */
async function delegated(stage: RowStage, raw: RawStreams, id: string) {
  const talk = new RowTalk(stage, id);
  const letters = await raw.letters(talk.key);
  const names = [`one of ${id}`, `two of ${id}`];
  await talk.begin({ ...chiefOf([blocker]), prompt: steps(names.map((name) => task("blocker", name))) });
  const keys = await waitUntil(`the tasks of ${id} are there`, async () => {
    const calls = await stage.holdfast.delegations(talk.key);
    return calls.length === names.length && calls.map(({ key }) => key);
  });
  const tasks = await Promise.all(keys.map(async (key) => ({ key, letters: await raw.letters(key) })));
  await stage.fleet.model.release(`of ${id}`);
  await talk.is("idle");
  const results = names.map((name) => `result of ${name}`);
  assert.deepEqual(await talk.results(), results);
  return { talk, letters, tasks, results };
}

/** Whatever was sent to it before has been considered; the history is one that providers accept. */
async function stillWorks(talk: RowTalk, text: string): Promise<void> {
  await talk.say(text);
  await talk.is("idle");
  assert.equal((await talk.said()).at(-1), text);
}

/** Rows about bytes that should not be there: damaged, newer, doubled, without a place. */
export const DAMAGE_ROWS: Readonly<Record<string, RowTest>> = {
  "fault-torn-tail": spoilt("torn", (bytes) => bytes.subarray(0, bytes.length - 20), {
    state: "quarantined",
    code: "HF-2002",
  }),
  "broken-record-alone": spoilt("broken", (bytes) => bytes.fill(0xff, bytes.length - 20), {
    state: "quarantined",
    code: "HF-2002",
  }),
  "fault-newer-state": spoilt("newer", (bytes) => bytes.fill(bytes[2] === undefined ? 0 : bytes[2] + 1, 2, 3), {
    state: "parked",
    code: "HF-2003",
  }),

  "fault-result-twice": async (stage) => {
    await using raw = await RawStreams.open(stage);
    const { talk, letters, results } = await delegated(stage, raw, "result-twice");
    const twice = async (): Promise<void> => {
      for (const { bytes } of letters.filter(({ envelope }) => envelope.kind === "settled"))
        await raw.post(talk.key, bytes);
    };
    assert.ok(settledIn(letters).length >= 4); // two replies, two tasks
    await twice();
    await stillWorks(talk, "go on");
    await stage.death();
    await twice();
    await stillWorks(talk, "and on");
    const calls = await stage.holdfast.delegations(talk.key);
    assert.deepEqual(
      calls.map(({ appliedTimes }) => appliedTimes),
      [1, 1],
    );
    const said = await talk.said();
    assert.deepEqual(
      said.filter((text) => results.includes(text)),
      results,
    );
    return talk.evidence();
  },

  "fault-result-without-call": async (stage) => {
    await using raw = await RawStreams.open(stage);
    const { talk, letters } = await delegated(stage, raw, "no-call");
    const [known] = settledIn(letters);
    assert.ok(known !== undefined);
    const stray = async (childId: string): Promise<void> => {
      const childKey = `${childId}-nobody`;
      for (const kind of ["done", "error"]) {
        const event = { type: `xstate.${kind}.actor.${childId}`, output: "stray result", error: "stray result" };
        await raw.post(talk.key, { ...known, id: `${childKey}:${kind}`, childId, childKey, event });
      }
    };
    for (const childId of ["call-1-nobody", "model-99-1"]) await stray(childId);
    await stillWorks(talk, "go on");
    await stage.death();
    for (const childId of ["call-2-nobody", "model-98-1"]) await stray(childId);
    await stillWorks(talk, "and on");
    assert.ok(!JSON.stringify(await talk.entries()).includes("stray result"));
    return talk.evidence();
  },

  "finished-not-overwritten": async (stage) => {
    await using raw = await RawStreams.open(stage);
    const { talk, letters, tasks, results } = await delegated(stage, raw, "finished");
    const stored = () =>
      waitUntil("the tasks have ended and said so", async () => {
        const found = await Promise.all(tasks.map(({ key }) => stage.holdfast.read.actor(key)));
        return found.every((actor) => actor?.record.status === "done" && actor.record.outbox.length === 0) && found;
      });
    const before = await stored();
    await stage.death();
    /** What had become of it, told once more and otherwise. */
    const tellLate = async (to: string, told: Settled | undefined): Promise<void> => {
      assert.ok(told !== undefined, to);
      const event = { type: told.event.type.replace("done", "error"), error: { message: "it failed after all" } };
      await raw.post(to, { ...told, id: `${told.id}:late`, event });
    };
    for (const { key, letters: toTask } of tasks) {
      await tellLate(key, settledIn(toTask)[0]);
      await tellLate(
        talk.key,
        settledIn(letters).find(({ childKey }) => childKey === key),
      );
      assert.equal((await stage.holdfast.send(key, { type: "cancel" })).kind, "refused"); // and it has read that
    }
    await stillWorks(talk, "go on");
    assert.deepEqual(await stored(), before);
    assert.deepEqual(
      (await talk.said()).filter((text) => results.includes(text)),
      results,
    );
    assert.ok(!JSON.stringify(await talk.entries()).includes("after all"));
    return talk.evidence();
  },
};
