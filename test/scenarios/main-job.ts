import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { waitUntil } from "../harness/wait-until.ts";
import { HoldfastCommand, runCommand } from "./holdfast-command.ts";
import { canListProcesses, processesOf } from "./processes.ts";
import { ResultLine, type Scenario, type ScenarioOptions, type ScenarioOutcome } from "./scenario.ts";
import { writeSeededDocuments } from "./seeded-documents.ts";

const DOCUMENTS = 8;
const QUICK_DOCUMENTS = 3;
const RUN_TIMEOUT_MS = 240_000;
const CACHE = join(import.meta.dirname, "../../.holdfast/bin");

const JobLine = ResultLine.and(
  z.looseObject({
    conversation: z.string(),
    decided: z.number(),
    killed: z.string().optional(),
    recoveredMs: z.number().optional(),
    durationMs: z.number(),
  }),
);
type JobLine = z.infer<typeof JobLine>;
const Conversations = z.object({ conversations: z.array(z.looseObject({ id: z.string(), status: z.string() })) });

/** What a user does first: `npm start` on a folder of documents, then again with a node killed in the middle of it. */
export const mainJob: Scenario = {
  name: "main-job",
  variants: [],
  run: async (options) => {
    const place = await mkdtemp(join(tmpdir(), "holdfast-main-job-"));
    try {
      return await play(place, options);
    } finally {
      for (const { pid } of canListProcesses() ? processesOf(place) : []) process.kill(pid, "SIGKILL");
      await rm(place, { recursive: true, force: true, maxRetries: 5 });
    }
  },
};

async function play(place: string, { quick, seed, say }: ScenarioOptions): Promise<ScenarioOutcome> {
  const home = join(place, "home");
  const folder = join(place, "documents");
  const paths = await writeSeededDocuments(folder, quick ? QUICK_DOCUMENTS : DOCUMENTS, seed);
  if (quick) await lendServer(home);
  const server = process.env["HOLDFAST_NATS_SERVER"];
  const env = { HOLDFAST_HOME: home, ...(server !== undefined && { HOLDFAST_NATS_SERVER: server }) };

  const plainRun = new HoldfastCommand(["demo", folder, "--json"], { env });
  const plain = lineOf((await plainRun.result(RUN_TIMEOUT_MS)).json, plainRun);
  say(`  plain: ${JSON.stringify(plain.rows)} in ${plain.durationMs} ms`);
  const leftAfterPlain = await remaining(place);

  const killRun = new HoldfastCommand(["demo", folder, "--json", "--kill", "--stay"], { env });
  const kill = lineOf(await killRun.firstResult(RUN_TIMEOUT_MS), killRun);
  say(`  kill: ${JSON.stringify(kill.rows)} in ${kill.durationMs} ms, ${kill.killed ?? "nothing"} killed`);
  const listed = Conversations.safeParse((await runCommand(["conversation", "list", "--json"], { env })).json);
  killRun.signal("SIGINT");
  const { code } = await killRun.result(60_000);
  const leftAfterKill = await remaining(place);

  const listedIds = listed.data?.conversations.map(({ id }) => id) ?? [];
  const startedMs = killRun.saidAfterMs(/^conversation /);
  const isFetchedOnce = killRun.saidAfterMs(/^nats-server .* \((?:cache|env|path)\)/) !== undefined;
  return {
    rows: {
      ...plain.rows,
      ...Object.fromEntries(Object.entries(kill.rows).map(([name, holds]) => [`kill-${name}`, holds])),
      everyDocumentDelegated: plain.decided === paths.length && kill.decided === paths.length,
      "kill-nodeKilled": kill.killed !== undefined && kill.recoveredMs !== undefined,
      storeReused: isFetchedOnce && [plain, kill].every(({ conversation }) => listedIds.includes(conversation)),
      within30s: startedMs !== undefined && startedMs <= 30_000,
      exitsClean: code === 0,
      ...(canListProcesses() && { noOrphans: leftAfterPlain.length + leftAfterKill.length === 0 }),
    },
    leftOut: canListProcesses() ? {} : { noOrphans: "this machine has no /proc to look at" },
    details: {
      documents: paths.length,
      startedMs,
      durationMs: { plain: plain.durationMs, kill: kill.durationMs },
      recoveredMs: kill.recoveredMs,
      killed: kill.killed,
      ...(leftAfterPlain.length + leftAfterKill.length > 0 && { orphans: [...leftAfterPlain, ...leftAfterKill] }),
    },
  };
}

/** The server binary of this checkout, so that a quick run does not fetch one. Without one it is fetched after all. */
async function lendServer(home: string): Promise<void> {
  await mkdir(home, { recursive: true });
  if (existsSync(CACHE)) await symlink(CACHE, join(home, "bin"));
}

/** What still runs a moment after a command ended: signals take their time. */
async function remaining(place: string): Promise<readonly string[]> {
  if (!canListProcesses()) return [];
  const look = () => processesOf(place);
  await waitUntil("everything has ended", () => look().length === 0, { timeoutMs: 5000 }).catch(() => undefined);
  return look().map(({ pid, command }) => `${pid} ${command}`);
}

function lineOf(value: unknown, command: HoldfastCommand): JobLine {
  const line = JobLine.safeParse(value);
  if (line.success) return line.data;
  throw new Error(`No result line but ${JSON.stringify(value)}:\n${command.stderr}`);
}
