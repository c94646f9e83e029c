// NodeLink — the connection of one node to the memory broker, with everything that can happen to it.
// Owns: paused, cut, dead; the way there and back.  Does not own: what a request does (its `apply`), which fault it meets (FaultScript, FaultDice).
//   L1 never inside     a request is applied, and its answer given, in later turns than the call
//   L2 in order         requests of one link arrive in the order in which they were sent
//   L3 paused           nothing leaves and nothing is seen until `resume`; what had left is applied (a stopped process)
//   L4 dead             nothing settles, nothing is applied any more, but late writes of the script and the dice
//   L5 cut              requests are lost, and so are the answers on their way
import { RuntimeFault } from "@holdfast/protocol";
import type { FaultDice, FaultScript, WriteOperation } from "./fault-plan.ts";
import type { Turns } from "./turns.ts";
import { untilAborted } from "./until-aborted.ts";

/** `silent`: no answer came; done or not. `giveUp`: the test wants the port to stop retrying here. */
export type RawAnswer<T> =
  | { readonly kind: "answered"; readonly value: T }
  | { readonly kind: "refused"; readonly reason: string; readonly retryable: boolean; readonly giveUp: boolean }
  | { readonly kind: "silent"; readonly reason: string; readonly giveUp: boolean };

export interface WriteRequest<T> {
  readonly operation: WriteOperation;
  /** What it is about, for aiming scripted faults. */
  readonly about: string;
  readonly apply: () => T;
}

const TIMEOUT_TURNS = 4;
const RECONNECT_TURNS = 6;

/** See the invariants at the top of the file. */
export class NodeLink {
  readonly node: string;
  readonly dice: FaultDice;
  readonly #script: FaultScript;
  readonly #turns: Turns;
  #paused = false;
  #cut = false;
  #dead = false;
  #cuts = 0;
  #wayOut: Promise<void> = Promise.resolve();
  #waiting: (() => void)[] = [];

  constructor(node: string, parts: { readonly dice: FaultDice; readonly script: FaultScript; readonly turns: Turns }) {
    this.node = node;
    this.dice = parts.dice;
    this.#script = parts.script;
    this.#turns = parts.turns;
  }

  get isDead(): boolean {
    return this.#dead;
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#wake();
  }

  kill(): void {
    this.#dead = true;
  }

  /** Breaks the connection until `reconnect`. */
  disconnect(): void {
    this.#cut = true;
    this.#cuts += 1;
  }

  reconnect(): void {
    this.#cut = false;
    this.#wake();
  }

  /** Breaks the connection for a moment. */
  blink(): void {
    this.disconnect();
    void this.#turns.next(RECONNECT_TURNS).then(() => this.reconnect());
  }

  /** Asks the broker to change something. */
  async request<T>(request: WriteRequest<T>): Promise<RawAnswer<T>> {
    await this.#leave();
    if (this.#cut) return this.#silence("not connected", false); // L5
    const cuts = this.#cuts;
    const fault = this.#script.draw(request.operation, this.node, request.about) ?? this.dice.rollWrite();
    switch (fault?.kind) {
      case undefined:
        return this.#answer(cuts, { kind: "answered", value: request.apply() });
      case "refuse": {
        fault.happened();
        const { retryable, giveUp } = fault;
        return this.#answer(cuts, { kind: "refused", reason: "no responders", retryable, giveUp });
      }
      case "lostAck":
        request.apply();
        fault.happened();
        await fault.released;
        return this.#silence("time-out", fault.giveUp);
      case "lateWrite":
        fault.happened();
        void this.#landLater(request.apply, fault.released, fault.lateTurns);
        return this.#silence("time-out", fault.giveUp);
      case "hang":
        fault.happened();
        await fault.released;
        await this.#running();
        return this.#answer(cuts, { kind: "answered", value: request.apply() });
      case "disconnect":
        this.blink();
        return this.#silence("connection lost", false);
    }
  }

  /**
   * Asks the broker for something.
   * @throws RuntimeFault HF-4008 when no answer comes
   */
  async read<T>(about: string, answer: () => T): Promise<T> {
    const raw = await this.#tryRead(answer);
    if (raw.kind === "answered") return raw.value;
    throw new RuntimeFault("HF-4008", `Read of ${about}: expected an answer, got none (${raw.kind}). Try again.`);
  }

  /** Asks until there is an answer, across broken connections. @throws the reason of `signal` */
  async readPatiently<T>(answer: () => T, signal: AbortSignal): Promise<T> {
    for (;;) {
      await untilAborted(signal, this.connected());
      const raw = await untilAborted(signal, this.#tryRead(answer));
      if (raw.kind === "answered") return raw.value;
    }
  }

  /** Sends something that nobody acknowledges. */
  async send(apply: () => void): Promise<void> {
    const lost = this.dice.hits("coreLossRate");
    await this.#leave();
    if (!lost && !this.#cut) apply();
  }

  /** Resolves when messages can be handed to the node: connected, running, and a way later. */
  async receivable(): Promise<void> {
    do {
      await this.connected();
      await this.#turns.next(this.dice.way());
    } while (this.#cut || this.#paused || this.#dead);
  }

  /** Resolves when the node runs and is connected; never for a dead one (L4). */
  async connected(): Promise<void> {
    while (this.#cut || this.#paused || this.#dead) await this.#change();
  }

  /** Time between two tries of a port, in turns. */
  backOff(attempt: number): Promise<void> {
    return this.#turns.next(attempt);
  }

  async #tryRead<T>(answer: () => T): Promise<RawAnswer<T>> {
    await this.#leave();
    if (this.#cut) return this.#silence("not connected", false);
    const cuts = this.#cuts;
    if (this.dice.hits("readFailureRate")) return this.#silence("time-out", false);
    return this.#answer(cuts, { kind: "answered", value: answer() });
  }

  /** The way to the broker (L1, L2). */
  #leave(): Promise<void> {
    const turns = this.dice.way();
    const before = this.#wayOut;
    this.#wayOut = this.#pass(before, turns);
    return this.#wayOut;
  }

  async #pass(before: Promise<void>, turns: number): Promise<void> {
    const ownWay = this.#running().then(() => this.#turns.next(turns));
    await before;
    await ownWay;
    if (this.#dead) await this.#running(); // L4: killed on the way
  }

  /** The way back (L3, L5). */
  async #answer<T>(cuts: number, answer: RawAnswer<T>): Promise<RawAnswer<T>> {
    await this.#turns.next(this.dice.way());
    if (this.#cuts !== cuts) return this.#silence("connection lost", false);
    await this.#running();
    return answer;
  }

  async #silence(reason: string, giveUp: boolean): Promise<RawAnswer<never>> {
    await this.#turns.next(TIMEOUT_TURNS);
    await this.#running();
    return { kind: "silent", reason, giveUp };
  }

  async #landLater(apply: () => unknown, released: Promise<void>, turns: number): Promise<void> {
    await released;
    await this.#turns.next(turns);
    apply();
  }

  async #running(): Promise<void> {
    while (this.#paused || this.#dead) await this.#change();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
