import type { SlotInput, TaskSlots } from "@holdfast/machines";
import { setTimeout as pause } from "node:timers/promises";

export interface FencedSlotsOptions {
  readonly slots: {
    take(request: { readonly root: string; readonly isRunning: boolean }, granted: () => void): () => void;
  };
  /** Throws when nobody can say. */
  readonly isFenced: (wallet: string) => Promise<boolean>;
  /** Time between two looks at a wallet that is fenced, ms. */
  readonly lookMs?: number;
}

const LOOK_MS = 1000;

/**
 * Slots that nobody gets whose wallet is fenced.
 *
 * Owns: who waits for a fence. Does not own: how many slots there are, the fences.
 *   F1 whether it is fenced is asked when there is a slot, not when one is asked for: a fence may come while it waits
 *   F2 who waits for a fence holds no slot
 *   F3 where nobody can say whether there is a fence, there is one
 *   F4 who has no wallet, or runs already, is asked nothing
 */
export class FencedSlots implements TaskSlots {
  readonly #options: FencedSlotsOptions;
  /** Wallet → the look that is under way: many who wait look once. */
  readonly #looks = new Map<string, Promise<boolean>>();
  /** Wallet → the wait for the end of its fence, and those who wait for it. */
  readonly #waits = new Map<string, { readonly isGone: (() => boolean)[]; readonly over: Promise<void> }>();

  constructor(options: FencedSlotsOptions) {
    this.#options = options;
  }

  take(request: SlotInput, granted: () => void): () => void {
    const { wallet, isRunning } = request;
    if (wallet === undefined || isRunning) return this.#slot(request, granted); // F4
    let isGone = false;
    let leave: () => void = () => undefined;
    const enter = async (): Promise<void> => {
      const isFenced = await this.#look(wallet); // F1
      if (isGone) return;
      if (!isFenced) return granted();
      leave(); // F2
      leave = () => undefined;
      await this.#untilLifted(wallet, () => isGone);
      if (!isGone) queue();
    };
    const queue = (): void => {
      leave = this.#slot(request, () => void enter());
    };
    queue();
    return () => {
      isGone = true;
      leave();
    };
  }

  #slot({ root, isRunning }: SlotInput, granted: () => void): () => void {
    if (root !== undefined) return this.#options.slots.take({ root, isRunning }, granted);
    granted();
    return () => undefined;
  }

  #look(wallet: string): Promise<boolean> {
    const running = this.#looks.get(wallet);
    if (running !== undefined) return running;
    const look = this.#options
      .isFenced(wallet)
      .catch(() => true) // F3
      .finally(() => this.#looks.delete(wallet));
    this.#looks.set(wallet, look);
    return look;
  }

  #untilLifted(wallet: string, hasGone: () => boolean): Promise<void> {
    const running = this.#waits.get(wallet);
    if (running !== undefined) {
      running.isGone.push(hasGone);
      return running.over;
    }
    const isGone = [hasGone];
    const over = this.#lifted(wallet, isGone).finally(() => this.#waits.delete(wallet));
    this.#waits.set(wallet, { isGone, over });
    return over;
  }

  /** Ends as well when nobody waits any more. */
  async #lifted(wallet: string, isGone: readonly (() => boolean)[]): Promise<void> {
    const { lookMs = LOOK_MS } = this.#options;
    do await pause(lookMs, undefined, { ref: false });
    while (!isGone.every((gone) => gone()) && (await this.#look(wallet)));
  }
}
