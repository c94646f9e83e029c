/** A node of the takeover bench. Takes its settings as JSON in TAKEOVER_NODE, prints one JSON line when it has joined. */
import { createLogger } from "@holdfast/process";
import { defineActor, startNode, type JobContext } from "holdfast";
import { z } from "zod";
import { dutyMachine } from "./duty.machine.ts";

const TakeoverNodeSettings = z.object({
  nats: z.object({ servers: z.array(z.string()), user: z.string(), password: z.string() }),
  namespace: z.string(),
  name: z.string(),
  /** Jobs of this node never end: it is going to be killed under them. */
  holdsJobs: z.boolean(),
});

const { holdsJobs, ...settings } = TakeoverNodeSettings.parse(JSON.parse(process.env["TAKEOVER_NODE"] ?? "{}"));

const work = (_input: unknown, { signal }: JobContext): Promise<unknown> =>
  holdsJobs ? new Promise((resolve) => signal.addEventListener("abort", resolve)) : Promise.resolve(undefined);

const node = await startNode({
  ...settings,
  definitions: [
    defineActor({
      type: "duty",
      machine: dutyMachine,
      // It costs nothing to run: what limits it is how fast outcomes are stored.
      jobs: { work: { crashPolicy: "idempotent", concurrency: 256, run: work } },
    }),
  ],
  // Partitions come to a node that joins one after the other. Here nobody looks at that, so all may move at once.
  settings: { movesAtOnce: 32 },
  telemetry: createLogger({ level: "warn", node: settings.name }),
});
process.stdout.write(`${JSON.stringify({ node: node.name, incarnation: node.incarnation })}\n`);

// Nobody is left to measure: the parent ended without a word.
process.stdin.once("end", () => process.exit(1)).resume();
process.once("SIGTERM", () => void node.drain().then(() => process.exit(0)));
