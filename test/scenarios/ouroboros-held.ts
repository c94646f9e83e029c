import { strict as assert } from "node:assert";
import { z } from "zod";
import { untilServing } from "../harness/until-serving.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { fleetGroup, NODES } from "./ouroboros-fleet.ts";
import { Asking } from "./row-asking.ts";
import { typed } from "./row-command.ts";
import { asked } from "./row-money.ts";
import type { RowStage, RowTest } from "./row-run.ts";
import type { RowGroup, RowWorld } from "./row-scenario.ts";
import { RowTalk } from "./row-talk.ts";

const REASON = "it spends too much";
/** Another one that lives when the fleet is stopped. */
const BESIDE = "node-c";
const PATIENT = { timeoutMs: 60_000 };

const Held = z.object({ held: z.array(z.object({ key: z.string(), sinceMs: z.number(), why: z.string() })) });

const isHeld = ({ holdfast }: RowWorld, key: string): Promise<boolean> =>
  waitUntil(`${key} is held`, async () => (await holdfast.stuck.held()).some((entry) => entry.key === key), PATIENT);

/** A conversation whose call is cut off, and whatever a death may have done to it once the next node owns everything. */
async function cutOff(stage: RowStage, id: string): Promise<RowTalk> {
  const talk = new RowTalk(stage, id);
  await talk.startHeld(`work of ${id}`);
  return talk;
}

/** It is held, was asked nothing more, and stays so although what it waited for could be had. */
async function staysHeld(stage: RowStage, talk: RowTalk): Promise<void> {
  await isHeld(stage, talk.key);
  const before = await stage.holdfast.read.actor(talk.key);
  await stage.fleet.model.release(`work of ${talk.id}`);
  const beside = new RowTalk(stage, `beside-${talk.id}`);
  await beside.start("hello"); // the fleet works again
  await isHeld(stage, talk.key);
  assert.equal(await asked(stage, `work of ${talk.id}`), 1);
  assert.equal((await stage.holdfast.read.actor(talk.key))?.record.rev, before?.record.rev);
}

/** Somebody says so, and it goes on. */
async function goesOn(stage: RowStage, talk: RowTalk): Promise<void> {
  await typed(stage, ["held", "resume", talk.key]);
  await stage.fleet.model.release(`work of ${talk.id}`);
  await talk.hears(`result of work of ${talk.id}`);
  await talk.is("idle");
}

/** Every node is told to stop everything, and both die of something else; then another one comes, and it is lifted. */
const stopped: RowGroup = fleetGroup(
  "stopped",
  {
    "panic-stops-fleet": async (stage) => {
      const talk = await cutOff(stage, "in-force");
      await stage.until("absence");
      const asks = (await stage.fleet.model.requests()).length;
      assert.ok((await stage.fleet.model.requests()).every(({ aborted, answered }) => aborted || answered));
      await stage.death();
      await staysHeld(stage, talk);
      const since = (await stage.fleet.model.requests()).slice(asks);
      assert.deepEqual(
        since.filter(({ lastUser }) => lastUser.startsWith("work of")),
        [],
      );
      await goesOn(stage, talk);
      return talk.evidence();
    },

    "case-8": async (stage) => {
      const asking = new Asking(stage, "after-panic");
      const question = await asking.ask("go on?");
      const talk = await cutOff(stage, "after-panic-job");
      await stage.death();
      await staysHeld(stage, talk);
      assert.equal(await asking.question("open"), question); // nobody has answered it either
      assert.equal((await asking.talk.list())["status"], "waiting");
      await typed(stage, ["held", "cancel", talk.key]);
      await talk.is("error");
      assert.equal(await asked(stage, "work of after-panic-job"), 1);
      return talk.evidence();
    },

    "not-back-panic": async (stage) => {
      const talk = await cutOff(stage, "not-back-panic");
      await stage.death();
      await staysHeld(stage, talk);
      const { held } = Held.parse(await typed(stage, ["held", "list", "--type", "conversation"]));
      const why = held.find(({ key }) => key === talk.key)?.why;
      assert.equal(why, `cut off when person-local stopped the fleet: ${REASON}`);
      await goesOn(stage, talk);
      return talk.evidence();
    },
  },
  (world, first) => {
    const { fleet, holdfast } = world;
    let revision = 0;
    let beside = first;
    return {
      eve: {
        isNeeded: true,
        act: async () => {
          beside = await fleet.startNode(BESIDE);
          await untilServing(holdfast, () => [first, beside], PATIENT);
          await beside.freeze();
          ({ revision } = await holdfast.panic.raise(REASON));
          const answers = () => holdfast.panic.answers(revision, 0);
          const one = await waitUntil("one has stopped", async () => {
            const said = await answers();
            return said.stopped.length > 0 && said;
          });
          // It is not in force as long as one has not said so.
          assert.deepEqual([one.stopped, [...one.unanswered, ...one.silent]], [[NODES.killed], [BESIDE]]);
          beside.thaw();
          await waitUntil("both have stopped", async () => (await answers()).stopped.length === 2, PATIENT);
        },
      },
      absence: {
        isNeeded: true,
        act: () => Promise.all([first.kill("SIGKILL"), beside.kill("SIGKILL")]).then(() => undefined),
      },
      death: {
        isNeeded: true,
        act: async () => {
          const after = await fleet.startNode(NODES.after, []);
          await waitUntil(
            "who comes obeys it",
            async () => (await holdfast.panic.answers(revision, 0)).stopped.includes(NODES.after),
            PATIENT,
          );
          assert.deepEqual(
            (await holdfast.read.fleet()).leases.filter(
              ({ state, holder }) => state === "held" && holder.startsWith(NODES.after),
            ),
            [],
          );
          assert.partialDeepStrictEqual(await typed(world, ["panic", "clear"]), { wasRaised: true });
          await untilServing(holdfast, () => [after], PATIENT);
        },
      },
    };
  },
);

const EXIT_UNCONFIRMED: Readonly<Record<string, RowTest>> = {
  "case-6": async (stage) => {
    const asking = new Asking(stage, "unconfirmed");
    const question = await asking.ask("go on?");
    const talk = await cutOff(stage, "unconfirmed-job");
    const stored = async () => (await stage.holdfast.read.actor(asking.talk.key))?.record.rev;
    await asking.talk.entries();
    const before = await stored();
    await stage.death();
    await staysHeld(stage, talk);
    await isHeld(stage, asking.talk.key);
    assert.equal((await asking.reply(question, "a1", "yes")).kind, "applied"); // the question itself is no work
    assert.equal(await stored(), before);
    await typed(stage, ["held", "resume", asking.talk.key, talk.key]);
    await asking.talk.is("idle");
    return asking.talk.evidence();
  },

  "not-back-unacknowledged": async (stage) => {
    const talk = await cutOff(stage, "unacknowledged");
    await stage.death();
    await staysHeld(stage, talk);
    await stage.holdfast.send(
      talk.key,
      { type: "userMessage", messageId: "m", text: "are you there?" },
      { timeoutMs: 300 },
    );
    await staysHeld(stage, talk); // words do not bring it back
    await stage.fleet.model.release("are you there?");
    await goesOn(stage, talk);
    await talk.hears("are you there?");
    return talk.evidence();
  },

  "held-visible": async (stage) => {
    const talk = await cutOff(stage, "visible");
    const incarnation = String(stage.fleet.nodes[0]?.hello["incarnation"]);
    await stage.death();
    await isHeld(stage, talk.key);
    const { held } = Held.parse(await typed(stage, ["held", "list"]));
    const entry = held.find(({ key }) => key === talk.key);
    assert.equal(entry?.why, `its node ${incarnation} ended without having left`);
    const { stuck } = z
      .looseObject({ stuck: z.array(z.looseObject({ key: z.string() })) })
      .parse(await typed(stage, ["stuck"]));
    assert.ok(stuck.some(({ key }) => key === talk.key));
    await goesOn(stage, talk);
    const after = Held.parse(await typed(stage, ["held", "list"])).held;
    assert.ok(!after.some(({ key }) => key === talk.key));
    return talk.evidence();
  },

  "held-resumable": async (stage) => {
    const talk = await cutOff(stage, "resumable");
    await stage.death();
    await staysHeld(stage, talk);
    await goesOn(stage, talk);
    await typed(stage, ["held", "resume", talk.key], 1);
    assert.equal(await asked(stage, `work of ${talk.id}`), 2); // that which was cut off, and one more
    return talk.evidence();
  },
};

/** Nobody has confirmed its exit, and what it did is held until somebody says so. */
const unconfirmed: RowGroup = fleetGroup(
  "unconfirmed",
  EXIT_UNCONFIRMED,
  ({ fleet, holdfast }, first) => ({
    absence: { isNeeded: true, act: () => first.kill("SIGKILL") },
    death: {
      isNeeded: true,
      act: async () => {
        const after = await fleet.startNode(NODES.after);
        await untilServing(holdfast, () => [after], PATIENT);
      },
    },
  }),
  { isShipped: true, env: { HOLDFAST_HOLD_AFTER_CRASH: "conversation" } },
);

/** Rows about what is held, and about the stop of a whole fleet. */
export const HELD_GROUPS: readonly RowGroup[] = [stopped, unconfirmed];
