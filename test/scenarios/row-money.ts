import { strict as assert } from "node:assert";
import { defineAgent, withDelegates } from "@holdfast/agents";
import type { LimitChange } from "@holdfast/client";
import { balanceOf, foldWalletLedger, type WalletLedger } from "@holdfast/machines";
import type { WalletState } from "@holdfast/protocol";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { RowTalk } from "./row-talk.ts";
import type { RowStage } from "./row-run.ts";

/** A microdollar a token. */
const PRICE = { inputMicroUsd: 1_000_000, outputMicroUsd: 1_000_000 };
/** No call can cost more than these, and what it reads. */
const limits = { maxOutputTokens: 100 };
/** More than any row spends. microdollars */
export const PLENTY = 100_000;
/** Less than any call may come to. microdollars */
export const TOO_LITTLE = 50;

/** An agent whose calls have a price. */
export const priced = (model: string) => defineAgent({ name: model, model, limits, prices: { [model]: PRICE } });

/** A puppet that may delegate to held sub-agents, all of them with a price. */
export const pricedChief = () => ({
  agent: withDelegates(priced("puppet"), [priced("blocker")]),
  agents: { blocker: priced("blocker") },
});

const Refusal = z.looseObject({ refusal: z.object({ scope: z.string(), wallet: z.string(), code: z.string() }) });

/** One wallet of a row's test, and the conversations that it pays for. */
export class RowMoney {
  readonly id: string;
  readonly key: string;
  readonly #stage: RowStage;

  constructor(stage: RowStage, id: string) {
    this.id = id;
    this.key = stage.holdfast.wallets.key(id);
    this.#stage = stage;
  }

  /** @param microUsd  absent: none */
  async set(microUsd?: number, tokens?: number): Promise<void> {
    const limit = { microUsd: microUsd ?? null, tokens: tokens ?? null };
    // At first, and right after a death, nobody may be there to answer.
    await waitUntil(`the limit of ${this.id} is set`, () => this.#set(limit), { timeoutMs: 60_000 });
  }

  async #set(limit: LimitChange): Promise<boolean> {
    try {
      await this.#stage.holdfast.wallets.set(this.id, limit);
      return true; // also when it was the limit already: an earlier try was only not answered in time
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "HF-4008") return false;
      throw error;
    }
  }

  async state(): Promise<WalletState> {
    return (await this.#stage.holdfast.wallets.get(this.id)).state;
  }

  is(what: string, claim: (state: WalletState) => boolean): Promise<WalletState> {
    return waitUntil(
      `${this.id}: ${what}`,
      async () => {
        const state = await this.state();
        return claim(state) && state;
      },
      { timeoutMs: 60_000, dump: () => this.state() },
    );
  }

  /** A conversation that it pays for. */
  async talk(id: string, agent = priced("echo"), prompt = `prompt of ${id}`): Promise<RowTalk> {
    const talk = new RowTalk(this.#stage, id);
    await talk.begin({ agent, prompt, budget: { wallet: this.id } });
    return talk;
  }

  /** One whose model call is held, and was paid for. */
  async held(id: string): Promise<RowTalk> {
    const talk = await this.talk(id, priced("blocker"));
    await this.#stage.fleet.model.wait({ model: "blocker", state: "blocked", count: 1, match: `prompt of ${id}` });
    return talk;
  }

  /**
   * Its journal, read as a ledger.
   * @throws AssertionError when that does not come to what its record says, or a reservation has ended twice
   */
  async ledger(): Promise<WalletLedger> {
    const { rev, state } = await this.#stage.holdfast.wallets.get(this.id);
    const entries = await this.#stage.holdfast.read.journalThrough(this.key, rev);
    const ledger = foldWalletLedger(entries.filter((entry) => entry.rev <= rev).map(({ event }) => event));
    const { settled, held, unresolved } = balanceOf(state);
    const holds = { microUsd: held.microUsd + unresolved.microUsd, tokens: held.tokens + unresolved.tokens };
    assert.deepEqual([ledger.settled, ledger.held], [settled, holds]);
    assert.equal(ledger.unpricedCalls, state.settled.unpricedCalls);
    const names = ledger.lines.map(({ reservation }) => reservation);
    assert.equal(new Set(names).size, names.length);
    return ledger;
  }
}

/** What it rests for; undefined while nothing was refused. */
export async function refusalIn({ holdfast }: RowStage, { key }: Pick<RowTalk, "key">) {
  const context = (await holdfast.read.actor(key))?.record.snapshot.context;
  return Refusal.safeParse(context).data?.refusal;
}

/** Waits until it rests because its money is spent. */
export async function isOutOfMoney(talk: RowTalk): Promise<void> {
  await talk.is("waiting");
  assert.equal((await talk.list())["waitingOn"], "budget");
}

/** How often a model was asked something. */
export const asked = async ({ fleet }: RowStage, text: string): Promise<number> =>
  (await fleet.model.requests()).filter(({ lastUser }) => lastUser === text).length;
