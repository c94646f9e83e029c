import { IDLE_TAG, type WalletState } from "@holdfast/protocol";
import { assign, enqueueActions, setup } from "xstate";
import type { z } from "zod";
import { judgeWallet } from "./judge-wallet.ts";
import type { WalletEmitted } from "./emitted-event.ts";
import { ownIdOf } from "./own-id.ts";
import * as change from "./wallet-changes.ts";
import type { WalletEvent, WalletInput } from "./wallet-event.ts";

// A wallet: what may be spent, what is held for calls that run, what was spent.
// Owns: its balance, its fence.  Does not own: who spends (the jobs of the nodes), the entries (its journal is the ledger).
//   B1 nothing is held beyond the limit, nor beyond what was borrowed
//   B2 a reservation ends once: settled, released or unresolved; what is unresolved stays held until it is told otherwise
//   B3 what has no price is counted as such, and never as 0
//   B4 a limit is read when something is reserved; changing it wakes nobody
//   B5 a fence stays until a person lifts it, and ends nothing; ends and repayments are taken behind it as well

/** How often it looks for reservations that nobody ends, ms. */
const LOOK_MS = 10 * 60_000;

type MachineEvent = WalletEvent | { readonly type: "lookedForLeft" };
interface Moment {
  readonly context: WalletState;
  readonly event: MachineEvent;
}

const isOk = ({ context, event }: Moment): boolean =>
  event.type !== "lookedForLeft" && judgeWallet(context, event).kind === "ok";

/** A change that one kind of event makes. */
const changeBy = <T extends WalletEvent["type"]>(
  type: T,
  make: (context: WalletState, event: Extract<WalletEvent, { readonly type: T }>) => Partial<WalletState>,
) => {
  const isOfType = (event: MachineEvent): event is Extract<WalletEvent, { readonly type: T }> => event.type === type;
  return ({ context, event }: Moment): Partial<WalletState> => (isOfType(event) ? make(context, event) : {});
};

/** A wallet as an ordinary state machine; see the comment above and README.md. */
export const walletMachine = setup({
  // Only types are taken from these values; no code reads them.
  types: {
    context: {} as WalletState,
    input: {} as z.input<typeof WalletInput>,
    events: {} as MachineEvent,
    emitted: {} as WalletEmitted,
    tags: IDLE_TAG,
  },
  guards: { isOk },
  actions: {
    reserve: assign(changeBy("reserve", change.withReservation)),
    settle: assign(changeBy("settle", change.withSettlement)),
    release: assign(changeBy("release", change.withRelease)),
    leave: assign(changeBy("leaveUnresolved", change.withLeft)),
    setLimit: assign(changeBy("setLimit", change.withLimit)),
    closeHold: assign(changeBy("closeHold", change.withClosedHold)),
    announce: enqueueActions(({ context, enqueue }, { type }: Pick<WalletEmitted, "type">) => {
      const { fence } = context;
      if (fence !== undefined) enqueue.emit({ type, scope: fence.scope, fenceId: fence.fenceId });
    }),
    putFence: assign(changeBy("fence", (context, event) => change.withFence(context, event))),
    liftFence: assign({ fence: undefined }),
    lend: assign(changeBy("lend", change.withLoan)),
    takeRepayment: assign(changeBy("repaid", change.withRepayment)),
    takeFunds: assign(changeBy("fund", change.withFunds)),
    giveBack: assign(({ context }) => change.withSpareReturned(context)),
    look: assign(({ context }) => change.withLook(context)),
    /** One clock for all reservations, and none while there are none. */
    keepLooking: enqueueActions(({ context, enqueue }) => {
      if (Object.keys(context.open).length > 0) {
        enqueue.raise({ type: "lookedForLeft" }, { id: "look", delay: LOOK_MS });
      }
    }),
    beginLooking: enqueueActions(({ context, enqueue }) => {
      if (Object.keys(context.open).length === 1) {
        enqueue.raise({ type: "lookedForLeft" }, { id: "look", delay: LOOK_MS });
      }
    }),
  },
}).createMachine({
  id: "wallet",
  version: "1",
  context: ({ input, self }) => change.initialWallet(input, ownIdOf(self)),
  initial: "open",
  on: {
    reserve: { guard: "isOk", actions: ["reserve", "beginLooking"] },
    settle: { guard: "isOk", actions: "settle" },
    release: { guard: "isOk", actions: "release" },
    leaveUnresolved: { guard: "isOk", actions: "leave" },
    setLimit: { guard: "isOk", actions: "setLimit" },
    closeHold: { guard: "isOk", actions: "closeHold" },
    lend: { guard: "isOk", actions: "lend" },
    repaid: { guard: "isOk", actions: "takeRepayment" },
    fund: { guard: "isOk", actions: "takeFunds" },
    giveBack: { guard: "isOk", actions: "giveBack" },
    lookedForLeft: { actions: ["look", "keepLooking"] },
  },
  states: {
    open: {
      tags: IDLE_TAG,
      on: {
        fence: {
          guard: "isOk",
          target: "fenced",
          actions: ["putFence", { type: "announce", params: { type: "walletFenced" } }],
        },
      },
    },
    fenced: {
      tags: IDLE_TAG,
      on: {
        liftFence: {
          guard: "isOk",
          target: "open",
          actions: [{ type: "announce", params: { type: "walletFenceLifted" } }, "liftFence"],
        },
      },
    },
  },
});
