import {
  connectNats,
  filteredHistory,
  lastSeqOf,
  listSubjects,
  MESSAGE_ID_HEADER,
  publishStored,
  purgeBelow,
  type Link,
} from "@holdfast/jetstream";
import { inboxPrefixOf, type ManagedNats } from "@holdfast/process";
import { subjectsOf } from "@holdfast/protocol";
import { createClient, defineActor, startNode, type Client, type Node, type RuntimeSettings } from "holdfast";
import { z } from "zod";
import { errandMachine, officeMachine } from "./errands.machine.ts";
import { waitUntil } from "./wait-until.ts";

const SHARDS = 2;
const Office = z.object({ results: z.array(z.string()), errors: z.array(z.unknown()), notes: z.number() });

/** A message as it once was stored. */
interface Copy {
  readonly subject: string;
  readonly bytes: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * An office that gives out errands, on a real server, with nodes in this process; and somebody who keeps a copy of every message and sends
 * it again whenever it likes, under another id: as if the broker had forgotten the first one.
 */
export class ErrandOffice {
  readonly namespace: string;
  readonly nats: ManagedNats;
  readonly link: Link;
  /** Ids of the errands whose jobs ran, once for every run. */
  readonly ran: string[] = [];
  jobsWait: Promise<void> | undefined;
  readonly told: { readonly event: string; readonly fields: Readonly<Record<string, unknown>> }[] = [];
  #node: Node | undefined;
  #client: Client | undefined;
  #replays = 0;

  private constructor(namespace: string, nats: ManagedNats, link: Link) {
    this.namespace = namespace;
    this.nats = nats;
    this.link = link;
  }

  static async open(namespace: string, nats: ManagedNats): Promise<ErrandOffice> {
    const { user, password } = nats;
    const link = await connectNats({
      servers: [nats.url],
      name: "replayer",
      user,
      pass: password,
      inboxPrefix: inboxPrefixOf("node"),
    });
    return new ErrandOffice(namespace, nats, link);
  }

  /**
   * Starts a node, which serves everything when this resolves.
   * @param commitsWait  commits of the office wait for it, once it is there
   */
  async serve(
    settings: Partial<RuntimeSettings> = {},
    commitsWait?: () => Promise<void> | undefined,
    timeoutMs = 20_000,
  ): Promise<void> {
    const tell = (event: string, fields: Readonly<Record<string, unknown>>): void => {
      this.told.push({ event, fields });
    };
    const node = await startNode({
      nats: this.#nats,
      namespace: this.namespace,
      definitions: [
        defineActor({ type: "office", machine: officeMachine, childActors: { errand: { type: "errand" } } }),
        defineActor({
          type: "errand",
          machine: errandMachine,
          jobs: { run: { crashPolicy: "idempotent", run: (id) => this.#run(String(id)) } },
        }),
      ],
      layout: { pools: { d: 4 }, shards: SHARDS },
      settings: { leaseTtlMs: 3000, sweepMs: 500, idleCleanMs: 100, passivateMs: 300, cursorFlushMs: 100, ...settings },
      ...(commitsWait !== undefined && {
        crashPoints: {
          reach: (point, detail) =>
            point === "before-commit" && detail.includes(".office.") ? commitsWait() : undefined,
        },
      }),
      telemetry: { info: tell, warn: tell, error: tell, debug: tell },
    });
    this.#node = node;
    await waitUntil(
      "the node serves everything",
      () => {
        const owners = [...node.runtime.partitions.values()];
        return owners.length === 4 && owners.every(({ isCaughtUp }) => isCaughtUp);
      },
      { timeoutMs },
    );
  }

  async #run(id: string): Promise<void> {
    await this.jobsWait;
    this.ran.push(id);
  }

  async close(): Promise<void> {
    await this.stopServing();
    await this.#client?.close();
    await this.link.close();
  }

  async stopServing(): Promise<void> {
    await this.#node?.stop();
    this.#node = undefined;
  }

  async client(): Promise<Client> {
    this.#client ??= await createClient({
      nats: this.#nats,
      namespace: this.namespace,
      principal: { kind: "person", id: "local", roles: [] },
    });
    return this.#client;
  }

  get subjects() {
    return subjectsOf(this.namespace);
  }

  /** Gives out errands and waits until each has come back. @returns key of the office */
  async errands(ids: readonly string[], letter: string): Promise<string> {
    const key = await this.giveOut(ids, letter);
    await waitUntil("every errand came back", async () => {
      const { results } = await this.state();
      return ids.every((id) => results.includes(id));
    });
    return key;
  }

  async giveOut(ids: readonly string[], letter: string): Promise<string> {
    const { holdfast } = await this.client();
    await holdfast.start("office", "o", undefined, { idempotencyKey: "open" });
    const key = holdfast.key("office", "o");
    await holdfast.send(key, { type: "NOTE" }, { idempotencyKey: "note" });
    await holdfast.send(key, { type: "ERRANDS", ids, letter });
    return key;
  }

  async state(): Promise<z.infer<typeof Office>> {
    const { holdfast } = await this.client();
    return Office.parse((await holdfast.read.actor(holdfast.key("office", "o")))?.record.snapshot.context);
  }

  /** Keys of the errands that have a record, with what it is. */
  async stored(): Promise<ReadonlyMap<string, "record" | "tombstone">> {
    const { holdfast } = await this.client();
    const found = new Map<string, "record" | "tombstone">();
    for (const { key } of await holdfast.read.headers("errand")) {
      const actor = await holdfast.read.actor(key);
      if (actor !== undefined) found.set(key, actor.record.tombstone === undefined ? "record" : "tombstone");
    }
    return found;
  }

  /** Sends notes, each with an id of its own. */
  async notes(count: number): Promise<void> {
    const { holdfast } = await this.client();
    const key = holdfast.key("office", "o");
    await Promise.all(Array.from({ length: count }, () => holdfast.send(key, { type: "NOTE" })));
  }

  /** Waits until everybody had this many more looks at what may go. */
  async looks(event: "retention.looked-at" | "blobs.looked-at", count: number): Promise<void> {
    const from = this.told.length;
    await waitUntil(
      `${count} looks`,
      () => this.told.slice(from).filter((line) => line.event === event).length >= count,
    );
  }

  /** Removes the record of an actor, as nothing of this project does while its journal is there. */
  async loseRecord(key: string): Promise<void> {
    const shard = Number(key.slice(2, key.indexOf("."))) % SHARDS;
    const { subjects } = this;
    const stream = subjects.actorsStream(shard);
    const filter = subjects.actorSubject(shard, key);
    await purgeBelow(this.link, { stream, filter, belowSeq: (await lastSeqOf(this.link, stream, [filter])) + 1 });
  }

  /** Keys of actors that have a journal. */
  async journaled(): Promise<readonly string[]> {
    const shards = Array.from({ length: SHARDS }, (_, shard) =>
      listSubjects(this.link, { stream: this.subjects.journalStream(shard), filter: ">" }),
    );
    const prefix = this.subjects.journal("");
    return (await Promise.all(shards)).flat().map((subject) => subject.slice(prefix.length));
  }

  /** Subjects of everything in the store of blobs. */
  blobs(): Promise<readonly string[]> {
    return listSubjects(this.link, { stream: `OBJ_${this.subjects.blobsBucket}`, filter: ">" });
  }

  /** Everything in the inboxes, as it is. */
  async copies(): Promise<readonly Copy[]> {
    const copies: Copy[] = [];
    for (let shard = 0; shard < SHARDS; shard += 1) {
      const stored = await filteredHistory(this.link, { stream: this.subjects.inboxStream(shard), filters: [">"] });
      for (const message of stored) {
        const { subject, bytes } = message;
        const blobs = message.header("Hf-Blobs");
        const headers = blobs === undefined ? {} : { "Hf-Blobs": blobs };
        copies.push({ subject, bytes, headers: { ...headers, was: message.header(MESSAGE_ID_HEADER) ?? "" } });
      }
    }
    return copies;
  }

  /** Sends every copy again, twice, and waits until the nodes have looked at all of it. */
  async replay(copies: readonly Copy[]): Promise<void> {
    const { holdfast } = await this.client();
    await this.link.whenConnected(20_000); // the server may have been restarted, and the client has a connection of its own
    for (const round of [1, 2]) {
      for (const { subject, bytes, headers } of copies) {
        this.#replays += 1;
        // Of a message from outside the id is all that says who it is: with another one it is another message.
        const isOutside = subject.includes(".in.");
        const messageId = round === 1 || isOutside ? (headers["was"] ?? "") : `again-${this.#replays}`;
        const outcome = await publishStored(this.link, { subject, bytes, messageId, headers });
        if (outcome.kind !== "accepted") throw new Error(`not taken: ${outcome.reason}`);
      }
    }
    const options = { timeoutMs: 20_000, idempotencyKey: `note-after-${this.#replays}` };
    const note = (): ReturnType<typeof holdfast.send> =>
      holdfast.send(holdfast.key("office", "o"), { type: "NOTE" }, options);
    const last = await waitUntil("the client is connected", note);
    if (last.kind !== "applied")
      throw new Error(`the office does not answer: ${last.kind}\n${JSON.stringify(this.told.slice(-30))}`);
    await waitUntil("everything was read", async () => {
      const { leases } = await holdfast.read.fleet();
      const ends = await Promise.all(
        Array.from({ length: SHARDS }, async (_, shard) => {
          const stored = await filteredHistory(this.link, { stream: this.subjects.inboxStream(shard), filters: [">"] });
          return stored.at(-1)?.seq ?? 0;
        }),
      );
      return leases.every(({ partition, cursor }) => cursor > (ends[Number(partition.slice(2)) % SHARDS] ?? 0));
    });
  }

  /** Removes every message that was read, as the trimmer does when the ids of all of them are old. */
  async trim(): Promise<void> {
    for (let shard = 0; shard < SHARDS; shard += 1) {
      const stream = this.subjects.inboxStream(shard);
      // Not beyond its end: the server would go on counting from there.
      await purgeBelow(this.link, { stream, belowSeq: (await lastSeqOf(this.link, stream, [">"])) + 1 });
    }
  }

  get #nats() {
    return { servers: [this.nats.url], user: this.nats.user, password: this.nats.password, inboxPrefix: "_INBOX_node" };
  }
}
