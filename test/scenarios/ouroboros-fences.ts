import { strict as assert } from "node:assert";
import { ASK_OWNER, withDelegates } from "@holdfast/agents";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { steps, task } from "./row-agents.ts";
import { ask } from "./row-asking.ts";
import { typed } from "./row-command.ts";
import { asked, isOutOfMoney, PLENTY, priced, refusalIn, RowMoney } from "./row-money.ts";
import { answer, PATIENT } from "./row-people.ts";
import type { RowEvidence, RowStage, RowTest } from "./row-run.ts";
import { RowTalk } from "./row-talk.ts";

const asker = { ...priced("puppet"), name: "asker", tools: [ASK_OWNER] };
const middle = withDelegates({ ...priced("puppet"), name: "middle" }, [priced("blocker")]);
const chief = withDelegates(priced("puppet"), [asker, middle]);
const agents = { asker, middle, blocker: priced("blocker") };

/** A tree that one wallet pays for, fenced: below its root one waits for its owner, and the other one is out of money. */
interface FencedTree {
  readonly root: RowTalk;
  readonly money: RowMoney;
  readonly question: string;
  /** Conversation that asked. */
  readonly asking: Member;
  readonly sibling: Member;
}
interface Member {
  readonly key: string;
  /** Of its task. */
  readonly task: string;
}

async function fencedTree(stage: RowStage, id: string): Promise<FencedTree> {
  const money = new RowMoney(stage, id);
  await money.set(PLENTY);
  const root = new RowTalk(stage, id);
  const calls = [
    task("asker", steps([ask(`may I, ${id}?`)])),
    task("middle", steps([task("blocker", `deep of ${id}`)])),
  ];
  await root.begin({ agent: chief, agents, prompt: steps(calls), budget: { wallet: id } });
  await stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 1, match: `deep of ${id}` });
  const family = () => stage.holdfast.delegations(root.key);
  const question = await waitUntil("the question is open", async () => {
    const key = (await family()).find(({ src }) => src === "ownerWait")?.key;
    return key !== undefined && (await statusOf(stage, key)) === "open" && key;
  });
  const tasks = (await family()).filter(({ src, conversation }) => src === "task" && conversation === root.key);
  const headers = await stage.holdfast.read.headers("conversation");
  const [asking, sibling] = tasks.map(({ key }): Member => {
    const found = headers.find(({ list }) => list["task"] === key.split(".")[2]);
    return { key: found?.key ?? "", task: key };
  });
  assert.ok(asking !== undefined && sibling !== undefined);
  await money.set(1);
  await stage.fleet.model.release(`deep of ${id}`);
  await rests(stage, sibling);
  await money.is("it has a fence", ({ fence }) => fence !== undefined);
  return { root, money, question, asking, sibling };
}

const statusOf = async ({ holdfast }: RowStage, key: string): Promise<unknown> =>
  (await holdfast.read.header(key))?.list["status"];
const revOf = async ({ holdfast }: RowStage, key: string): Promise<unknown> => (await holdfast.read.header(key))?.rev;
const resume = ({ holdfast }: RowStage, { key }: Member) => holdfast.send(key, { type: "resume" }, PATIENT);

const rests = (stage: RowStage, { key }: Member): Promise<unknown> =>
  waitUntil(
    `${key} rests for its money`,
    async () => {
      const list = (await stage.holdfast.read.header(key))?.list;
      return list?.["status"] === "waiting" && list["waitingOn"] === "budget";
    },
    { timeoutMs: 60_000 },
  );
const isAt = (stage: RowStage, key: string, status: string): Promise<unknown> =>
  waitUntil(`${key} is ${status}`, async () => (await statusOf(stage, key)) === status, { timeoutMs: 60_000 });

/** The answer is taken in, by the step that goes on with it; what that wants to spend is refused. */
async function isDelivered(stage: RowStage, { root, question, asking }: FencedTree): Promise<void> {
  await isAt(stage, question, "consumed");
  await rests(stage, asking);
  const calls = await stage.holdfast.delegations(root.key);
  assert.equal(calls.find(({ key }) => key === question)?.appliedTimes, 1);
}

/** Of who asked: it was begun before the death, and took its answer after it. */
async function evidenceOf(stage: RowStage, { asking }: FencedTree): Promise<RowEvidence> {
  const { rev } = (await stage.holdfast.read.header(asking.key)) ?? { rev: 0 };
  const last = new Map((await stage.holdfast.read.journalThrough(asking.key, rev)).map((one) => [one.node, one.rev]));
  return [asking.key, 1, ...last.values()];
}

/** Rows about fences, on the fleet that is killed. */
export const FENCE_ROWS: Readonly<Record<string, RowTest>> = {
  "case-13": async (stage) => {
    const tree = await fencedTree(stage, "money-left");
    await stage.death();
    await tree.money.set(PLENTY);
    const before = await revOf(stage, tree.sibling.key);
    assert.equal((await stage.holdfast.send(tree.question, answer("yes"), PATIENT)).kind, "applied");
    await isDelivered(stage, tree);
    await resume(stage, tree.asking);
    await isAt(stage, tree.asking.task, "completed");
    assert.equal(await revOf(stage, tree.sibling.key), before); // there would be money, and nobody has said so
    await rests(stage, tree.sibling);
    return evidenceOf(stage, tree);
  },

  "case-14": async (stage) => {
    const tree = await fencedTree(stage, "none-left");
    await stage.death();
    const before = await revOf(stage, tree.sibling.key);
    assert.equal((await stage.holdfast.send(tree.question, answer("yes"), PATIENT)).kind, "applied");
    await isDelivered(stage, tree);
    assert.equal((await refusalIn(stage, tree.asking))?.scope, "root");
    assert.equal(await revOf(stage, tree.sibling.key), before);
    const { scope, wallet } = (await refusalIn(stage, tree.sibling)) ?? {};
    assert.deepEqual([scope, wallet], ["root", "none-left"]); // paused, and it says for what
    await rests(stage, tree.sibling);
    return evidenceOf(stage, tree);
  },

  "inv-9": async (stage) => {
    const tree = await fencedTree(stage, "delivered");
    const { settled } = await tree.money.state();
    const requests = (await stage.fleet.model.requests()).filter(({ lastUser }) =>
      lastUser.includes("may I, delivered?"),
    );
    await stage.until("absence");
    const sent = await stage.holdfast.send(tree.question, answer("yes"), { timeoutMs: 300 });
    assert.equal(sent.kind, "accepted");
    await stage.death();
    await isDelivered(stage, tree);
    assert.equal((await refusalIn(stage, tree.asking))?.code, "HF-5304");
    assert.deepEqual((await tree.money.state()).settled, settled);
    const after = (await stage.fleet.model.requests()).filter(({ lastUser }) => lastUser.includes("may I, delivered?"));
    assert.equal(after.length, requests.length);
    return evidenceOf(stage, tree);
  },

  "inv-8": async (stage) => {
    const tree = await fencedTree(stage, "as-it-is");
    await tree.root.is("waiting");
    for (const member of [tree.asking, tree.sibling]) await isAt(stage, member.task, "waiting");
    const members = [tree.root.key, tree.asking.task, tree.sibling.task];
    const now = async () => ({
      fence: (await tree.money.state()).fence,
      statuses: await Promise.all(members.map((key) => statusOf(stage, key))),
      revs: await Promise.all([tree.asking, tree.sibling].map(({ key }) => revOf(stage, key))),
    });
    const before = await now();
    await stage.death();
    const further = await tree.money.talk("as-it-is-further");
    await isOutOfMoney(further);
    assert.equal(await asked(stage, "prompt of as-it-is-further"), 0);
    assert.equal((await refusalIn(stage, further))?.code, "HF-5304");
    assert.deepEqual(await now(), before);
    assert.equal(await statusOf(stage, tree.question), "open");
    assert.equal((await stage.holdfast.send(tree.question, answer("yes"), PATIENT)).kind, "applied");
    await isDelivered(stage, tree);
    return evidenceOf(stage, tree);
  },

  "fault-pause-lost-on-reload": async (stage) => {
    const tree = await fencedTree(stage, "reloaded");
    const Wallets = z.object({ wallets: z.array(z.looseObject({ id: z.string(), status: z.string() })) });
    const Shown = z.looseObject({ fence: z.looseObject({ fenceId: z.string(), status: z.string(), by: z.string() }) });
    const shown = async () => {
      const { wallets } = Wallets.parse(await typed(stage, ["budget", "list"]));
      assert.equal(wallets.find(({ id }) => id === "reloaded")?.status, "fenced");
      return Shown.parse(await typed(stage, ["budget", "show", "reloaded"])).fence;
    };
    const before = await shown();
    await stage.until("absence");
    assert.deepEqual(await shown(), before); // there is no node that could tell
    await rests(stage, tree.sibling);
    await stage.death();
    assert.deepEqual(await shown(), before);
    await tree.money.set(PLENTY);
    await typed(stage, ["budget", "resume", "reloaded"]);
    await resume(stage, tree.sibling);
    await isAt(stage, tree.sibling.task, "completed");
    assert.equal((await stage.holdfast.send(tree.question, answer("yes"), PATIENT)).kind, "applied");
    await isAt(stage, tree.asking.task, "completed");
    await tree.root.is("idle");
    return evidenceOf(stage, tree);
  },
};
