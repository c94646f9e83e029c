import {
  RuntimeFault,
  toPlainFault,
  WalletState,
  type Amount,
  type Payer,
  type PlainEvent,
  type Sum,
} from "@holdfast/protocol";
import { setTimeout as delay } from "node:timers/promises";
import type { SendOptions, SendResult } from "../message-sender.ts";
import { faultOfWallet } from "./wallet-fault.ts";

/** What one physical attempt of a model call may cost. */
export interface AttemptRequest {
  readonly payer: Payer;
  /** Key of the job. */
  readonly job: string;
  readonly estimate: Amount;
  /** What it cannot exceed; that is held. */
  readonly maximum: Amount;
  /** Ends the wait for money that others hold. */
  readonly signal: AbortSignal;
}

/** What a teller needs of a client. */
export interface WalletHost {
  key(type: string, id: string): string;
  start(type: string, id: string, input: object): Promise<SendResult>;
  send(key: string, event: PlainEvent, options: SendOptions): Promise<SendResult>;
  readonly read: {
    header(key: string): Promise<{ readonly list: Readonly<Record<string, unknown>> } | undefined>;
    actor(
      key: string,
    ): Promise<
      { readonly record: { readonly rev: number; readonly snapshot: { readonly context?: unknown } } } | undefined
    >;
  };
}

/** Money that is held for an attempt. Exactly one of its ends is told; each is repeated until the wallet has it. */
export interface Reservation {
  /** @returns whether the wallet, or that of the root, has been fenced meanwhile: nothing new is to be begun */
  settle(amount: Amount, nanoUsd?: number): Promise<boolean>;
  /** It is proved to have cost nothing. */
  release(reason: string): Promise<void>;
  /** Nobody will know what it cost: the hold stays. */
  leaveUnresolved(reason: string): Promise<void>;
}

const TYPE = "wallet";
/** Calls that a wallet borrows for at least at once: so often less is it asked again, and the wallet above with it. */
const CALLS_PER_LOAN = 16;
const ANSWER_MS = 5000;
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 1000;
/** A wallet that nobody answers for is asked so long; then nothing runs. */
const PATIENCE_MS = 60_000;
const NONE: Sum = { microUsd: 0, tokens: 0 };

type Refusal = Extract<SendResult, { kind: "refused" }>;

/**
 * Reserves and settles for the jobs of a node.
 *
 * Owns: the order of messages to a wallet and those above it. Does not own: what is allowed (the wallets).
 *   T1 nothing runs before its reservation is stored; without an answer nothing runs
 *   T2 money comes down in totals: whoever dies in between, the next one asks for the same
 *   T3 who waits for what others hold is not refused; refused is only what does not fit when all of it has come back
 *   T4 a root that is spent is fenced before anybody is told
 *   T5 what has no price is not lent as 0: no wallet above may have a limit in money
 *   T6 a copy of a reservation that comes late holds nothing: each says how many ends the wallet had, and one that is too old is refused
 */
export class WalletTeller {
  readonly #holdfast: WalletHost;
  readonly #randomHex: (bytes: number) => string;
  /** Wallet → the look for money that comes back to it: one at a time. */
  readonly #looks = new Map<string, Promise<boolean>>();
  /** Wallet → the loan that is under way for it: many who need one wait for the same. */
  readonly #loans = new Map<string, Promise<void>>();
  /** Wallet → calls that ask it. */
  readonly #asking = new Map<string, number>();
  readonly #known = new Set<string>();
  /** Wallet → ends that it has at least: those it told, and those that it was told of since (T6). */
  readonly #ends = new Map<string, { ends: number }>();

  constructor(holdfast: WalletHost, randomHex: (bytes: number) => string) {
    this.#holdfast = holdfast;
    this.#randomHex = randomHex;
  }

  /** @throws RuntimeFault HF-5301, HF-5303, HF-5304, HF-5308 (T1) with `scope` in their facts; HF-3001 without a wallet */
  async reserve(request: AttemptRequest): Promise<Reservation> {
    try {
      return await this.#reserve(request);
    } catch (error) {
      const isTold = error instanceof RuntimeFault && error.next === "refuse";
      throw isTold || request.signal.aborted ? error : unaskable(request.payer, error);
    }
  }

  async #reserve(request: AttemptRequest): Promise<Reservation> {
    const { payer, job, estimate, maximum } = request;
    const { pass } = payer;
    const wallet = await this.#walletOf(payer);
    if (maximum.microUsd === undefined) await this.#refuseUnpriced(wallet);
    const run = this.#randomHex(12);
    const attempt = { job, run, ...(pass !== undefined && { pass }) };
    try {
      await this.#obtain(wallet, { type: "reserve", ...attempt, estimate, maximum }, maximum, request.signal);
    } catch (error) {
      const isRefused = error instanceof RuntimeFault && error.next === "refuse";
      // Whether the last message was taken is not known otherwise: what nobody will use is not held.
      if (!isRefused) void this.#tell(wallet, { type: "release", job, run, reason: "not used" }).catch(() => undefined);
      throw isRefused ? await this.#withFence(error, { type: "fence", ...attempt, maximum }) : error;
    }
    const end = async (type: string, more: object): Promise<boolean> => {
      const known = this.#endsOf(wallet);
      const { kind, value } = await this.#tell(wallet, { type, job, run, ...more });
      if (kind === "applied") known.ends += 1; // not of what it told in between, which may have this one in it
      return value === "fenced" || (payer.own !== undefined && (await this.isFenced(payer.wallet).catch(() => false)));
    };
    return {
      settle: (amount, nanoUsd) => end("settle", { amount, ...(nanoUsd !== undefined && { nanoUsd }) }),
      release: async (reason) => void (await end("release", { reason })),
      leaveUnresolved: async (reason) => void (await end("leaveUnresolved", { reason })),
    };
  }

  /** Whether a wallet lets nothing new begin. @throws RuntimeFault when it cannot be read: nobody knows then */
  async isFenced(id: string): Promise<boolean> {
    return (await this.#holdfast.read.header(this.#holdfast.key(TYPE, id)))?.list["status"] === "fenced";
  }

  /** T5. */
  async #refuseUnpriced(wallet: string): Promise<void> {
    for (let key: string | undefined = wallet; key !== undefined;) {
      const state: WalletState | undefined = await this.#state(key);
      if (state?.limit.microUsd !== undefined) throw withoutPrice(state);
      key = state?.parent;
    }
  }

  /** Key of the wallet that pays; one for a single task is made with its first call. */
  async #walletOf({ wallet, own }: Payer): Promise<string> {
    const key = this.#holdfast.key(TYPE, wallet);
    if (own === undefined) return key;
    const ownKey = this.#holdfast.key(TYPE, own.id);
    if (this.#known.has(ownKey) || (await this.#holdfast.read.header(ownKey)) !== undefined) return ownKey;
    const made = await this.#holdfast.start(TYPE, own.id, { scope: "task", limit: own.limit, parent: key });
    // Made before, with another limit: what a person set there since counts.
    if (made.kind === "refused" && made.code !== "HF-3012") throw faultOfWallet(made);
    return ownKey;
  }

  /** T4. */
  async #withFence(fault: RuntimeFault, event: PlainEvent): Promise<RuntimeFault> {
    const { scope, wallet: id } = fault.facts;
    if (fault.code !== "HF-5301" || scope !== "root" || typeof id !== "string") return fault;
    const spent = this.#holdfast.key(TYPE, id);
    const result = await this.#send(spent, event);
    const { fence } = (await this.#state(spent)) ?? {};
    if (result.kind === "refused" || fence === undefined) return fault;
    return new RuntimeFault(fault.code, fault.message, { facts: { ...fault.facts, fence: fence.fenceId } });
  }

  /** Asks a wallet until it agrees, borrows for it, waits for what others hold. */
  async #obtain(wallet: string, event: PlainEvent, wanted: Amount, signal: AbortSignal): Promise<void> {
    this.#asking.set(wallet, (this.#asking.get(wallet) ?? 0) + 1);
    try {
      await this.#ask(wallet, event, wanted, signal);
    } finally {
      const others = (this.#asking.get(wallet) ?? 1) - 1;
      if (others === 0) this.#asking.delete(wallet);
      else this.#asking.set(wallet, others);
    }
  }

  async #ask(wallet: string, event: PlainEvent, wanted: Amount, signal: AbortSignal): Promise<void> {
    if (!this.#known.has(wallet)) {
      // Mail for an actor that was never started waits for it: nobody would answer.
      if ((await this.#holdfast.read.header(wallet)) === undefined) throw noWallet(wallet);
      this.#known.add(wallet);
    }
    const untilMs = performance.now() + PATIENCE_MS;
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2)) {
      signal.throwIfAborted();
      const isReservation = event.type === "reserve";
      const result = await this.#send(wallet, isReservation ? { ...event, asOf: this.#endsOf(wallet).ends } : event);
      if (result.kind === "applied" || result.kind === "ignored") return;
      if (result.kind === "accepted") {
        if (performance.now() > untilMs) throw silent(wallet);
      } else if (result.code === "HF-5306") {
        await this.#loan(wallet, () => this.#borrow(wallet, result, wanted, event["pass"], signal));
        continue;
      } else if (result.code === "HF-5307") {
        this.#learn(wallet, result);
        continue;
      } else if (result.code !== "HF-5302") throw faultOfWallet(result);
      else if (result.facts?.["isLent"] === true && (await this.#look(wallet))) continue;
      await delay(waitMs * (0.5 + Math.random() / 2), undefined, { signal }); // T3
    }
  }

  /** Another one's loan may have been for this call as well: then it is asked for again. */
  async #loan(wallet: string, borrow: () => Promise<void>): Promise<void> {
    const running = this.#loans.get(wallet);
    if (running !== undefined) {
      await running.catch(() => undefined); // why it failed is told to whoever began it
      return;
    }
    const loan = borrow().finally(() => this.#loans.delete(wallet));
    this.#loans.set(wallet, loan);
    await loan;
  }

  /** T2. */
  async #borrow(wallet: string, refusal: Refusal, wanted: Amount, pass: unknown, signal: AbortSignal): Promise<void> {
    const { parent, microUsd, tokens } = refusal.facts ?? {};
    if (typeof parent !== "string" || typeof microUsd !== "number" || typeof tokens !== "number")
      throw faultOfWallet(refusal);
    const needed = { microUsd, tokens };
    const { microUsd: money = 0 } = wanted;
    const more = Math.max(CALLS_PER_LOAN, 2 * (this.#asking.get(wallet) ?? 0)) - 1;
    const ample = { microUsd: microUsd + money * more, tokens: tokens + wanted.tokens * more };
    const loan = { type: "lend", to: wallet, ...(pass !== undefined && { pass }) };
    const lent = await this.#send(parent, { ...loan, total: ample });
    const isLent = lent.kind === "applied" || lent.kind === "ignored";
    if (!isLent) await this.#obtain(parent, { ...loan, total: needed }, wanted, signal);
    await this.#tell(wallet, { type: "fund", total: isLent ? ample : needed });
  }

  /** Whether money came back to a wallet from those below it, or is known to be gone there. */
  #look(wallet: string): Promise<boolean> {
    const running = this.#looks.get(wallet);
    if (running !== undefined) return running;
    const look = this.#callIn(wallet).finally(() => this.#looks.delete(wallet));
    this.#looks.set(wallet, look);
    return look;
  }

  async #callIn(wallet: string): Promise<boolean> {
    const { lent = {} } = (await this.#state(wallet)) ?? {};
    let hasChanged = false;
    for (const from of Object.keys(lent)) {
      await this.#callIn(from);
      await this.#tell(from, { type: "giveBack" });
      const stored = await this.#holdfast.read.actor(from);
      const state = WalletState.safeParse(stored?.record.snapshot.context).data;
      if (stored === undefined || state === undefined) continue;
      const repaid = { type: "repaid", from, total: state.returned, gone: goneOf(state), asOf: stored.record.rev };
      hasChanged = (await this.#send(wallet, repaid)).kind === "applied" || hasChanged;
    }
    return hasChanged;
  }

  async #state(wallet: string): Promise<WalletState | undefined> {
    const stored = await this.#holdfast.read.actor(wallet);
    return WalletState.safeParse(stored?.record.snapshot.context).data;
  }

  #endsOf(wallet: string): { ends: number } {
    const known = this.#ends.get(wallet) ?? { ends: 0 };
    this.#ends.set(wallet, known);
    return known;
  }

  /** T6. */
  #learn(wallet: string, refusal: Refusal): void {
    const ends = refusal.facts?.["ends"];
    if (typeof ends !== "number") throw faultOfWallet(refusal);
    if (ends > this.#endsOf(wallet).ends) this.#ends.set(wallet, { ends });
  }

  /** Repeats a message until the wallet has it. @throws RuntimeFault when it refuses, or nobody answers */
  async #tell(wallet: string, event: PlainEvent): Promise<Extract<SendResult, { kind: "applied" | "ignored" }>> {
    for (const untilMs = performance.now() + PATIENCE_MS; ;) {
      const result = await this.#send(wallet, event);
      if (result.kind === "refused") throw faultOfWallet(result);
      if (result.kind !== "accepted") return result;
      if (performance.now() > untilMs) throw silent(wallet);
    }
  }

  async #send(wallet: string, event: PlainEvent): Promise<SendResult> {
    try {
      return await this.#holdfast.send(wallet, event, { timeoutMs: ANSWER_MS });
    } catch (error) {
      // Too much waits, or nobody knows whether it was stored: the same message is sent again, and counts once.
      if (!(error instanceof RuntimeFault) || error.next !== "retry") throw error;
      const { retryAfterMs = FIRST_WAIT_MS } = error.facts;
      await delay(Number(retryAfterMs));
      return { kind: "accepted" };
    }
  }
}

function goneOf({ settled, unresolved, olderUnresolved, lent }: WalletState): Sum {
  const parts: readonly Amount[] = [
    settled,
    olderUnresolved,
    ...Object.values(unresolved).map(({ maximum }) => maximum),
    ...Object.values(lent).map(({ gone }) => gone),
  ];
  return parts.reduce<Sum>(
    (sum, { microUsd = 0, tokens }) => ({ microUsd: sum.microUsd + microUsd, tokens: sum.tokens + tokens }),
    NONE,
  );
}

const withoutPrice = ({ walletId, scope }: WalletState): RuntimeFault =>
  new RuntimeFault(
    "HF-5303",
    `Wallet ${walletId}: it has a limit in money, and the model no price. Give the model a price in its agent.`,
    { facts: { wallet: walletId, scope } },
  );
function unaskable({ wallet, own }: Payer, error: unknown): RuntimeFault {
  const { code, message } = toPlainFault(error, "HF-4008");
  return new RuntimeFault("HF-5308", `Nobody can say whether it may be spent, so nothing is: ${message}`, {
    facts: { wallet: own?.id ?? wallet, scope: own === undefined ? "root" : "task", reason: code },
  });
}
const noWallet = (wallet: string): RuntimeFault =>
  new RuntimeFault(
    "HF-3001",
    `Wallet ${wallet}: there is none, so nothing may be spent. Make it with "holdfast budget set".`,
  );
const silent = (wallet: string): RuntimeFault =>
  new RuntimeFault(
    "HF-4008",
    `Wallet ${wallet}: no answer within ${PATIENCE_MS} ms, so nothing is spent. Look at "holdfast stuck".`,
  );
