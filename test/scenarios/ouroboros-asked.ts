import { strict as assert } from "node:assert";
import type { JournalEntry } from "@holdfast/protocol";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { NODES } from "./openhands-fleet.ts";
import { Asking } from "./row-asking.ts";
import { answer, People } from "./row-people.ts";
import type { RowStage, RowTest } from "./row-run.ts";

/** Who has which role where these rows are tested. */
export const ASKED_ENV = { HOLDFAST_ROLES: "lead=person-lena,service-duty;operator=person-otto" } as const;

const Answered = z.tuple([
  z.object({ answer: z.unknown(), by: z.string(), approvals: z.array(z.unknown()).optional() }),
]);
const STRANGER = /^HF-6003 Only /;

/** What its conversation was answered. */
async function resultOf(asking: Asking): Promise<z.infer<typeof Answered>[0]> {
  await asking.talk.is("idle");
  return Answered.parse(await asking.talk.results())[0];
}

const assigneeOf = async ({ holdfast }: RowStage, question: string): Promise<unknown> =>
  (await holdfast.read.header(question))?.list["assignee"];

/** Timers of a question that fired, by the node that they fired on. */
async function fired(stage: RowStage, question: string, type: string): Promise<readonly JournalEntry[]> {
  return (await stage.holdfast.read.journal(question)).filter(({ event }) => event.type === type);
}

/** What was said of a question in public, in order. */
async function said({ holdfast }: RowStage, question: string): Promise<readonly string[]> {
  const id = question.split(".")[2] ?? "";
  const types: string[] = [];
  for await (const { event } of holdfast.events({ subject: `wait.${id}.*`, from: "first", follow: false }))
    types.push(event.type.split(".").at(-1) ?? "");
  return types;
}

/** Rows about who is asked, and about how many. */
export const ASKED_PROMISES: Readonly<Record<string, RowTest>> = {
  "wait-role": async (stage) => {
    await using people = new People(stage);
    const asking = new Asking(stage, "role");
    const question = await asking.ask("may it go?", { role: "lead" });
    const others = ["person-anna", "person-lead", "person-otto", "service-other", "person-local"];
    await people.areRefused(others, question, answer("yes"), STRANGER);
    await stage.death();
    await people.areRefused(others, question, answer("yes"), STRANGER);
    assert.equal(await asking.question("open"), question);
    await people.settle("service-duty", question, answer("it may"));
    assert.equal((await resultOf(asking)).answer, "it may");
    return asking.talk.evidence();
  },

  "wait-only-those-asked": async (stage) => {
    await using people = new People(stage);
    const [named, several, policy] = ["named", "several", "policy"].map((id) => new Asking(stage, `asked-${id}`));
    assert.ok(named !== undefined && several !== undefined && policy !== undefined);
    const toAnna = await named.ask("may it go?", { assignee: "person-anna" });
    const toTwo = await several.ask("may it go?", { approvers: ["person-anna", "service-duty"] });
    await stage.until("eve");
    const silent = { assignee: "person-anna", default: "no", onExpiry: "default", expiresInMs: 3000 };
    const toPolicy = await policy.ask("may it go?", silent);
    const others = ["person-ben", "person-local", "person-otto", "service-anna"];
    const nobodyElse = async (): Promise<void> => {
      for (const question of [toAnna, toTwo]) {
        for (const event of [answer("yes"), { type: "decline", answerId: "d1" }])
          await people.areRefused(others, question, event, STRANGER);
        await people.areRefused(["agent-asker"], question, answer("yes"), /^HF-6003 An agent may not/);
      }
      await people.areRefused(["service-duty"], toAnna, answer("yes"), STRANGER);
    };
    await nobodyElse();
    await stage.death();
    await nobodyElse();
    assert.deepEqual([await named.question("open"), await several.question("open")], [toAnna, toTwo]);
    await people.settle("person-anna", toAnna, answer("from anna"));
    await people.settle("service-duty", toTwo, answer("from duty"));
    assert.equal(await policy.question("expired"), toPolicy);
    const results = [await resultOf(named), await resultOf(several), await resultOf(policy)];
    assert.deepEqual(
      results.map((one) => [one.answer, one.by]),
      [
        ["from anna", "owner"],
        ["from duty", "owner"],
        ["no", "default"],
      ],
    );
    return named.talk.evidence();
  },

  "wait-reassigned": async (stage) => {
    await using people = new People(stage);
    const asking = new Asking(stage, "reassigned");
    const question = await asking.ask("who decides?", { assignee: "person-anna" });
    const hand = (assignee: string) => ({ type: "reassign", to: { assignee } });
    await people.areRefused(["person-ben"], question, hand("person-ben"), STRANGER);
    await people.settle("person-anna", question, hand("person-ben"));
    await people.areRefused(["person-anna"], question, answer("mine"), STRANGER);
    await stage.death();
    assert.equal(await assigneeOf(stage, question), "person-ben");
    await people.areRefused(["person-anna"], question, answer("mine"), STRANGER);
    await people.settle("person-otto", question, hand("person-cara")); // an operator hands on what others are asked
    await people.areRefused(["person-anna", "person-ben", "person-otto"], question, answer("mine"), STRANGER);
    await people.settle("person-cara", question, answer("from cara"));
    assert.equal((await resultOf(asking)).answer, "from cara");
    assert.equal((await said(stage, question)).filter((type) => type === "reassigned").length, 2);
    return asking.talk.evidence();
  },

  "wait-escalated": async (stage) => {
    await using people = new People(stage);
    const asking = new Asking(stage, "escalated");
    await stage.until("eve");
    const escalation = [
      { assignee: "person-ben", expiresInMs: 2000 },
      { role: "lead", expiresInMs: 600_000 },
    ];
    const question = await asking.ask("anybody?", {
      assignee: "person-anna",
      expiresInMs: 1000,
      onExpiry: "escalate",
      escalation,
    });
    await waitUntil("the next one is asked", async () => (await assigneeOf(stage, question)) === "person-ben");
    await people.areRefused(["person-anna"], question, answer("late"), STRANGER);
    await stage.death();
    await waitUntil("the last one is asked", async () => (await assigneeOf(stage, question)) === "lead", {
      timeoutMs: 60_000,
    });
    await people.areRefused(["person-anna", "person-ben"], question, answer("late"), STRANGER);
    await people.settle("person-lena", question, answer("from lena"));
    assert.equal((await resultOf(asking)).answer, "from lena");
    assert.deepEqual(
      (await fired(stage, question, "expiryDue")).map(({ node }) => node),
      [NODES.killed, NODES.after],
    );
    assert.equal((await said(stage, question)).filter((type) => type === "escalated").length, 2);
    return asking.talk.evidence();
  },

  "wait-reminders": async (stage) => {
    const [asking, neighbour] = [new Asking(stage, "reminders"), new Asking(stage, "reminders-on")];
    await stage.until("eve");
    const longer = await neighbour.ask("still there?", { remindEveryMs: 1500, maxReminders: 9 });
    const question = await asking.ask("still there?", { remindEveryMs: 1500, maxReminders: 3 });
    const reminders = async (): Promise<number> =>
      (await said(stage, question)).filter((type) => type === "reminded").length;
    await waitUntil("the first reminder", async () => (await reminders()) > 0);
    await stage.death();
    await waitUntil("the last reminder", async () => (await reminders()) >= 3, { timeoutMs: 60_000 });
    const due = (await fired(stage, question, "reminderDue")).slice(0, 3);
    assert.deepEqual(new Set(due.map(({ node }) => node)), new Set([NODES.killed, NODES.after]));
    const opened = (await stage.holdfast.read.journal(question))[0]?.atMs ?? Infinity;
    for (const [n, { atMs }] of due.entries())
      assert.ok(atMs - opened >= 1500 * (n + 1), `reminder ${n + 1} too early`);
    await waitUntil("its neighbour has had more", async () => (await fired(stage, longer, "reminderDue")).length >= 5);
    assert.equal((await asking.reply(question, "a1", "yes")).kind, "applied");
    await asking.talk.is("idle");
    assert.equal(await reminders(), 3);
    return asking.talk.evidence();
  },

  "wait-quorum": async (stage) => {
    await using people = new People(stage);
    const asking = new Asking(stage, "quorum");
    const approvers = ["person-anna", "person-ben", "person-cara", "person-dora"];
    const question = await asking.ask("delete it?", { options: ["yes", "no"], approvers, quorum: 3 });
    await people.settle("person-anna", question, answer("yes"));
    const again = async (): Promise<void> => {
      assert.equal((await people.send("person-anna", question, answer("yes"))).kind, "ignored");
      await people.areRefused(["person-anna"], question, answer("yes", "a2"), /^HF-6001 .* counts already/);
      await people.areRefused(["person-otto"], question, answer("yes"), STRANGER);
    };
    await again();
    await people.settle("person-ben", question, answer("no"));
    await stage.death();
    await again();
    await people.settle("person-cara", question, answer("yes"));
    assert.equal(await asking.question("open"), question); // two of three, and one who does not agree
    await people.settle("person-dora", question, answer("yes"));
    const { answer: taken, approvals = [] } = await resultOf(asking);
    assert.deepEqual([taken, approvals.length], ["yes", 3]);
    return asking.talk.evidence();
  },
};
