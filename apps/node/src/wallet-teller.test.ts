import { WalletTeller, type WalletHost } from "@holdfast/client";
import { balanceOf, foldWalletLedger, listFieldsOf, MACHINES, noEffectOf } from "@holdfast/machines";
import { FLEET_PRINCIPAL, WalletState, type PlainEvent } from "@holdfast/protocol";
import { expect, test } from "vitest";
import { createActor } from "xstate";

// Tellers at real wallet machines, over a broker that answers late or not at all, and delivers what it has when it likes.

type Result = Awaited<ReturnType<WalletHost["send"]>>;

/** @param chance  from 0 to below 1 */
class HostileWallets implements WalletHost {
  readonly #chance: () => number;
  readonly #wallets = new Map<string, ReturnType<typeof createWallet>>();
  /** Messages that are stored, and come again or for the first time. */
  readonly #late: { readonly key: string; readonly event: PlainEvent }[] = [];
  readonly refusals = new Map<string, number>();

  constructor(chance: () => number) {
    this.#chance = chance;
  }

  key = (_type: string, id: string): string => `d-0.wallet.${id}`;

  start = async (_type: string, id: string, input: object): Promise<Result> => {
    const key = this.key("wallet", id);
    if (!this.#wallets.has(key)) this.#wallets.set(key, createWallet(id, input));
    return { kind: "applied", rev: 1, status: "active" };
  };

  read = {
    header: async (key: string) => {
      const wallet = this.#wallets.get(key);
      return wallet && { list: listFieldsOf("wallet", wallet.state(), wallet.value()) };
    },
    actor: async (key: string) => {
      const wallet = this.#wallets.get(key);
      return wallet && { record: { rev: wallet.journal.length, snapshot: { context: wallet.state() } } };
    },
  };

  send = async (key: string, event: PlainEvent): Promise<Result> => {
    await Promise.resolve();
    if (this.#late.length > 0 && this.#chance() < 0.2) this.#deliverLate();
    const fate = this.#chance();
    if (fate < 0.1) this.#late.push({ key, event }); // accepted, and applied whenever it likes
    if (fate < 0.1) return { kind: "accepted" };
    const result = this.#apply(key, event);
    if (fate < 0.3) this.#late.push({ key, event }); // stored twice
    if (result.kind === "refused") this.refusals.set(result.code, (this.refusals.get(result.code) ?? 0) + 1);
    return fate < 0.15 ? { kind: "accepted" } : result;
  };

  /** Everything that is still under way arrives. */
  flush(): void {
    while (this.#late.length > 0) this.#deliverLate();
  }

  wallet(id: string): ReturnType<typeof createWallet> {
    const wallet = this.#wallets.get(this.key("wallet", id));
    if (wallet === undefined) throw new Error(`no wallet ${id}`);
    return wallet;
  }

  #deliverLate(): void {
    const [one] = this.#late.splice(Math.floor(this.#chance() * this.#late.length), 1);
    if (one !== undefined) this.#apply(one.key, one.event);
  }

  #apply(key: string, event: PlainEvent): Result {
    const wallet = this.#wallets.get(key);
    if (wallet === undefined) return { kind: "accepted" };
    const before = wallet.state();
    const sent = { ...event, principal: FLEET_PRINCIPAL };
    const isApplied = wallet.send(sent);
    const told = { rev: wallet.journal.length, status: "active", value: wallet.value() };
    if (isApplied) return { kind: "applied", ...told };
    const why = noEffectOf("wallet", before, wallet.value(), sent);
    if (why.kind !== "refused") return { kind: "ignored", ...told };
    return { ...why, facts: "facts" in why ? why.facts : {} };
  }
}

function createWallet(id: string, input: object) {
  const entry = MACHINES.find(({ type }) => type === "wallet");
  if (entry === undefined) throw new Error("no wallet machine");
  const actor = createActor(entry.machine, { id, input });
  actor.start();
  const journal: PlainEvent[] = [];
  return {
    journal,
    state: () => WalletState.parse(actor.getSnapshot().context),
    value: (): unknown => actor.getSnapshot().value,
    send(event: PlainEvent): boolean {
      const parsed = entry.outsideEvent.parse(event);
      const before: unknown = actor.getSnapshot();
      actor.send(parsed);
      const isApplied = actor.getSnapshot() !== before;
      if (isApplied) journal.push(parsed);
      return isApplied;
    },
  };
}

/** A small generator with a seed. */
function chanceOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test.each([1, 2, 3])(
  "T6: 400 calls of three nodes over a broker that repeats and delays: each is paid once, nothing stays held (seed %i)",
  async (seed) => {
    const chance = chanceOf(seed);
    const wallets = new HostileWallets(chance);
    const limit = { microUsd: 100 * 400 };
    await wallets.start("wallet", "global", { scope: "global", limit });
    await wallets.start("wallet", "w1", { scope: "root", limit: {}, parent: wallets.key("wallet", "global") });
    let runs = 0;
    const hex = (): string => `${seed}-${(runs += 1)}`;
    const tellers = Array.from({ length: 3 }, () => new WalletTeller(wallets, hex));
    const maximum = { microUsd: 100, tokens: 10 };
    const { signal } = new AbortController();
    const lanes = Array.from({ length: 40 }, async (_, lane) => {
      for (let n = 0; n < 10; n += 1) {
        const request = { payer: { wallet: "w1" }, job: `job-${lane}-${n}`, estimate: maximum, maximum, signal };
        const money = await tellers[lane % 3]?.reserve(request);
        if (n % 5 === 4) await money?.release("refused");
        else await money?.settle({ microUsd: 20, tokens: 5 }, 19_999.5);
      }
    });
    await Promise.all(lanes);
    wallets.flush();
    const root = wallets.wallet("w1");
    expect(root.state()).toMatchObject({ open: {}, unresolved: {}, reservations: 400, ends: 400 });
    expect(root.state().settled).toMatchObject({ calls: 320, microUsd: 6400, tokens: 1600 });
    const { settled, held } = foldWalletLedger(root.journal);
    expect({ settled, held }).toEqual({ settled: balanceOf(root.state()).settled, held: { microUsd: 0, tokens: 0 } });
    expect(wallets.refusals.get("HF-5307")).toBeGreaterThan(0);
  },
);
