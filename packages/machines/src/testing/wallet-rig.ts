import { FLEET_PRINCIPAL, type Amount, type PlainEvent, type Principal, type WalletState } from "@holdfast/protocol";
import { createActor, SimulatedClock } from "xstate";
import { noEffectOf, type NoEffect } from "../no-effect.ts";
import { WalletEvent, type WalletInput } from "../wallet-event.ts";
import { walletMachine } from "../wallet.machine.ts";

export const ANNA: Principal = { kind: "person", id: "anna", roles: [] };

/** What became of an event, as its sender is told. */
export type Outcome = { readonly kind: "applied" } | NoEffect;

/** A wallet that is stored after every event, and can be killed and restored at any time. */
export interface WalletRig {
  readonly clock: SimulatedClock;
  readonly state: () => WalletState;
  readonly value: () => unknown;
  /** Events that changed it, as its journal has them. */
  readonly journal: readonly PlainEvent[];
  readonly stored: () => string;
  /** What it announced. */
  readonly emitted: readonly PlainEvent[];
  send(event: PlainEvent, principal?: Principal): Outcome;
  /** Its own timer is over. */
  look(): void;
  /** The process dies, and another one goes on with what was stored. */
  crash(): void;
}

export function startWallet(input: WalletInput): WalletRig {
  const clock = new SimulatedClock();
  const journal: PlainEvent[] = [];
  const emitted: PlainEvent[] = [];
  let stored = "";
  let last: unknown;
  const create = (snapshot?: string) => {
    const actor = createActor(walletMachine, {
      id: "w1",
      clock,
      input,
      ...(snapshot !== undefined && { snapshot: JSON.parse(snapshot) }),
      inspect: (inspected) => {
        if (inspected.type !== "@xstate.snapshot" || inspected.snapshot === last) return;
        last = inspected.snapshot;
        if (!inspected.event.type.startsWith("xstate.")) journal.push(inspected.event);
      },
    });
    actor.subscribe(() => {
      stored = JSON.stringify(actor.getPersistedSnapshot());
    });
    actor.on("*", (event) => emitted.push({ ...event }));
    actor.start();
    return actor;
  };
  let actor = create();
  return {
    clock,
    journal,
    emitted,
    state: () => actor.getSnapshot().context,
    value: () => actor.getSnapshot().value,
    stored: () => stored,
    send: (event, principal = FLEET_PRINCIPAL) => {
      const before = actor.getSnapshot();
      const sent = WalletEvent.parse({ ...event, principal });
      actor.send(sent);
      if (actor.getSnapshot() !== before) return { kind: "applied" };
      return noEffectOf("wallet", before.context, before.value, sent);
    },
    look: () => actor.send({ type: "lookedForLeft" }),
    crash: () => {
      actor.stop();
      actor = create(stored);
    },
  };
}

export const amount = (microUsd: number | undefined, tokens = 1): Amount => ({
  tokens,
  ...(microUsd !== undefined && { microUsd }),
});

export const reserve = (job: string, run: string, maximum: Amount, more: object = {}): PlainEvent => ({
  type: "reserve",
  job,
  run,
  estimate: maximum,
  maximum,
  ...more,
});
export const settle = (job: string, run: string, charged: Amount, nanoUsd?: number): PlainEvent => ({
  type: "settle",
  job,
  run,
  amount: charged,
  ...(nanoUsd !== undefined && { nanoUsd }),
});
export const release = (job: string, run: string): PlainEvent => ({ type: "release", job, run, reason: "refused" });
export const leave = (job: string, run: string): PlainEvent => ({ type: "leaveUnresolved", job, run, reason: "cut" });
export const fence = (job: string, run: string, maximum: Amount): PlainEvent => ({ type: "fence", job, run, maximum });
