import { fromCallback } from "xstate";

/** Where tasks wait until they may run. What it knows lasts as long as its process; a task asks again on the next node. */
export interface TaskSlots {
  /**
   * Asks for a slot.
   *
   * @param root       roots take turns; without one it takes no slot
   * @param isRunning  it runs already: it takes a slot at once, also when there is none left
   * @param wallet     pays for it: while that is fenced, nothing that does not run already is let in
   * @param granted    called once, when it has one
   * @returns gives the slot back, or the place in the queue
   */
  take(request: SlotInput, granted: () => void): () => void;
}

/** What a task asks with. */
export interface SlotInput {
  readonly root?: string;
  readonly isRunning: boolean;
  readonly wallet?: string;
}

/** Slots without a limit. */
export const ENDLESS_SLOTS: TaskSlots = {
  take: (_request, granted) => {
    granted();
    return () => undefined;
  },
};

/** Holds a slot for as long as it lives, and says when it has one. */
export const slotLogic = (slots: TaskSlots) =>
  fromCallback<{ type: string }, SlotInput>(({ input, sendBack }) =>
    slots.take(input, () => sendBack({ type: "slotGranted" })),
  );
