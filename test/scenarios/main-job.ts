import type { Scenario } from "./scenario.ts";
export const mainJob: Scenario = { name: "main-job", variants: [], run: () => Promise.reject(new Error("later")) };
