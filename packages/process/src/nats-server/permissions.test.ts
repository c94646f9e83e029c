import { jetstream, jetstreamManager, type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect, PermissionViolationError, type NatsConnection } from "@nats-io/transport-node";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EventKind, exitKey, PANIC_KEY, subjectsOf } from "@holdfast/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startManagedNats, type ManagedNats } from "./managed-nats.ts";
import { accountsOf, inboxPrefixOf, type NatsUserName } from "./permissions.ts";
import { serversForTests } from "./testing/servers-for-tests.ts";

const { servers, reason } = await serversForTests();
const NS = "main";
const subjects = subjectsOf(NS);
const KEY = "d-0.conversation.c1";
const TIMEOUT_MS = 1500;

describe.skipIf(servers.length === 0).each(servers)(`who may do what on $version ${reason}`, ({ path }) => {
  let folder: string;
  let server: ManagedNats;
  const connections = new Map<NatsUserName, NatsConnection>();
  const nc = (user: NatsUserName): NatsConnection => {
    const connection = connections.get(user);
    if (connection === undefined) throw new Error(`${user} is not connected`);
    return connection;
  };
  const js = (user: NatsUserName): JetStreamClient => jetstream(nc(user), { timeout: TIMEOUT_MS });
  const manager = (user: NatsUserName): Promise<JetStreamManager> =>
    jetstreamManager(nc(user), { timeout: TIMEOUT_MS, checkAPI: false });

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "holdfast-nats-"));
    server = await startManagedNats({
      binary: path,
      storeDir: join(folder, "store"),
      configDir: join(folder, "config"),
      ns: NS,
      shards: 1,
      durabilityClass: "P",
      seats: ["a", "b"],
    });
    for (const user of ["node", "client", "operator", "subscriber", "runner_a"] as const) {
      const { password } = server.credentials(user);
      const inboxPrefix = inboxPrefixOf(user);
      connections.set(user, await connect({ servers: server.url, user, pass: password, inboxPrefix }));
    }
    const node = await manager("node");
    const buckets = [
      subjects.actorsBucket(0),
      subjects.fleetBucket,
      subjects.idempotencyBucket,
      "hf_other_idem",
      subjects.stuckBucket,
    ];
    for (const bucket of buckets) await new Kvm(nc("node")).create(bucket);
    await node.streams.add({
      name: subjects.inboxStream(0),
      subjects: [`hf.${NS}.inbox.>`, `hf.${NS}.control.>`, `hf.${NS}.in.>`],
    });
    await node.streams.add({ name: subjects.journalStream(0), subjects: [`hf.${NS}.journal.>`], allow_direct: true });
    await node.streams.add({
      name: subjects.eventsStream(0),
      subjects: EventKind.options.map((kind) => `hf.${NS}.${kind}.>`),
    });
    for (const text of ["a", "b"]) await js("node").publish(subjects.journal(KEY), text);
    await js("node").publish(subjects.actorSubject(0, KEY), "record");
  });

  afterAll(async () => {
    for (const connection of connections.values()) await connection.close();
    await server.kill();
    await rm(folder, { recursive: true, force: true });
  });

  const recordNow = async (): Promise<string | undefined> =>
    (await (await new Kvm(nc("node")).open(subjects.actorsBucket(0))).get(KEY))?.string();
  const inboxNow = async (): Promise<readonly string[]> => {
    const info = await (await manager("node")).streams.info(subjects.inboxStream(0), { subjects_filter: ">" });
    return Object.keys(info.state.subjects ?? {});
  };
  const journalOf = async (user: NatsUserName): Promise<readonly string[]> => {
    const consumer = await js(user).consumers.getPushConsumer(subjects.journalStream(0), {
      filter_subjects: `hf.${NS}.journal.>`,
    });
    const texts: string[] = [];
    for await (const message of await consumer.consume()) {
      texts.push(message.string());
      if (message.info.pending === 0) break;
    }
    return texts;
  };
  const refusalOf = async (user: NatsUserName, subject: string): Promise<unknown> => {
    const answer = nc(user).request(subject, "{}", { timeout: TIMEOUT_MS });
    return answer.then(
      () => "answered",
      (error: unknown) => (error instanceof Error ? error.cause : error),
    );
  };
  /** A refusal comes before the answer to a ping that is sent after the subscription. */
  const subscriptionError = async (user: NatsUserName, subject: string): Promise<unknown> => {
    let found: unknown = "allowed";
    const subscription = nc(user).subscribe(subject, {
      callback: (error) => {
        found = error ?? found;
      },
    });
    await nc(user).flush();
    subscription.unsubscribe();
    return found;
  };

  test("client speaks for its principal, acknowledged and deduped", async () => {
    const subject = subjects.outside({ kind: "person", id: "local" }, KEY);
    const first = await js("client").publish(subject, "hi", { msgID: "m1" });
    const again = await js("client").publish(subject, "hi", { msgID: "m1" });
    expect([first.duplicate, again.duplicate, again.seq]).toEqual([false, true, first.seq]);
  });

  test.each(["drain.node-a", PANIC_KEY, exitKey("node-a")])(
    "operator writes %s: it asks a node to leave, stops the fleet, and says how a node has ended",
    async (key) => {
      const asked = await js("operator").publish(`$KV.${subjects.fleetBucket}.${key}`, "{}");
      expect(asked.stream).toBe(`KV_${subjects.fleetBucket}`);
    },
  );

  test("client claims an idempotency key once", async () => {
    const bucket = await new Kvm(js("client")).open(subjects.idempotencyBucket);
    await bucket.create("k1", "first");
    await expect(bucket.create("k1", "second")).rejects.toMatchObject({ code: 10071 });
    expect((await bucket.get("k1"))?.string()).toBe("first");
  });

  test.each(["client", "operator"] as const)("%s reads records, journal and streams' state", async (user) => {
    const leader = await new Kvm(js(user)).open(subjects.actorsBucket(0));
    const direct = await new Kvm(js(user)).open(subjects.actorsBucket(0), { allow_direct: true });
    expect((await leader.get(KEY))?.string()).toBe("record");
    expect((await direct.get(KEY))?.string()).toBe("record");
    expect((await journalOf(user)).slice(0, 2)).toEqual(["a", "b"]);
    expect((await (await manager(user)).streams.info(subjects.journalStream(0))).state.messages).toBeGreaterThanOrEqual(
      2,
    );
    await expect((await jetstreamManager(nc(user))).getAccountInfo()).resolves.toHaveProperty("api");
    const watch = await leader.watch({ key: KEY });
    for await (const entry of watch) {
      expect(entry.string()).toBe("record");
      break;
    }
  });

  test.each(["client", "operator"] as const)("%s pulls from an ordered consumer", async (user) => {
    const consumer = await js(user).consumers.get(subjects.journalStream(0), {
      filter_subjects: `hf.${NS}.journal.>`,
    });
    const texts: string[] = [];
    for await (const message of await consumer.fetch({ max_messages: 2, expires: TIMEOUT_MS })) {
      texts.push(message.string());
    }
    expect(texts).toEqual(["a", "b"]);
  });

  test.each(["client", "operator"] as const)("%s hears live progress", async (user) => {
    const heard = nc(user).subscribe(subjects.live(KEY), { max: 1, timeout: TIMEOUT_MS });
    await nc(user).flush();
    nc("node").publish(subjects.live(KEY), "token");
    for await (const message of heard) expect(message.string()).toBe("token");
  });

  test("operator lists streams and consumers, and hears everything of its namespace", async () => {
    const api = await manager("operator");
    const names: string[] = [];
    for await (const stream of api.streams.list()) names.push(stream.config.name);
    expect(names).toContain(subjects.journalStream(0));
    await expect(api.consumers.list(subjects.journalStream(0)).next()).resolves.toBeInstanceOf(Array);
    const heard = nc("operator").subscribe(`hf.${NS}.>`, { max: 1, timeout: TIMEOUT_MS });
    await nc("operator").flush();
    await js("node").publish(subjects.journal(KEY), "heard");
    for await (const message of heard) expect(message.string()).toBe("heard");
  });

  test("subscriber hears public events, and reads those that are stored", async () => {
    const subject = subjects.event("task", ["reader", "t1", "completed"]);
    const heard = nc("subscriber").subscribe(`hf.${NS}.task.>`, { max: 1, timeout: TIMEOUT_MS });
    await nc("subscriber").flush();
    await js("node").publish(subject, "event");
    for await (const message of heard) expect(message.string()).toBe("event");
    const consumer = await js("subscriber").consumers.getPushConsumer(subjects.eventsStream(0), {
      filter_subjects: subject,
    });
    for await (const message of await consumer.consume()) {
      expect(message.string()).toBe("event");
      break;
    }
  });

  test("operator leaves a command once, acknowledged, and sees its outcome", async () => {
    const commands = await new Kvm(js("operator")).open(subjects.stuckBucket);
    await commands.create(`command.${KEY}`, "retry");
    await expect(commands.create(`command.${KEY}`, "skip")).rejects.toMatchObject({ code: 10071 });
    await js("node").publish(`$KV.${subjects.stuckBucket}.command.${KEY}`, "done");
    expect((await commands.get(`command.${KEY}`))?.string()).toBe("done");
  });

  test("a runner hears what is said to its seat, and is heard", async () => {
    const said = nc("runner_a").subscribe(subjects.toRunner("a", "*"), { max: 1, timeout: TIMEOUT_MS });
    await nc("runner_a").flush();
    nc("node").publish(subjects.toRunner("b", "1"), "not for a");
    nc("node").publish(subjects.toRunner("a", "1"), "prepare");
    for await (const message of said)
      expect([message.subject, message.string()]).toEqual([subjects.toRunner("a", "1"), "prepare"]);
    const answered = nc("node").subscribe(subjects.fromRunner("*", "*"), { max: 1, timeout: TIMEOUT_MS });
    await nc("node").flush();
    nc("runner_a").publish(subjects.fromRunner("a", "1"), "prepared");
    for await (const message of answered)
      expect([message.subject, message.string()]).toEqual([subjects.fromRunner("a", "1"), "prepared"]);
  });

  test("a seat that the server was not started with has no credentials", () => {
    expect(() => server.credentials("runner_c")).toThrow(expect.objectContaining({ code: "HF-1002" }));
  });

  const record = subjects.actorSubject(0, KEY);
  const denied: readonly (readonly [NatsUserName, string])[] = [
    ["client", subjects.outside({ kind: "person", id: "other" }, KEY)],
    ["client", subjects.inbox(KEY)],
    ["client", subjects.control(KEY)],
    ["client", subjects.live(KEY)],
    ["client", subjects.audit("stop")],
    ["client", record],
    ["client", `$KV.${subjects.stuckBucket}.command.${KEY}`],
    ["client", `$KV.${subjects.stuckBucket}.entry.${KEY}`],
    ["operator", `$KV.${subjects.stuckBucket}.entry.${KEY}`],
    ["operator", `$KV.${subjects.stuckBucket}.bytes.${KEY}.a`],
    ["operator", subjects.audit("retry")],
    ["operator", subjects.parked(KEY)],
    ["client", `$KV.${subjects.fleetBucket}.manifest`],
    ["client", "$KV.hf_other_idem.k"],
    ["client", "$JS.API.STREAM.INFO.KV_hf_other_idem"],
    ["client", "$JS.API.DIRECT.GET.KV_hf_other_idem.$KV.hf_other_idem.k"],
    ["client", "$JS.API.STREAM.NAMES"],
    ["operator", subjects.outside({ kind: "person", id: "local" }, KEY)],
    ["operator", record],
    ["operator", `$KV.${subjects.fleetBucket}.lease.d-0`],
    ["operator", `$KV.${subjects.fleetBucket}.node.node-a`],
    ["operator", `$KV.${subjects.fleetBucket}.manifest`],
    ["client", `$KV.${subjects.fleetBucket}.drain.node-a`],
    ["client", `$KV.${subjects.fleetBucket}.${PANIC_KEY}`],
    ["subscriber", `$KV.${subjects.fleetBucket}.${PANIC_KEY}`],
    ["node", `$KV.${subjects.fleetBucket}.${exitKey("node-a")}`],
    ["client", `$KV.${subjects.fleetBucket}.${exitKey("node-a")}`],
    ["subscriber", `$KV.${subjects.fleetBucket}.${exitKey("node-a")}`],
    ["operator", `$KV.${subjects.idempotencyBucket}.k1`],
    ["subscriber", subjects.event("task", ["reader", "t1", "completed"])],
    ["runner_a", subjects.fromRunner("b", "1")],
    ["runner_a", subjects.toRunner("a", "1")],
    ["runner_a", subjects.toRunner("b", "1")],
    ["runner_a", subjects.inbox(KEY)],
    ["runner_a", subjects.outside({ kind: "person", id: "local" }, KEY)],
    ["runner_a", record],
    ["runner_a", `$KV.${subjects.fleetBucket}.manifest`],
    ["runner_a", "$JS.API.INFO"],
    ["runner_a", `$JS.API.STREAM.MSG.GET.${subjects.journalStream(0)}`],
    ["runner_a", `$JS.API.DIRECT.GET.KV_${subjects.actorsBucket(0)}`],
    ["client", subjects.toRunner("a", "1")],
    ["client", subjects.fromRunner("a", "1")],
    ["operator", subjects.toRunner("a", "1")],
    ["subscriber", subjects.toRunner("a", "1")],
    ["subscriber", subjects.inbox(KEY)],
    ["subscriber", subjects.outside({ kind: "person", id: "local" }, KEY)],
    ["subscriber", `$JS.API.STREAM.MSG.GET.${subjects.journalStream(0)}`],
    ["subscriber", `$JS.API.STREAM.MSG.GET.KV_${subjects.actorsBucket(0)}`],
    ["subscriber", `$JS.API.STREAM.MSG.GET.KV_${subjects.fleetBucket}`],
    ["subscriber", `$JS.API.CONSUMER.CREATE.${subjects.journalStream(0)}.c.hf.${NS}.journal.>`],
    ["subscriber", `$JS.API.STREAM.PURGE.${subjects.eventsStream(0)}`],
    ["subscriber", `$JS.API.STREAM.MSG.DELETE.${subjects.eventsStream(0)}`],
    ...["CREATE", "UPDATE", "DELETE", "PURGE", "MSG.DELETE", "RESTORE"].flatMap((verb) =>
      (["client", "operator"] as const).map(
        (user) => [user, `$JS.API.STREAM.${verb}.${subjects.journalStream(0)}`] as const,
      ),
    ),
  ];
  test.each(denied)("%s may not publish %s", async (user, subject) => {
    expect(await refusalOf(user, subject)).toBeInstanceOf(PermissionViolationError);
  });

  const unheard: readonly (readonly [NatsUserName, string])[] = [
    ["client", ">"],
    ["client", subjects.inbox(KEY)],
    ["client", "_INBOX_node.>"],
    ["client", "_INBOX_operator.>"],
    ["client", "_INBOX.>"],
    ["client", `hf.${NS}.in.>`],
    ["operator", ">"],
    ["operator", "_INBOX_client.>"],
    ["subscriber", ">"],
    ["subscriber", `hf.${NS}.>`],
    ["subscriber", subjects.journal(KEY)],
    ["subscriber", subjects.live(KEY)],
    ["subscriber", "_INBOX_client.>"],
    ["operator", "hf.other.live.>"],
    ["operator", subjects.toRunner("a", "*")],
    ["operator", subjects.fromRunner("a", "*")],
    ["client", subjects.fromRunner("a", "*")],
    ["runner_a", ">"],
    ["runner_a", `hf.${NS}.>`],
    ["runner_a", subjects.toRunner("b", "*")],
    ["runner_a", subjects.toRunner("*", "*")],
    ["runner_a", subjects.fromRunner("a", "*")],
    ["runner_a", subjects.live(KEY)],
    ["runner_a", "_INBOX_node.>"],
  ];
  test.each(unheard)("%s may not hear %s", async (user, subject) => {
    expect(await subscriptionError(user, subject)).toBeInstanceOf(PermissionViolationError);
  });

  const readRaw = (user: NatsUserName, reply: string): void => {
    const stored = { last_by_subj: `$KV.${subjects.idempotencyBucket}.forged` };
    nc(user).publish(`$JS.API.DIRECT.GET.KV_${subjects.idempotencyBucket}`, JSON.stringify(stored), { reply });
  };

  const forgedCommand = `$KV.${subjects.stuckBucket}.command.d-0.conversation.forged`;
  test.each([record, subjects.inbox("d-0.conversation.forged"), forgedCommand])(
    "no guest has stored bytes answered to %s",
    async (target) => {
      await js("client").publish(`$KV.${subjects.idempotencyBucket}.forged`, "forged");
      readRaw("client", target);
      readRaw("operator", target);
      nc("subscriber").publish(
        `$JS.API.STREAM.MSG.GET.${subjects.eventsStream(0)}`,
        JSON.stringify({ last_by_subj: `hf.${NS}.task.>` }),
        { reply: target },
      );
      const outside = subjects.outside({ kind: "person", id: "local" }, KEY);
      nc("client").publish(outside, "with a stray reply", { reply: target });
      for (const user of ["client", "operator"] as const) {
        await nc(user).flush();
        await (await manager(user)).streams.info(subjects.inboxStream(0));
      }
      await nc("subscriber").flush();
      expect(await recordNow()).toBe("record");
      expect(await inboxNow()).toEqual([outside]);
      const stuck = await new Kvm(nc("node")).open(subjects.stuckBucket);
      expect(await stuck.get("command.d-0.conversation.forged")).toBeNull();
    },
  );

  test("the same request inside the fleet account does arrive, so the test above can fail", async () => {
    await js("client").publish(`$KV.${subjects.idempotencyBucket}.forged`, "forged");
    readRaw("node", subjects.inbox("d-0.conversation.echo"));
    await expect.poll(inboxNow).toContain(subjects.inbox("d-0.conversation.echo"));
  });
});

describe("the accounts block", () => {
  const passwords = { node: "n", client: "c", operator: "o", subscriber: "s" };

  test("names every principal and every shard, and the node user may do all but say how a node has ended", () => {
    const principals = ["person-local", "service-billing"];
    const { accounts } = accountsOf({ ns: NS, shards: 3, principals, passwords });
    const [client] = accounts["HOLDFAST_CLIENT"]?.users ?? [];
    const allowed = client?.permissions.publish.allow ?? [];
    expect(allowed.filter((subject) => subject.startsWith("hf."))).toEqual([
      "hf.main.in.person-local.>",
      "hf.main.in.service-billing.>",
    ]);
    const infos = allowed.filter((subject) => subject.startsWith("$JS.API.STREAM.INFO.HF_MAIN_JOURNAL_"));
    expect(infos).toHaveLength(3);
    const unrestricted = Object.values(accounts)
      .flatMap(({ users }) => users)
      .filter(({ permissions }) => permissions.publish.allow === undefined);
    const deny = [`$KV.${subjectsOf(NS).fleetBucket}.exit.*`];
    expect(unrestricted).toEqual([{ user: "node", password: "n", permissions: { publish: { deny } } }]);
  });

  test("opens nothing to every account: each export names the accounts it is for", () => {
    const { accounts } = accountsOf({ ns: NS, shards: 1, principals: ["person-local"], passwords, seats: { a: "r" } });
    for (const entry of accounts["HOLDFAST"]?.exports ?? []) {
      expect(entry).toHaveProperty(
        "accounts.0",
        expect.stringMatching(/^HOLDFAST_(CLIENT|OPERATOR|SUBSCRIBER|RUNNER_a)$/),
      );
    }
  });
});
