import { mixedChaos } from "../chaos/mixed-chaos.ts";
import type { Scenario } from "./scenario.ts";

const MINUTES = 0.75;
const QUICK_MINUTES = 0.3;

/** A bounded run of `npm run chaos`: a mixed workload on three nodes under seeded misfortune, judged by the checker. */
export const chaos: Scenario = {
  name: "chaos",
  variants: [],
  run: ({ seed, quick, say }) => mixedChaos({ minutes: quick ? QUICK_MINUTES : MINUTES, seed, say }),
};
