/** A node that gets more commands than it can work off at once. Takes its settings as one JSON argument; says every second how much it holds. */
import { boundHeap, createLogger } from "@holdfast/process";
import { defineActor, startNode, type JobContext, type JobDefinition } from "holdfast";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { z } from "zod";
import { burstMachine } from "../harness/burst.machine.ts";

const Settings = z.object({
  nats: z.object({ servers: z.array(z.string()), user: z.string(), password: z.string(), inboxPrefix: z.string() }),
  namespace: z.string(),
  name: z.string(),
  deskUrl: z.string(),
  layout: z.object({ pools: z.record(z.string(), z.number()), shards: z.number() }).optional(),
  fileConcurrency: z.number(),
  runtime: z.looseObject({ memoryMb: z.number() }),
});
const { nats, namespace, name, deskUrl, layout, fileConcurrency, runtime } = Settings.parse(
  JSON.parse(process.argv[2] ?? "{}"),
);
boundHeap(runtime.memoryMb);

/** Has one job done outside, where the jobs that run at the same time are counted. */
const atDesk =
  (kind: string): NonNullable<JobDefinition["run"]> =>
  async (_input: unknown, job: JobContext): Promise<string> => {
    const response = await fetch(`${deskUrl}/${kind}/${encodeURIComponent(job.key)}`, {
      method: "POST",
      signal: job.signal,
    });
    if (!response.ok) throw new Error(`the desk answered ${response.status}`);
    await response.arrayBuffer();
    return job.key;
  };

const telemetry = createLogger({ level: "info", node: name });
const node = await startNode({
  nats,
  namespace,
  name,
  definitions: [
    defineActor({
      type: "burst",
      machine: burstMachine,
      jobs: {
        call: { crashPolicy: "idempotent", provider: "model", run: atDesk("call") },
        file: { crashPolicy: "idempotent", concurrency: fileConcurrency, run: atDesk("file") },
      },
    }),
  ],
  ...(layout !== undefined && { layout }),
  settings: runtime,
  telemetry,
});
process.stdout.write(`${JSON.stringify({ node: name, incarnation: node.incarnation })}\n`);

const loop = monitorEventLoopDelay({ resolution: 10 });
loop.enable();
const { runtime: running } = node;
setInterval(() => {
  const { memory, stepping, hot } = running.flow;
  const { rss, heapUsed, external } = process.memoryUsage();
  telemetry.info("flow.used", {
    stepping: stepping.highest,
    jobs: running.jobs.highest,
    jobsKnown: running.jobs.size,
    heldMb: mib(memory.highest),
    heldNowMb: mib(memory.total),
    limitMb: mib(memory.limitBytes),
    resting: hot.size,
    pauses: [...running.partitions.values()].reduce((sum, { pauses }) => sum + pauses, 0),
    rssMb: mib(rss),
    heapMb: mib(heapUsed),
    externalMb: mib(external),
    loopMaxMs: Math.round(loop.max / 1e6),
  });
}, 500).unref();

// A scenario that dies takes its nodes along.
process.stdin
  .once("end", () => process.exit(1))
  .once("close", () => process.exit(1))
  .resume();
process.once("SIGTERM", () => void node.drain().then(() => process.exit(0)));

function mib(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
