import { strict as assert } from "node:assert";
import { setTimeout as delay } from "node:timers/promises";
import { waitUntil } from "../harness/wait-until.ts";
import { fleetGroup, NODES, successor } from "./ouroboros-fleet.ts";
import { Asking } from "./row-asking.ts";
import type { RowGroup } from "./row-scenario.ts";
import { RowTalk } from "./row-talk.ts";

const HELD = "work of leaving";
const PATIENT = { timeoutMs: 60_000 };

/** It is asked to leave by an operator, and by a signal as well, while another one is there. */
const leaving = fleetGroup(
  "leaving",
  {
    "fault-wait-invisible-to-cleanup": async (stage) => {
      const asking = new Asking(stage, "two-hooks");
      const question = await asking.ask("are you still there?");
      await asking.talk.entries();
      const before = await Promise.all([question, asking.talk.key].map((key) => stage.holdfast.read.actor(key)));
      await stage.death();
      const after = await Promise.all([question, asking.talk.key].map((key) => stage.holdfast.read.actor(key)));
      assert.deepEqual(
        after.map((actor) => [actor?.record.rev, actor?.record.snapshot]),
        before.map((actor) => [actor?.record.rev, actor?.record.snapshot]),
      );
      assert.equal((await asking.reply(question, "a1", "yes")).kind, "applied");
      await asking.talk.is("idle");
      const [call] = await stage.holdfast.delegations(asking.talk.key);
      assert.deepEqual([call?.key, call?.appliedTimes], [question, 1]);
      return asking.talk.evidence();
    },

    "fault-start-after-stop": async (stage) => {
      const talk = new RowTalk(stage, "after-stop");
      await talk.start("hello");
      const held = new RowTalk(stage, "leaving");
      await held.startHeld(HELD);
      await stage.until("absence");
      await talk.say("again");
      await talk.is("idle");
      const since = (await talk.entries()).filter(({ node }) => node !== NODES.killed);
      assert.ok(since.length > 0 && since.every(({ node }) => node === NODES.after));
      for (const { ran } of since)
        assert.ok(ran === undefined || ran.runner.startsWith(`${NODES.after}:`), ran?.runner);
      await stage.death();
      await held.hears(`result of ${HELD}`); // it was in its keeping until it had left
      const asked = (await stage.fleet.model.requests()).filter(({ lastUser }) => lastUser === HELD);
      assert.equal(asked.length, 1);
      return talk.evidence();
    },
  },
  (world, first) => ({
    absence: {
      isNeeded: true,
      act: async () => {
        await world.fleet.startNode(NODES.after);
        await world.holdfast.askToLeave(NODES.killed);
        first.child.kill("SIGTERM");
        await waitUntil(
          "it owns nothing any more",
          async () => {
            const { nodes } = await world.holdfast.read.overview();
            return nodes.find(({ name }) => name === NODES.killed)?.partitions === 0;
          },
          PATIENT,
        );
      },
    },
    death: {
      isNeeded: true,
      act: async () => {
        await world.fleet.model.release(HELD);
        assert.equal((await first.exited).code, 0);
      },
    },
  }),
  { isShipped: true },
);

/** It is asked to stop, and killed before it has: the window was closed. */
const cutShort = fleetGroup(
  "cutshort",
  {
    "fault-lost-at-shutdown": async (stage) => {
      const asking = new Asking(stage, "cut-short");
      const question = await asking.ask("are you still there?");
      const held = new RowTalk(stage, "cut-short-job");
      await held.startHeld("work of cut-short");
      await stage.death();
      const { stuck } = await stage.holdfast.read.fleet();
      assert.deepEqual(
        stuck.flatMap(({ reports }) => reports),
        [],
      );
      assert.equal(await asking.question("open"), question);
      await held.is("running");
      await stage.fleet.model.release("of cut-short");
      await held.hears("result of work of cut-short");
      assert.equal((await asking.reply(question, "a1", "yes")).kind, "applied");
      for (const talk of [asking.talk, held]) await talk.is("idle");
      return held.evidence();
    },
  },
  (world, first) => ({
    absence: {
      isNeeded: true,
      act: async () => {
        first.child.kill("SIGTERM");
        await waitUntil("it has heard that", () => first.log().includes("node.signalled"));
        await first.kill("SIGKILL");
      },
    },
    death: { isNeeded: true, act: successor(world) },
  }),
  { isShipped: true },
);

/** How long a node may take to end when its broker has ended before it. ms */
const ENDS_WITHIN_MS = 45_000;

/** Everything is told to stop at once, its broker as well. */
const together = fleetGroup(
  "together",
  {
    "fault-signal-to-all": async (stage) => {
      const asking = new Asking(stage, "together");
      const question = await asking.ask("are you still there?");
      const held = new RowTalk(stage, "together-job");
      await held.startHeld("work of together");
      const before = await asking.talk.entries();
      await stage.death();
      assert.deepEqual(await asking.talk.entries(), before);
      assert.equal(await asking.question("open"), question);
      await stage.fleet.model.release("of together");
      assert.equal((await asking.reply(question, "a1", "yes")).kind, "applied");
      for (const talk of [asking.talk, held]) await talk.is("idle");
      assert.ok((await held.said()).includes("result of work of together"));
      return asking.talk.evidence();
    },
  },
  (world, first) => ({
    absence: {
      isNeeded: true,
      act: async () => {
        first.child.kill("SIGTERM");
        await world.cluster.nats.stop();
        try {
          const late = delay(ENDS_WITHIN_MS, "late", { ref: false });
          assert.notEqual(await Promise.race([first.exited, late]), "late", first.log().slice(-4000));
        } finally {
          await world.cluster.nats.restart();
        }
        await waitUntil("the broker answers", () => world.holdfast.read.fleet(), PATIENT);
      },
    },
    death: { isNeeded: true, act: successor(world) },
  }),
  { isShipped: true, env: { HOLDFAST_DRAIN_GRACE_MS: "2000" } },
);

/** Rows about nodes that are told to stop. */
export const STOP_GROUPS: readonly RowGroup[] = [leaving, cutShort, together];
