import { toPlainFault, type AgentDefinition, type Amount, type ModelReply, type Payer } from "@holdfast/protocol";
import type { Telemetry } from "@holdfast/runtime/ports";
import { amountOf, boundsOf } from "./call-cost.ts";
import type { ModelRequest, ModelTries } from "./model-port.ts";
import type { ModelFault } from "./model-problem.ts";

/** Money that is held for one try. Exactly one of its ends is told. */
export interface HeldMoney {
  /** @returns whether the wallet has been fenced meanwhile */
  settle(amount: Amount, nanoUsd?: number): Promise<boolean>;
  release(reason: string): Promise<void>;
  leaveUnresolved(reason: string): Promise<void>;
}

/** What one try may cost, and who pays. */
export interface MoneyRequest {
  readonly payer: Payer;
  /** Key of the job. */
  readonly job: string;
  readonly estimate: Amount;
  readonly maximum: Amount;
  readonly signal: AbortSignal;
}

/** @throws RuntimeFault HF-5301, HF-5303, HF-5304 when nothing may be spent; HF-3001, HF-5308 when nobody can say so */
export type ReserveMoney = (request: MoneyRequest) => Promise<HeldMoney>;

export interface PaidCallOptions {
  readonly reserve: ReserveMoney;
  readonly payer: Payer;
  readonly job: string;
  readonly request: ModelRequest;
  readonly prices: AgentDefinition["prices"];
  readonly signal: AbortSignal;
  readonly telemetry: Telemetry;
}

/**
 * The money for the tries of one model call.
 *
 * Owns: what is held for the try that runs. Does not own: the tries, what may be spent.
 *   P1 no try begins before its money is held
 *   P2 every try ends: measured, proved to have cost nothing, or left as it is
 *   P3 an answer that was paid for is given, also when its price could not be told
 */
export class PaidCall implements ModelTries {
  readonly #options: PaidCallOptions;
  #held: HeldMoney | undefined;

  constructor(options: PaidCallOptions) {
    this.#options = options;
  }

  /** P1. */
  async begin(): Promise<void> {
    const { reserve, request, prices, payer, job, signal } = this.#options;
    this.#held = await reserve({ payer, job, signal, ...boundsOf(request, prices) });
  }

  /** P2. */
  async failed({ isUncharged, code }: ModelFault): Promise<void> {
    await this.#end((held) => (isUncharged ? held.release(code) : held.leaveUnresolved(code)));
  }

  /** The call ended without an answer and without a fault of the model: whatever runs, nobody will hear of it. */
  async abandoned(): Promise<void> {
    await this.#end((held) => held.leaveUnresolved("abandoned"));
  }

  /** P3. @returns the reply, with what was learnt of the wallet */
  async answered(reply: ModelReply): Promise<ModelReply> {
    const { request, prices } = this.#options;
    const { amount, nanoUsd } = amountOf(request.model, prices, reply.usage);
    // An endpoint that tells no usage has not said that it was free.
    const isFenced = await this.#end(async (held) => {
      if (amount.tokens > 0) return held.settle(amount, nanoUsd);
      await held.leaveUnresolved("no usage was told");
      return false;
    });
    return isFenced === true ? { ...reply, isFenced } : reply;
  }

  async #end<T>(how: (held: HeldMoney) => Promise<T>): Promise<T | undefined> {
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined) return undefined;
    try {
      return await how(held);
    } catch (error) {
      // The wallet keeps the hold, and lists it once nobody has ended it for long enough.
      const { code, message: reason } = toPlainFault(error, "HF-4008");
      this.#options.telemetry.warn("money.not-told", { job: this.#options.job, code, reason });
      return undefined;
    }
  }
}
