import { strict as assert } from "node:assert";
import { defineAgent } from "@holdfast/agents";
import { hash128 } from "@holdfast/protocol";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { steps, task } from "./row-agents.ts";
import { asked, isOutOfMoney, PLENTY, priced, pricedChief, refusalIn, RowMoney, TOO_LITTLE } from "./row-money.ts";
import type { RowTest } from "./row-run.ts";
import { RowTalk } from "./row-talk.ts";

/** How each of its reservations has ended, in their order. */
const ends = async (money: RowMoney): Promise<readonly string[]> =>
  (await money.ledger()).lines.map(({ end }) => end ?? "open");

/** Rows about money, on the fleet that is killed. */
export const BUDGET_PROMISES: Readonly<Record<string, RowTest>> = {
  "budget-wallets": async (stage) => {
    const money = new RowMoney(stage, "attempts");
    await money.set(PLENTY);
    const talk = await money.held("attempts-1");
    const [first = "", ...more] = Object.keys((await money.state()).open);
    assert.ok(first.endsWith(":1") && more.length === 0);
    const unpaid = new RowTalk(stage, "attempts-unpaid"); // where nobody says that it may, nothing is spent
    await unpaid.begin({ agent: priced("echo"), prompt: "unpaid", budget: { wallet: "nobody" } });
    await stage.death();
    await stage.fleet.model.wait({ model: "blocker", state: "arrived", count: 2, match: "prompt of attempts-1" });
    const { open, unresolved } = await money.state();
    assert.deepEqual([Object.keys(open), Object.keys(unresolved)], [[first.replace(/1$/, "2")], [first]]);
    await stage.fleet.model.release("of attempts-1");
    await talk.is("idle");
    await money.is("nothing is open", (state) => Object.keys(state.open).length === 0);
    assert.deepEqual(await ends(money), ["unresolved", "settled"]);
    await unpaid.is("error");
    assert.equal(await asked(stage, "unpaid"), 0);
    return talk.evidence();
  },

  "budget-fences": async (stage) => {
    const money = new RowMoney(stage, "fenced");
    await money.set(TOO_LITTLE);
    const [first, second] = [await money.talk("fenced-1"), await money.talk("fenced-2")];
    for (const talk of [first, second]) await isOutOfMoney(talk);
    const before = (await money.is("it has a fence", ({ fence }) => fence !== undefined)).fence;
    assert.partialDeepStrictEqual(before, { status: "paused", scope: "root", wallet: "fenced", autoResume: false });
    await stage.death();
    const third = await money.talk("fenced-3");
    await isOutOfMoney(third);
    await money.set(PLENTY); // a raised limit lifts nothing, and wakes nobody
    const fourth = await money.talk("fenced-4");
    await isOutOfMoney(fourth);
    assert.deepEqual((await money.state()).fence, before);
    await stage.holdfast.wallets.liftFence("fenced");
    await first.tell("resume");
    await first.is("idle");
    for (const talk of [second, third, fourth]) await isOutOfMoney(talk);
    await second.tell("resume");
    await second.is("idle");
    const told = await Promise.all([1, 2, 3, 4].map((n) => asked(stage, `prompt of fenced-${n}`)));
    assert.deepEqual(told, [1, 1, 0, 0]);
    assert.deepEqual(await ends(money), ["settled", "settled"]);
    return first.evidence();
  },

  "budget-scopes": async (stage) => {
    const money = new RowMoney(stage, "scopes");
    await money.set(PLENTY);
    const talk = new RowTalk(stage, "scopes");
    const budget = { wallet: "scopes", perTask: { microUsd: TOO_LITTLE } };
    await talk.begin({ ...pricedChief(), prompt: steps([task("blocker", "below of scopes")]), budget });
    const child = await waitUntil("its task has a conversation", async () => {
      const [call] = await stage.holdfast.delegations(talk.key);
      const headers = await stage.holdfast.read.headers("conversation");
      const found = headers.find(({ list }) => call !== undefined && call.key.split(".")[2] === list["task"]);
      return found === undefined ? undefined : { key: found.key, task: String(found.list["task"]) };
    });
    const refused = () => waitUntil("it is refused", () => refusalIn(stage, child), { timeoutMs: 60_000 });
    const own = new RowMoney(stage, `task-${hash128(child.task)}`);
    const first = await refused();
    assert.deepEqual([first.scope, first.wallet], ["task", own.id]); // the root has plenty
    await own.set(PLENTY);
    await money.set(TOO_LITTLE);
    await stage.death();
    await stage.holdfast.send(child.key, { type: "resume" }, { timeoutMs: 30_000 });
    const second = await waitUntil("the next one is exhausted", async () => {
      const refusal = await refusalIn(stage, child);
      return refusal?.scope !== "task" && refusal;
    });
    assert.deepEqual([second.scope, second.wallet], ["root", "scopes"]);
    await money.set(PLENTY);
    await stage.holdfast.send(child.key, { type: "resume" });
    await stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 1, match: "below of scopes" });
    await stage.fleet.model.release("below of scopes");
    await waitUntil("its work is done", async () =>
      (await talk.said()).some((text) => text.includes("result of below")),
    );
    const spent = (await own.is("the call is settled", ({ settled }) => settled.calls === 1)).settled.microUsd;
    assert.ok(spent > 0);
    const { lent: below } = await money.state();
    const { lent: under } = await new RowMoney(stage, "global").state();
    for (const loan of [below[own.key], under[money.key]])
      assert.ok((loan?.lent.microUsd ?? 0) - (loan?.returned.microUsd ?? 0) >= spent); // it counts above, and above that
    return talk.evidence();
  },

  "budget-unpriced": async (stage) => {
    const money = new RowMoney(stage, "unpriced");
    await money.set(undefined, PLENTY);
    const unknown = defineAgent({ name: "echo", model: "echo", limits: { maxOutputTokens: 100 } });
    const talk = await money.talk("unpriced-1", unknown);
    await talk.is("idle");
    await money.is("it is counted", ({ settled }) => settled.unpricedCalls === 1);
    await stage.death();
    await talk.say("again of unpriced");
    await talk.is("idle");
    const { settled } = await money.is("the next one too", (state) => state.settled.unpricedCalls === 2);
    assert.ok(settled.tokens > 0 && settled.microUsd === 0);
    const charged = (await money.ledger()).lines.map((line) => [line.end, line.charged?.microUsd]);
    assert.deepEqual(charged, [
      ["settled", undefined],
      ["settled", undefined],
    ]);
    await money.set(PLENTY); // what has no price fits into no amount of money
    await talk.say("not any more of unpriced");
    await talk.is("error");
    assert.equal(await asked(stage, "not any more of unpriced"), 0);
    return talk.evidence();
  },

  "inv-10": async (stage) => {
    const money = new RowMoney(stage, "once");
    await money.set(PLENTY);
    const free = defineAgent({ name: "refused", model: "fault-401", limits: { maxOutputTokens: 100 } });
    const prices = priced("fault-401").prices ?? {};
    const talks = [await money.held("once-held"), await money.talk("once-done")];
    const refused = await money.talk("once-refused", { ...free, prices });
    await refused.is("error");
    await talks[1]?.is("idle");
    await money.ledger();
    await stage.death();
    await stage.fleet.model.wait({ model: "blocker", state: "arrived", count: 2, match: "prompt of once-held" });
    await stage.fleet.model.release("of once-held");
    for (const talk of talks) await talk.is("idle");
    await refused.tell("resume");
    await talks[1]?.say("again of once");
    await talks[1]?.is("idle");
    await refused.is("error");
    const { unresolved } = await money.is("nothing is open", ({ open }) => Object.keys(open).length === 0);
    const counted = Map.groupBy(await ends(money), (end) => end);
    assert.deepEqual(
      [counted.get("settled")?.length, counted.get("unresolved")?.length, counted.get("open")],
      [3, 1, undefined],
    );
    const [lost = ""] = Object.keys(unresolved);
    const held = z.object({ microUsd: z.number().positive() }).parse(unresolved[lost]?.maximum);
    assert.ok(held.microUsd > 100); // unknown is the most that it may have cost
    await stage.holdfast.wallets.closeHold("once", lost, { microUsd: 7, tokens: 7 });
    assert.ok((await ends(money)).includes("closed"));
    return talks[0]?.evidence() ?? [money.key];
  },
};

/** Rows about faults with money. */
export const BUDGET_FAULTS: Readonly<Record<string, RowTest>> = {
  "fault-raised-budget-ignored": async (stage) => {
    const money = new RowMoney(stage, "raised");
    await money.set(PLENTY);
    const other = await money.held("raised-0");
    const [hold] = Object.values((await money.state()).open);
    await money.set(Math.floor((hold?.maximum.microUsd ?? 0) * 2.5)); // enough for one attempt of each, not for two
    const talk = await money.held("raised-1");
    await money.set(PLENTY);
    await stage.death();
    await stage.fleet.model.wait({ model: "blocker", state: "arrived", count: 4, match: "prompt of raised-" });
    await money.set(1);
    await stage.fleet.model.release("prompt of raised-");
    for (const one of [other, talk]) await one.hears(`result of prompt of ${one.id}`); // what runs is not stopped
    await talk.is("idle");
    await talk.say("one more of raised");
    await isOutOfMoney(talk);
    await money.set(PLENTY);
    await stage.holdfast.wallets.liftFence("raised");
    await talk.tell("resume");
    await stage.fleet.model.release("one more of raised");
    await talk.hears("result of one more of raised");
    return talk.evidence();
  },

  "fault-hold-counted-as-spend": async (stage) => {
    const money = new RowMoney(stage, "ceiling");
    await money.set(PLENTY);
    const talk = new RowTalk(stage, "ceiling");
    const calls = ["unwanted", "wanted"].map((text) => task("blocker", `${text} of ceiling`));
    await talk.begin({ ...pricedChief(), prompt: steps(calls), budget: { wallet: "ceiling" } });
    await stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 2, match: "of ceiling" });
    const [unwanted] = await stage.holdfast.delegations(talk.key);
    await talk.tell("cancelTask", { callId: unwanted?.callId });
    await money.is("the call of the cancelled one is over", ({ open }) => Object.keys(open).length === 1);
    const spent = (await money.state()).settled;
    assert.equal(spent.calls, 1); // that of the chief
    await stage.death();
    await stage.fleet.model.release("of ceiling");
    await talk.is("idle");
    const state = await money.is("nothing is open", ({ open }) => Object.keys(open).length === 0);
    assert.equal(state.settled.calls, 3);
    const lines = (await money.ledger()).lines;
    const held = lines.filter(({ end }) => end === "unresolved");
    assert.equal(held.length, Object.keys(state.unresolved).length);
    assert.ok(held.every(({ charged }) => charged === undefined)); // shown as what it is, and not as spent
    for (const { reservation } of held)
      await stage.holdfast.wallets.closeHold("ceiling", reservation, { microUsd: 0, tokens: 0 });
    const after = await money.state();
    assert.deepEqual([after.settled.microUsd, after.unresolved], [state.settled.microUsd, {}]);
    await money.ledger();
    // All of it was paid by one wallet.
    const wallets = (await stage.holdfast.read.headers("wallet")).filter(({ list }) => list["parent"] === money.key);
    assert.deepEqual(wallets, []);
    return talk.evidence();
  },

  "fault-phantom-budget": async (stage) => {
    const money = new RowMoney(stage, "phantom");
    await money.set(PLENTY);
    const talk = await money.talk("phantom-1", priced("fault-401"));
    await talk.is("error");
    const nothing = async (times: number): Promise<void> => {
      const state = await money.is("nothing is held", ({ open }) => Object.keys(open).length === 0);
      assert.deepEqual([state.settled.microUsd, state.settled.calls, state.unresolved], [0, 0, {}]);
      assert.deepEqual(
        await ends(money),
        Array.from({ length: times }, () => "released"),
      );
    };
    await nothing(1);
    await stage.death();
    await talk.tell("resume");
    await waitUntil("it was refused again", async () => (await asked(stage, "prompt of phantom-1")) === 2, {
      timeoutMs: 60_000,
    });
    await talk.is("error");
    await nothing(2);
    return talk.evidence();
  },

  "fault-counter-drift": async (stage) => {
    const money = new RowMoney(stage, "drift");
    await money.set(PLENTY);
    const talks = [await money.held("drift-lost"), await money.held("drift-dead")];
    await stage.until("absence");
    await stage.fleet.model.release("of drift-lost"); // answered, and nobody is there to settle it
    await stage.death();
    await stage.fleet.model.wait({ model: "blocker", state: "arrived", count: 2, match: "prompt of drift-dead" });
    await stage.fleet.model.release("of drift-dead");
    for (const talk of talks) await talk.is("idle");
    const { unresolved, settled } = await money.is("nothing is open", ({ open }) => Object.keys(open).length === 0);
    assert.equal(settled.calls, 2);
    assert.deepEqual((await ends(money)).toSorted(), ["settled", "settled", "unresolved", "unresolved"]);
    for (const reservation of Object.keys(unresolved))
      await stage.holdfast.wallets.closeHold("drift", reservation, { microUsd: 30, tokens: 30 });
    assert.equal((await money.state()).settled.microUsd, settled.microUsd + 60);
    assert.deepEqual((await ends(money)).toSorted(), ["closed", "closed", "settled", "settled"]);
    return talks[0]?.evidence() ?? [money.key];
  },
};
