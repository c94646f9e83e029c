import { RuntimeFault, toPlainFault } from "@holdfast/protocol";
import { pause } from "./abortable-pause.ts";
import type { MemoryBudget } from "./memory-budget.ts";
import type { Clock, InboxMessage, InboxSubscription, MessageLog, Telemetry } from "./ports/index.ts";

export interface InboxIntakeOptions {
  readonly partition: string;
  readonly from: number;
  readonly deliver: (message: InboxMessage) => void;
  readonly log: MessageLog;
  readonly memory: MemoryBudget;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * The inbox of one partition, read only while there is room for what is read.
 *
 * Owns: its subscription, where reading goes on. Does not own: the cursor of the partition, the budget.
 *   N1 every message from `from` on is handed over once and in order, whatever the pauses
 *   N2 while memory is full nothing is handed over; the stream keeps it, and nothing piles up in this process
 *   N3 `readThrough` outlasts pauses: it resolves only when everything stored before was handed over
 *   N5 it has failed when its subscription has, or cannot be had again
 *   N4 nothing is handed over after `stop`
 */
export class InboxIntake implements InboxSubscription {
  readonly #options: InboxIntakeOptions;
  readonly #stopping = new AbortController();
  readonly #failing = new AbortController();
  #next: number;
  #open: { readonly subscription: InboxSubscription; readonly life: number } | undefined;
  /** Grows with every pause: a subscription of a former life hands nothing over any more. */
  #life = 0;
  #isWanted = true;
  #settling: Promise<void> | undefined;
  #opened = Promise.withResolvers<void>();
  #stopListening: () => void = () => undefined;

  private constructor(options: InboxIntakeOptions) {
    this.#options = options;
    this.#next = options.from;
  }

  /** @throws as MessageLog.subscribe */
  static async open(options: InboxIntakeOptions): Promise<InboxIntake> {
    const intake = new InboxIntake(options);
    await intake.#subscribe();
    intake.#stopListening = options.memory.onChange((isFull) => intake.#want(!isFull));
    intake.#want(!options.memory.isFull);
    return intake;
  }

  /** Times that reading was stopped for want of room. */
  get pauses(): number {
    return this.#life;
  }

  get isPaused(): boolean {
    return !this.#isWanted;
  }

  get failed(): AbortSignal {
    return this.#failing.signal;
  }

  /** @throws RuntimeFault HF-3008 when it was stopped, or whatever ended the subscription */
  async readThrough(signal: AbortSignal): Promise<void> {
    const ends = AbortSignal.any([signal, this.#stopping.signal, this.failed]);
    for (;;) {
      await orAborted(this.#opened.promise, ends);
      if (ends.aborted) throw ended(this.#options.partition);
      const open = this.#open;
      if (open?.life !== this.#life) continue;
      try {
        await open.subscription.readThrough(ends);
      } catch (error) {
        if (ends.aborted || open.life === this.#life) throw error;
      }
      if (open.life === this.#life) return; // N3: after a pause it says nothing
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#stopListening();
    this.#want(false); // N4
    await this.#settling;
  }

  #want(isWanted: boolean): void {
    if (isWanted === this.#isWanted) return;
    this.#isWanted = isWanted;
    if (!isWanted) {
      this.#life += 1; // N2: at once, before the subscription knows
      this.#opened = Promise.withResolvers<void>();
    }
    this.#settling ??= this.#settle();
  }

  /** Makes the subscription what it should be, one change after the other. */
  async #settle(): Promise<void> {
    for (;;) {
      const open = this.#open;
      if (open !== undefined && open.life !== this.#life) {
        this.#open = undefined;
        await open.subscription.stop();
      } else if (this.#isWanted && open === undefined && !this.failed.aborted) await this.#openAgain();
      else break;
    }
    this.#settling = undefined;
  }

  async #openAgain(): Promise<void> {
    const { clock, telemetry, partition } = this.#options;
    for (let tries = 0; this.#isWanted && !this.failed.aborted; tries += 1) {
      try {
        await this.#subscribe();
        return;
      } catch (error) {
        const { code, message } = toPlainFault(error, "HF-4001");
        if (!PASSING.has(code)) this.#failing.abort(error);
        if (tries === 3) telemetry.error("inbox.not-resumed", { partition, code, reason: message });
        await pause(clock, Math.min(2000, 50 * 2 ** Math.min(tries, 6)), this.#stopping.signal).catch(() => undefined);
      }
    }
  }

  async #subscribe(): Promise<void> {
    const { log, partition, deliver } = this.#options;
    const life = this.#life;
    const subscription = await log.subscribe(partition, this.#next, (message) => {
      if (life !== this.#life || message.seq < this.#next) return; // N1, N2
      this.#next = message.seq + 1;
      deliver(message);
    });
    this.#open = { subscription, life };
    const hasFailed = (): void => {
      if (life === this.#life) this.#failing.abort(subscription.failed.reason);
    };
    subscription.failed.addEventListener("abort", hasFailed, { once: true });
    if (subscription.failed.aborted) hasFailed();
    if (life === this.#life) this.#opened.resolve();
  }
}

/** No answer, no connection: worth another try. Everything else says that there is nothing to be read any more. */
const PASSING: ReadonlySet<string> = new Set(["HF-4001", "HF-4008"]);

const ended = (partition: string): RuntimeFault =>
  new RuntimeFault(
    "HF-3008",
    `Inbox of ${partition}: it is read no more, the partition was given away. The new owner goes on.`,
  );

/** Resolves with the promise, or as soon as the signal aborts. */
function orAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      signal.removeEventListener("abort", end);
      resolve();
    };
    signal.addEventListener("abort", end, { once: true });
    void promise.then(end);
  });
}
