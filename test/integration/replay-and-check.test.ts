import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAgent, withDelegates } from "@holdfast/agents";
import { check, collectEvidence, type AcceptedCommand, type CheckEvidence, type Verdict } from "@holdfast/audit";
import { createCodec, type Codec } from "@holdfast/codec";
import { jetstreamManager } from "@nats-io/jetstream";
import { connectNats, publishStored, scopedMessageId, type Link } from "@holdfast/jetstream";
import { agentDefinitions } from "@holdfast/node-app";
import { inboxPrefixOf } from "@holdfast/process";
import { parseActorKey, shardOf, subjectsOf, type ActorRecord, type JournalEntry } from "@holdfast/protocol";
import { compileActors, readForReplay, replayJudge, replayStored, type Client } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";
import { CHILDREN } from "../scenarios/delegation-stage.ts";
import { runCommand, type CommandResult } from "../scenarios/holdfast-command.ts";

// One conversation that delegates to two children, a node that dies while they work, another one that goes on. Then everything stops, is
// replayed and judged, and then tampered with, one thing after the other, with the rights of a node.

const NAMESPACE = "rp";
const ID = "delegating";
const Result = z.looseObject({
  key: z.string(),
  pass: z.boolean(),
  steps: z.array(
    z.looseObject({
      seq: z.number(),
      rev: z.number(),
      event: z.string(),
      changes: z.array(z.looseObject({ path: z.string() })),
    }),
  ),
  end: z.looseObject({ kind: z.string() }),
  asserted: z.looseObject({ differences: z.array(z.looseObject({ path: z.string() })) }).optional(),
});

let cluster: Cluster;
let fleet: AgentFleet;
let client: Client;
let place: string;
let env: Record<string, string>;
let codec: Codec;
let link: Link;
let keys: { readonly parent: string; readonly tasks: readonly string[]; readonly conversations: readonly string[] };
const accepted: AcceptedCommand[] = [];

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "holdfast-replay-"));
  cluster = await Cluster.start();
  fleet = await AgentFleet.start(cluster, { namespace: NAMESPACE, leaseTtlMs: 600 });
  const first = await fleet.startNode("node-a");
  client = await fleet.client();
  const { holdfast } = client;
  const instructions = "Wait until you are told to answer. ".repeat(100); // kept outside of every record and journal entry
  const blocker = defineAgent({ name: "blocker", model: "blocker", instructions });
  const agent = withDelegates(defineAgent({ name: "delegator", model: "delegate-two" }), [blocker]);
  const input = { agent, agents: { blocker }, prompt: "Ask both children." };
  const parent = holdfast.key("conversation", ID);
  const started = await holdfast.start("conversation", ID, input, { idempotencyKey: "start", timeoutMs: 30_000 });
  if (started.kind !== "applied") throw new Error(started.kind);
  accepted.push({ key: parent, messageId: idOf(parent, "start"), outcome: "applied", rev: started.rev });
  await fleet.model.wait({ model: "blocker", state: "blocked", count: CHILDREN.length });
  await first.kill();
  await fleet.startNode("node-b");
  await fleet.model.wait({ model: "blocker", state: "blocked", count: CHILDREN.length });
  for (const child of CHILDREN) await fleet.model.release(child);
  const headers = await waitUntil(
    "the parent rests, nobody has work, and the cursors have passed everything",
    async () => {
      const { holdfast } = client;
      const all = await holdfast.read.headers();
      const status = all.find(({ key }) => key === parent)?.list["status"];
      const cursors = new Map((await holdfast.read.fleet()).leases.map(({ partition, cursor }) => [partition, cursor]));
      const isRead = all.every(({ key, inboxSeq }) => (cursors.get(parseActorKey(key).partition) ?? 0) > inboxSeq);
      return status === "idle" && isRead && all.every(({ needsWork }) => !needsWork) ? all : undefined;
    },
    { timeoutMs: 60_000, dump: () => fleet.logs().slice(-4000) },
  );
  const of = (type: string): readonly string[] =>
    headers.map(({ key }) => key).filter((key) => parseActorKey(key).type === type && key !== parent);
  keys = { parent, tasks: of("task"), conversations: of("conversation") };
  await fleet.stop();
  const { nats } = cluster;
  link = await connectNats({ name: "planter", servers: [nats.url], user: nats.user, pass: nats.password });
  codec = createCodec({ ref: noReferences });
  env = {
    HOLDFAST_NATS_URL: nats.url,
    HOLDFAST_NATS_USER: nats.user,
    HOLDFAST_NATS_PASSWORD: nats.password,
    HOLDFAST_NAMESPACE: NAMESPACE,
  };
}, 180_000);
afterAll(async () => {
  await link.close();
  await client.close();
  await fleet.stop();
  await cluster.stop();
  await rm(place, { recursive: true, force: true });
});

/** None of these actors holds one. */
const noReferences: Parameters<typeof createCodec>[0]["ref"] = {
  tag: "ref",
  is: () => false,
  encode: () => ({ key: "", id: "" }),
  decode: (plain) => plain,
};
const idOf = (target: string, idempotencyKey: string): string =>
  scopedMessageId({ target, principal: "person-local", idempotencyKey });
const targetOf = (key: string): string => `${parseActorKey(key).type}/${parseActorKey(key).id}`;
const replay = (key: string, ...args: readonly string[]): Promise<CommandResult> =>
  runCommand(["replay", targetOf(key), ...args], { env });

async function replayed(code: number, key: string, ...args: readonly string[]) {
  const result = await replay(key, ...args, "--json");
  expect({ code: result.code, stderr: result.stderr }).toEqual({ code, stderr: "" });
  return Result.parse(result.json);
}

async function evidence(tries?: number): Promise<CheckEvidence> {
  const { nats } = cluster;
  const ledger = (await cluster.entries()).map((line) => JSON.stringify(line));
  const access = { servers: [nats.url], user: nats.user, password: nats.password, inboxPrefix: inboxPrefixOf("node") };
  return collectEvidence({ ...access, namespace: NAMESPACE, accepted, ledger, ...(tries !== undefined && { tries }) });
}

async function judged(): Promise<Verdict> {
  const machines = compileActors(agentDefinitions());
  return check(await evidence(), { replay: replayJudge({ machines, scheme: client.holdfast.manifest }) });
}

/** Codes of the findings about one actor. */
const codesAbout = ({ findings }: Verdict, key: string): readonly string[] =>
  findings.filter((finding) => finding.key === key).map(({ claim, code }) => `${claim} ${code}`);

describe("a run in which a node died", () => {
  test("every actor replays to what is stored", async () => {
    const machines = compileActors(agentDefinitions());
    const { read, manifest } = client.holdfast;
    for (const key of [keys.parent, ...keys.tasks, ...keys.conversations]) {
      const stored = await readForReplay(read, key);
      if (stored === undefined) throw new Error(`no ${key}`);
      const result = replayStored(stored, { machines, scheme: manifest });
      expect({ key, end: result.end, differences: result.differences }).toEqual({
        key,
        end: { kind: "complete" },
        differences: [],
      });
      expect(result.steps.map(({ record }) => record.rev)).toEqual(
        Array.from({ length: stored.record.rev }, (_, index) => index + 1),
      );
    }
    expect(keys.tasks).toHaveLength(2);
  });

  test("the command says so, for people: a line per step, the context by path", async () => {
    const { code, stdout } = await replay(keys.parent, "--assert", "stored");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\d+ {2}1 {2}start \S+ {2}xstate\.init {2}· → /);
    expect(stdout).toMatch(
      /\n\d+ {2}\d+ {2}settled \S+:settled {2}xstate\.done\.actor\.\S+ {2}.+ → .+ {2}.*journal \d+#\d+/,
    );
    expect(stdout).toMatch(/\n {6}[+~] context\.\S+/);
    expect(stdout).toMatch(/\n\d+ steps replayed\nequal to what is stored\n {2}not compared: considered/);
  });

  test("it stops where it is told, is saved, and compared with what was saved or printed", async () => {
    const file = join(place, "saved.json");
    const all = await replay(keys.parent, "--save", file, "--assert", "stored", "--json");
    const { steps, pass, asserted } = Result.parse(all.json);
    expect({ code: all.code, pass, asserted }).toMatchObject({ code: 0, pass: true, asserted: { differences: [] } });
    const earlier = await replayed(10, keys.parent, "--to", String(steps[2]?.seq), "--assert", file);
    expect(earlier.steps.length).toBeLessThan(steps.length);
    expect(earlier.asserted?.differences.map(({ path }) => path)).toContain("rev");
    await writeFile(file, all.stdout.replace(/"status":"active"(?=,"timers")/, '"status":"done"'));
    const differs = await replay(keys.parent, "--assert", file);
    expect(differs).toMatchObject({ code: 10, stdout: expect.stringContaining('\n  ~ status: "done" → "active"') });
  });

  test("what cannot be asked for is refused with a code", async () => {
    const file = join(place, "other.json");
    await writeFile(file, JSON.stringify({ v: 1, key: keys.tasks[0], rev: 1, state: {} }));
    const refusals: readonly (readonly [string, string, ...string[]])[] = [
      ["HF-1001", keys.parent, "--to", "3", "--assert", "stored"],
      ["HF-1001", keys.parent, "--assert", file],
      ["HF-3001", keys.parent.replace(ID, "nobody")],
    ];
    for (const [fault, key, ...args] of refusals) {
      const { code, stderr } = await replay(key, ...args);
      expect({ args, code, stderr }).toEqual({
        args,
        code: 1,
        stderr: expect.stringMatching(new RegExp(`^${fault}: `)),
      });
    }
  });

  test("the checker holds every claim, over two owners", async () => {
    const verdict = await judged();
    expect(verdict.findings).toEqual([]);
    expect(verdict).toMatchObject({
      pass: true,
      leftOut: {},
      figures: { actors: 5, children: 4, commands: 1, replayed: 5 },
    });
    expect(Object.keys(verdict.rows)).toHaveLength(7);
    const { journal, blobs } = await evidence();
    const named = journal.flatMap(({ entries }) => entries.flatMap((entry) => Object.values(Object(entry["blobs"]))));
    expect(named.length).toBeGreaterThan(0);
    expect(blobs.size).toBeGreaterThan(0);
    const writers = new Set(
      journal.flatMap(({ entries }) => entries.map(({ writer }) => writer?.incarnation.split(":")[0])),
    );
    expect(writers).toEqual(new Set(["node-a", "node-b"]));
  });
});

describe("planted into the streams", () => {
  const subjects = subjectsOf(NAMESPACE);
  const shard = (key: string): number => shardOf(client.holdfast.manifest, parseActorKey(key).partition);
  const publish = async (subject: string, bytes: Uint8Array): Promise<void> => {
    expect(await publishStored(link, { subject, bytes })).toMatchObject({ kind: "accepted" });
  };
  const journalOf = async (key: string): Promise<readonly JournalEntry[]> =>
    (await client.holdfast.read.journalAsStored(key)).flatMap(({ entries }) => entries);
  const writeRecord = async (key: string, change: (record: ActorRecord) => ActorRecord): Promise<void> => {
    const stored = await client.holdfast.read.actorAsStored(key);
    if (stored === undefined) throw new Error(`no ${key}`);
    const record = change(stored.record);
    const { genesis, rev, status } = record;
    const header = { ...stored.header, key: record.key, genesis, rev, status };
    await publish(subjects.actorSubject(shard(record.key), record.key), codec.encodeRecord(record, header));
  };

  test("a record with another context: `--assert stored` names the path, and only the replay is red", async () => {
    const [key = ""] = keys.tasks;
    await writeRecord(key, (record) => {
      const { context } = record.snapshot;
      return { ...record, snapshot: { ...record.snapshot, context: { ...Object(context), planted: 1 } } };
    });
    const result = await replayed(10, key, "--assert", "stored");
    expect(result.asserted?.differences).toEqual([{ path: "snapshot.context.planted", before: 1 }]);
    expect(codesAbout(await judged(), key)).toEqual(["replaysToStored different"]);
  });

  test("one revision with two contents", async () => {
    const [key = ""] = keys.conversations;
    const second = (await journalOf(key))[1];
    if (second === undefined) throw new Error("too short");
    await publish(subjects.journal(key), codec.encodeJournalBatch([{ ...second, status: "closing" }]));
    const verdict = await judged();
    expect(codesAbout(verdict, key)).toEqual(["journalGapFree contradiction", "replaysToStored different"]);
  });

  test("an owner of an epoch that belongs to another one", async () => {
    const [, key = ""] = keys.conversations;
    const next = (await client.holdfast.read.header(key))?.epoch ?? 0;
    await writeRecord(key, (record) => record);
    const stored = await client.holdfast.read.actorAsStored(key);
    if (stored === undefined) throw new Error(`no ${key}`);
    const header = { ...stored.header, writer: "node-c:0123456789abcdef", epoch: next };
    await publish(subjects.actorSubject(shard(key), key), codec.encodeRecord(stored.record, header));
    const verdict = await judged();
    expect(verdict.rows).toMatchObject({ oneOwnerPerEpoch: false });
    const { partition } = parseActorKey(key);
    expect(codesAbout(verdict, partition)).toContain("oneOwnerPerEpoch two-owners");
  });

  test("an actor of a type that this build does not know", async () => {
    const [key = ""] = keys.tasks;
    const stranger = key.replace(".task.", ".parcel.");
    await writeRecord(key, (record) => ({ ...record, key: stranger, type: "parcel" }));
    const { code, stderr } = await runCommand(["replay", stranger], { env });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^HF-3002: .*expected a machine for the type "parcel"/),
    });
    expect(codesAbout(await judged(), stranger)).toContain("replaysToStored not-replayed");
  });

  test("a payload that is gone cannot be replayed", async () => {
    const machines = compileActors(agentDefinitions());
    const judge = replayJudge({ machines, scheme: client.holdfast.manifest });
    const { findings } = check({ ...(await evidence()), blobs: new Map() }, { replay: judge });
    expect(findings.filter(({ found }) => found.includes("HF-3007")).map(({ code }) => code)).toContain("not-replayed");
  });

  test("a command that was taken and is nowhere", async () => {
    accepted.push({ key: keys.parent, messageId: "planted", outcome: "applied", rev: 2 });
    expect(codesAbout(await judged(), keys.parent)).toEqual(["acceptedAppliedOnce lost"]);
  });

  test("a message of the journal that is gone", async () => {
    const [, second, third] = await client.holdfast.read.journalAsStored(keys.parent);
    if (second === undefined || third === undefined) throw new Error("too short");
    const jsm = await jetstreamManager(link.nc);
    await jsm.streams.deleteMessage(subjects.journalStream(shard(keys.parent)), second.seq);
    const { code, stdout } = await replay(keys.parent, "--assert", "stored");
    expect(code).toBe(10);
    const rev = second.entries[0]?.rev ?? 0;
    expect(stdout).toMatch(
      new RegExp(`\\ngap: revision ${rev} is not in the journal.*\\nnot compared with what is stored$`),
    );
    expect(codesAbout(await judged(), keys.parent)).toContain("journalGapFree gap");
  });

  // The last test: it leaves messages behind.
  test("a namespace that is written to is not judged", async () => {
    const subject = subjects.inbox(keys.parent.replace(ID, "nobody"));
    const noise = new AbortController();
    const writing = (async () => {
      for (let n = 0; !noise.signal.aborted; n += 1) await publish(subject, new TextEncoder().encode(`${n}`));
    })();
    await expect(evidence(2)).rejects.toThrow("does not come to rest");
    noise.abort();
    await writing;
    const { findings } = await judged();
    expect(findings.map(({ code }) => code)).toContain("unread");
  });
});
