/** The node that is measured: default settings, counters and wallets. Takes its settings as JSON in BENCH_NODE, prints one JSON line when it serves. */
import { agentDefinitions } from "@holdfast/node-app";
import { createLogger } from "@holdfast/process";
import { defineActor, startNode } from "holdfast";
import { z } from "zod";
import { counterMachine } from "./counter.machine.ts";

/** How the measuring process starts this one. */
const BenchNodeSettings = z.object({
  nats: z.object({ servers: z.array(z.string()), user: z.string(), password: z.string() }),
  namespace: z.string(),
});

const settings = BenchNodeSettings.parse(JSON.parse(process.env["BENCH_NODE"] ?? "{}"));
const node = await startNode({
  ...settings,
  name: "bench",
  definitions: [
    defineActor({ type: "counter", machine: counterMachine }),
    ...agentDefinitions().filter(({ type }) => type === "wallet"),
  ],
  telemetry: createLogger({ level: "warn", node: "bench" }),
});
process.stdout.write(`${JSON.stringify({ node: node.name })}\n`);

// Nobody is left to measure: the parent ended without a word.
process.stdin.once("end", () => process.exit(1)).resume();
process.once("SIGTERM", () => void node.stop().then(() => process.exit(0)));
