import { isErrorCode, RuntimeFault } from "@holdfast/protocol";
import { SeededRandom } from "@holdfast/runtime/testing";
import type { Client } from "holdfast";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { CountingDesk } from "./counting-desk.ts";
import { FleetWatch } from "./fleet-watch.ts";
import { ProcessWatch } from "./process-watch.ts";
import type { Scenario, ScenarioOptions } from "./scenario.ts";

const NAMESPACE = "flow";

/** What a run asks for, and what the nodes are limited to. */
interface Plan {
  readonly commands: number;
  /** Those of them that want a job; the others are only noted. */
  readonly withJob: number;
  readonly memoryMb: number;
  readonly jobs: number;
  /** Of the provider that `call` jobs use. */
  readonly calls: number;
  /** Of the source `file`. */
  readonly files: number;
  readonly steps: number;
  readonly busyFrom: number;
  /** Unanswered commands of one sender. */
  readonly unanswered: number;
  readonly layout: { readonly pools: Readonly<Record<string, number>>; readonly shards: number };
}

const FULL: Plan = {
  commands: 10_000,
  withJob: 3000,
  memoryMb: 192,
  jobs: 24,
  calls: 8,
  files: 20,
  steps: 64,
  busyFrom: 200,
  unanswered: 512,
  layout: { pools: { d: 32 }, shards: 8 },
};
const QUICK: Plan = {
  ...FULL,
  commands: 400,
  withJob: 200,
  busyFrom: 20,
  unanswered: 128,
  layout: { pools: { d: 4 }, shards: 2 },
};

const Context = z.object({ results: z.array(z.string()), failures: z.number() });
const Used = z.looseObject({ stepping: z.number(), jobs: z.number(), pauses: z.number() });

/**
 * More commands at once than one small node can work off, then its death with all of their jobs pending, then its restart.
 * Nothing may grow with the backlog: not what runs, not the memory, not the time between heartbeats; and nothing may be lost.
 */
export const flowControl: Scenario = {
  name: "flow-control",
  variants: [],
  run: async (options) => {
    const plan = options.quick ? QUICK : FULL;
    await using stack = new AsyncDisposableStack();
    const cluster = stack.adopt(await Cluster.start(NAMESPACE), (started) => started.stop());
    const desk = stack.adopt(await CountingDesk.start(), (started) => started.stop());
    const nodes: StartedProcess[] = [];
    stack.defer(async () => void (await Promise.all(nodes.map((node) => node.kill()))));
    const start = async (name: string): Promise<StartedProcess> => {
      const node = await startNode(cluster, plan, name, desk.url);
      nodes.push(node);
      return node;
    };
    const first = await start("loaded");
    const client = stack.use(await cluster.client(NAMESPACE, { unanswered: plan.unanswered }));
    const fleet = stack.adopt(await FleetWatch.start(cluster.nats, NAMESPACE), (watch) => watch.stop());
    const partitions = plan.layout.pools["d"] ?? 0;
    const serves = (node: StartedProcess): Promise<unknown> =>
      waitUntil(
        `${incarnationOf(node)} serves everything`,
        async () =>
          fleet.heldBy(incarnationOf(node)) === partitions &&
          (await client.holdfast.read.fleet()).reports.filter(({ incarnation }) => incarnation === incarnationOf(node))
            .length === partitions,
        { timeoutMs: 60_000, tickMs: 100, dump: () => node.log().slice(-4000) },
      );
    await serves(first);
    const witness = await start("witness");
    const claimsBefore = fleet.claims.length;

    const firstMemory = stack.adopt(new ProcessWatch(first.pid), (watch) => watch.stop());
    const startedMs = performance.now();
    const commands = commandsOf(plan, options);
    const sent = await sendAll(client, commands);
    const acceptedMs = Math.round(performance.now() - startedMs);
    options.say(`  ${plan.commands} commands applied in ${acceptedMs} ms, busy ${sent.busy} times`);
    const claimsUnderCommands = fleet.claims.slice(claimsBefore);
    const usedFirst = usedBy(first);
    options.say(`  ${JSON.stringify(usedFirst)}, rss ${Math.round(firstMemory.highestMb)} MiB`);

    await witness.kill();
    const firstHighestMb = firstMemory.highestMb;
    await first.kill();
    const attemptsBefore = desk.attempts.size;
    const diedMs = performance.now();
    const second = await start("restarted");
    const secondMemory = stack.adopt(new ProcessWatch(second.pid), (watch) => watch.stop());
    await waitUntil("the restarted node holds every lease", () => fleet.heldBy(incarnationOf(second)) === partitions, {
      timeoutMs: 60_000,
      dump: () => second.log().slice(-4000),
    });
    const secondWitness = await start("second-witness");
    const claimsAtRestart = fleet.claims.length;
    await serves(second);
    const servedMs = Math.round(performance.now() - diedMs);
    options.say(`  restarted with ${plan.withJob} actors that have work; it serves after ${servedMs} ms`);
    desk.open();
    await untilDone(desk, commands.filter(({ input }) => input.kind !== "note").length, second);
    const doneMs = Math.round(performance.now() - diedMs);
    const wrong = await judge(client, commands);
    const settledMs = Math.round(performance.now() - diedMs);
    const usedSecond = usedBy(second);
    const secondHighestMb = secondMemory.highestMb;
    options.say(`  ${JSON.stringify(usedSecond)}, rss ${Math.round(secondHighestMb)} MiB, settled ${settledMs} ms`);
    const claimsUnderHerd = fleet.claims.slice(claimsAtRestart);
    const limitMb = 1.5 * plan.memoryMb;
    const atDesk = Object.fromEntries(desk.highest);
    return {
      rows: {
        withinConcurrency:
          (atDesk["all"] ?? 0) <= plan.jobs &&
          (atDesk["call"] ?? 0) <= plan.calls &&
          (atDesk["file"] ?? 0) <= plan.files &&
          [usedFirst, usedSecond].every(({ stepping, jobs }) => stepping <= plan.steps && jobs <= plan.jobs),
        // A limit that nothing reaches shows nothing.
        concurrencyUsed:
          atDesk["all"] === plan.jobs && atDesk["call"] === plan.calls && usedFirst.stepping === plan.steps,
        withinMemory: firstHighestMb <= limitMb && secondHighestMb <= limitMb,
        noTakeoverUnderLoad: claimsUnderCommands.length === 0 && claimsUnderHerd.length === 0,
        busyIsTyped: sent.busy > 0 && sent.untyped.length === 0,
        allAppliedOnce: wrong.length === 0 && sent.other.length === 0,
      },
      leftOut: {},
      details: {
        plan,
        busy: sent.busy,
        untyped: sent.untyped.slice(0, 3),
        other: sent.other.slice(0, 3),
        wrong: wrong.slice(0, 3),
        acceptedMs,
        servedMs,
        doneMs,
        settledMs,
        attemptsBefore,
        attempts: [...desk.attempts.values()].reduce((sum, count) => sum + count, 0),
        atDesk,
        rssMb: { commands: Math.round(firstHighestMb), restart: Math.round(secondHighestMb), limit: limitMb },
        // The witnesses do nothing: a gap that they have too is the broker's or the machine's.
        heartbeatGapMs: {
          loaded: fleet.longestGapMs.get(incarnationOf(first)),
          witness: fleet.longestGapMs.get(incarnationOf(witness)),
          restarted: fleet.longestGapMs.get(incarnationOf(second)),
          secondWitness: fleet.longestGapMs.get(incarnationOf(secondWitness)),
        },
        used: [usedFirst, usedSecond],
        claims: { underCommands: claimsUnderCommands, underHerd: claimsUnderHerd },
      },
    };
  },
};

const incarnationOf = (node: StartedProcess): string => String(node.hello["incarnation"]);

function startNode(cluster: Cluster, plan: Plan, name: string, deskUrl: string): Promise<StartedProcess> {
  const { url, user, password } = cluster.nats;
  return startProcess(join(import.meta.dirname, "flow-node-under-test.ts"), [
    JSON.stringify({
      nats: { servers: [url], user, password, inboxPrefix: "_INBOX_node" },
      namespace: NAMESPACE,
      name,
      deskUrl,
      layout: plan.layout,
      fileConcurrency: plan.files,
      runtime: {
        memoryMb: plan.memoryMb,
        nodeJobConcurrency: plan.jobs,
        providerConcurrency: { model: plan.calls },
        stepConcurrency: plan.steps,
        busyFrom: plan.busyFrom,
        movesAtOnce: 0, // partitions move only when somebody is taken for dead
      },
    }),
  ]);
}

/** However slow the machine is: it is over when nothing was done for a while. */
async function untilDone(desk: CountingDesk, jobs: number, node: StartedProcess): Promise<void> {
  for (let done = -1; desk.attempts.size < jobs;) {
    done = await waitUntil("another job was done", () => (desk.attempts.size > done ? desk.attempts.size : undefined), {
      timeoutMs: 20_000,
      tickMs: 100,
      dump: () => ({ done: desk.attempts.size, of: jobs, used: usedBy(node), log: node.log().slice(-3000) }),
    });
  }
}

interface Command {
  readonly id: string;
  readonly input: { readonly kind: "call" | "file" | "note"; readonly payload: string };
}

function commandsOf(plan: Plan, { seed }: ScenarioOptions): readonly Command[] {
  const random = new SeededRandom(seed);
  const every = Math.floor(plan.commands / plan.withJob);
  return Array.from({ length: plan.commands }, (_, n) => ({
    id: `b${n}`,
    input: {
      kind: n % every > 0 ? ("note" as const) : random.below(2) === 0 ? ("call" as const) : ("file" as const),
      payload: random.hex(256 + random.below(512)),
    },
  }));
}

interface Sent {
  /** Times that a sender was told to come back later. */
  busy: number;
  /** Refusals of that kind that did not say when. */
  readonly untyped: string[];
  /** Whatever else was not applied. */
  readonly other: string[];
}

/** Sends everything at once; whoever is told to come back does so when it was told to. */
async function sendAll({ holdfast }: Client, commands: readonly Command[]): Promise<Sent> {
  const sent: Sent = { busy: 0, untyped: [], other: [] };
  await Promise.all(
    commands.map(async ({ id, input }) => {
      for (;;) {
        try {
          const result = await holdfast.start("burst", id, input, { timeoutMs: 60_000 });
          // `accepted`: stored, the answer came too late; what became of it is judged by the record.
          if (result.kind === "refused") sent.other.push(`${id}: ${JSON.stringify(result)}`);
          return;
        } catch (error) {
          const fault = error instanceof RuntimeFault ? error : undefined;
          if (fault?.code !== "HF-3020") {
            sent.other.push(`${id}: ${fault?.message ?? String(error)}`);
            return;
          }
          const retryAfterMs = fault.facts["retryAfterMs"];
          sent.busy += 1;
          if (!isErrorCode(fault.code) || typeof retryAfterMs !== "number" || retryAfterMs < 1) {
            sent.untyped.push(fault.message);
            return;
          }
          await delay(retryAfterMs);
        }
      }
    }),
  );
  return sent;
}

/** The last thing a node said about what it uses. */
function usedBy(node: StartedProcess): z.infer<typeof Used> {
  const line = node
    .log()
    .split("\n")
    .findLast((text) => text.includes('"flow.used"'));
  return Used.parse(JSON.parse(line ?? "{}"));
}

/** @returns actors whose command or whose result was not applied exactly once */
async function judge({ holdfast }: Client, commands: readonly Command[]): Promise<readonly string[]> {
  const wrong: string[] = [];
  const rest = commands.values();
  const deadlineMs = performance.now() + 30_000;
  const look = async (): Promise<void> => {
    for (const { id } of rest) {
      const key = holdfast.key("burst", id);
      for (;;) {
        const actor = await holdfast.read.actor(key);
        const context = Context.safeParse(actor?.record.snapshot.context).data;
        if (actor?.record.snapshot.value === "served" && context?.results.length === 1 && context.failures === 0) break;
        if (performance.now() > deadlineMs) {
          wrong.push(`${id}: ${JSON.stringify(actor?.record.snapshot.value)} ${JSON.stringify(context?.results)}`);
          break;
        }
        await delay(100);
      }
    }
  };
  await Promise.all(Array.from({ length: 32 }, look));
  return wrong;
}
