import { GLOBAL_WALLET, RuntimeFault, WalletState, type Amount, type PlainEvent } from "@holdfast/protocol";
import type { HoldfastClient } from "../holdfast-client.ts";
import type { SendResult } from "../message-sender.ts";
import { faultOfWallet } from "./wallet-fault.ts";

const TYPE = "wallet";

/** A new limit; null: none. What is absent stays as it is. */
export interface LimitChange {
  readonly microUsd?: number | null;
  readonly tokens?: number | null;
  readonly reason?: string;
}

export interface StoredWallet {
  readonly key: string;
  readonly rev: number;
  readonly state: WalletState;
}

/**
 * Wallets by their ids, for people and services: what may be spent, and where it is.
 *
 *   D1 every wallet but the one above all borrows from that: a limit set there later holds for all of them
 */
export class WalletDesk {
  readonly #holdfast: HoldfastClient;

  constructor(holdfast: HoldfastClient) {
    this.#holdfast = holdfast;
  }

  key(id: string): string {
    return this.#holdfast.key(TYPE, id);
  }

  /**
   * Sets what a wallet may spend; one that is not there is made. It takes effect with the next reservation and wakes nobody.
   * @throws RuntimeFault HF-5305 for who may not, HF-4008 when no node has answered: ask again
   */
  async set(id: string, { reason, ...change }: LimitChange): Promise<SendResult> {
    const { microUsd, tokens } = change;
    const limit = {
      ...(typeof microUsd === "number" && { microUsd }),
      ...(typeof tokens === "number" && { tokens }),
    };
    if ((await this.#holdfast.read.header(this.key(id))) === undefined) {
      if (id === GLOBAL_WALLET) return this.#made(id, { scope: "global", limit });
      await this.#ensureGlobal(); // D1
      return this.#made(id, { scope: "root", limit, parent: this.key(GLOBAL_WALLET) });
    }
    return this.#sent(id, { type: "setLimit", ...change, ...(reason !== undefined && { reason }) });
  }

  /** Lets everything below a wallet reserve again. Wakes nobody: what rests is let go on one by one. */
  async liftFence(id: string): Promise<SendResult> {
    const { fence } = (await this.get(id)).state;
    if (fence === undefined)
      throw new RuntimeFault("HF-5305", `Wallet ${id}: it has no fence. "holdfast budget list" shows those that have.`);
    return this.#sent(id, { type: "liftFence", fenceId: fence.fenceId });
  }

  /** Ends the hold of a reservation whose outcome nobody knows, by what it was charged. @throws RuntimeFault HF-5305 when it is none */
  closeHold(id: string, reservation: string, charged: Amount): Promise<SendResult> {
    return this.#sent(id, { type: "closeHold", reservation, charged });
  }

  /** @throws RuntimeFault HF-3001 when there is none */
  async get(id: string): Promise<StoredWallet> {
    const key = this.key(id);
    const stored = await this.#holdfast.read.actor(key);
    const state = WalletState.safeParse(stored?.record.snapshot.context).data;
    if (stored === undefined || state === undefined)
      throw new RuntimeFault("HF-3001", `Wallet ${id}: there is none. "holdfast budget set ${id} --usd 5" makes one.`);
    return { key, rev: stored.record.rev, state };
  }

  async #ensureGlobal(): Promise<void> {
    if ((await this.#holdfast.read.header(this.key(GLOBAL_WALLET))) !== undefined) return;
    const input = { scope: "global", limit: {} };
    const result = await this.#holdfast.start(TYPE, GLOBAL_WALLET, input);
    // Somebody else was first, with a limit: as good.
    if (!(result.kind === "refused" && result.code === "HF-3012")) answered(GLOBAL_WALLET, result);
  }

  async #made(id: string, input: object): Promise<SendResult> {
    return answered(id, await this.#holdfast.start(TYPE, id, input));
  }

  async #sent(id: string, event: PlainEvent): Promise<SendResult> {
    return answered(id, await this.#holdfast.send(this.key(id), event));
  }
}

/** @throws RuntimeFault with the code of the refusal, HF-4008 when nobody has answered */
function answered(id: string, result: SendResult): SendResult {
  if (result.kind === "refused") throw faultOfWallet(result);
  if (result.kind === "accepted")
    throw new RuntimeFault("HF-4008", `Wallet ${id}: no node has answered. Look at "holdfast fleet", then ask again.`);
  return result;
}
