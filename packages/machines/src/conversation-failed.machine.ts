import { IDLE_TAG } from "@holdfast/protocol";
import { conversationSetup } from "./conversation-setup.machine.ts";

/** It rests after a turn that came to nothing; a person lets it go on. */
export const restAfter = (rest: "error" | "stuck", type: "conversationError" | "conversationStuck") =>
  conversationSetup.createStateConfig({
    tags: IDLE_TAG,
    entry: [
      "dropPauseRequest",
      { type: "announce", params: { type } },
      { type: "reportRun", params: { outcome: "failed" } },
    ],
    on: {
      userMessage: [
        { guard: "isAcceptedToRun", target: "turn", actions: "acceptMessage" },
        { guard: "isAcceptable", actions: "acceptMessage" },
      ],
      resume: { target: "turn", actions: "renewAllowance" },
      run: { target: "turn", actions: "renewAllowance" },
      condense: {
        guard: "isCondensable",
        target: "condensing",
        actions: { type: "noteRest", params: { rest } },
      },
      close: { target: "closing" },
    },
  });
