import { assign, fromPromise, setup } from "xstate";

/** One long effect outside. `sure`: may run again under its key. `once`: must never run twice. It ends when the file `gate` exists. */
export interface ParcelInput {
  readonly kind: "sure" | "once";
  readonly gate: string;
}

const suppliedByNode = fromPromise<unknown, ParcelInput>(async () => {
  throw new Error("supplied by the node");
});

export const parcelMachine = setup({
  types: { context: {} as ParcelInput & { packed: unknown }, input: {} as ParcelInput },
  actors: { packSure: suppliedByNode, packOnce: suppliedByNode },
}).createMachine({
  id: "parcel",
  version: "1",
  context: ({ input }) => ({ ...input, packed: undefined }),
  initial: "arriving",
  states: {
    arriving: { always: [{ guard: ({ context }) => context.kind === "sure", target: "sure" }, { target: "once" }] },
    sure: {
      invoke: {
        id: "packSure",
        src: "packSure",
        input: ({ context }) => context,
        onDone: { target: "packed", actions: assign({ packed: ({ event }) => event.output }) },
        onError: "lost",
      },
    },
    once: {
      invoke: {
        id: "packOnce",
        src: "packOnce",
        input: ({ context }) => context,
        onDone: { target: "packed", actions: assign({ packed: ({ event }) => event.output }) },
        onError: "lost",
      },
    },
    packed: { type: "final" },
    lost: { type: "final" },
  },
  output: ({ context }) => context.packed,
});
