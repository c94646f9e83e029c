import { BLOB_THRESHOLD_BYTES, CHILD_INPUT_LIMIT_BYTES, RECORD_SOFT_LIMIT_BYTES, sha256Hex } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { defineActor, type ActorDefinition } from "../actor-definition.ts";
import { blobsOfRecord } from "../blobs/named-blobs.ts";
import { MemoryFleet, type MemoryProcess } from "./memory-fleet.ts";
import { leafMachine, spreadMachine } from "./spread.machine.ts";
import { testActors } from "./test-actors.ts";

const actors = (fleet: MemoryFleet): readonly ActorDefinition[] => [
  ...testActors(fleet.desk),
  defineActor({ type: "spread", machine: spreadMachine, childActors: { leaf: { type: "leaf" } } }),
  defineActor({
    type: "leaf",
    machine: leafMachine,
    jobs: { labour: fleet.desk.job("labour", { crashPolicy: "idempotent" }) },
  }),
];

const alone = (fleet: MemoryFleet, name = "n1"): Promise<MemoryProcess> =>
  fleet.alone(name, { definitions: actors(fleet) });

const text = (bytes: number, seed = "x"): string => seed.repeat(bytes);

interface Spread {
  readonly results: number;
  readonly errors: readonly unknown[];
  readonly said: readonly unknown[];
}
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the context of the machine above, as its own types say
const spreadOf = (fleet: MemoryFleet, key: string): Spread => fleet.context(key) as Spread;
interface Leaf {
  readonly text: string;
  readonly heard: readonly unknown[];
  readonly errors: readonly unknown[];
}
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
const leafOf = (fleet: MemoryFleet, key: string): Leaf => fleet.context(key) as Leaf;

/** A parent with one child that has a large input. */
async function delegated(
  fleet: MemoryFleet,
  bytes: number,
): Promise<{ readonly parent: string; readonly leaf: string }> {
  const parent = await fleet.born("spread", "p");
  await fleet.send(parent, { type: "SPREAD", from: 0, count: 1, input: text(bytes) });
  const leaf = await fleet.child(parent, "leaf-0");
  await fleet.until("the child exists", () => fleet.record(leaf) !== undefined);
  return { parent, leaf };
}

/** Whether a text is in any stored record, message or journal entry of a key. */
function isStored(fleet: MemoryFleet, key: string, needle: string): boolean {
  const stored = [
    ...fleet.broker.writesOf(key),
    ...fleet.broker.messagesOf("inbox", key).filter(({ principal }) => principal === undefined),
    ...fleet.broker.journalOf(key),
  ];
  return stored.some(({ bytes }) => Buffer.from(bytes).includes(needle));
}

describe("payloads that are too large for a record", () => {
  test("F27: of a child's input over the limit, parent, message and journals hold a reference; the child works with the value", async () => {
    const fleet = new MemoryFleet();
    await alone(fleet);
    const { parent, leaf } = await delegated(fleet, CHILD_INPUT_LIMIT_BYTES + 1);
    await fleet.until("its journal is written", () => fleet.broker.journalOf(leaf).length > 0);
    const [named] = Object.values(fleet.record(parent)?.snapshot.children["leaf-0"]?.blobs ?? {});
    expect(named).toMatchObject({ kind: "value", sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(leafOf(fleet, leaf).text).toHaveLength(CHILD_INPUT_LIMIT_BYTES + 1);
    const needle = text(CHILD_INPUT_LIMIT_BYTES);
    expect(fleet.broker.messagesOf("inbox", leaf).some(({ bytes }) => Buffer.from(bytes).includes(needle))).toBe(false);
    expect(fleet.broker.journalOf(leaf).some(({ bytes }) => Buffer.from(bytes).includes(needle))).toBe(false);
    for (const { bytes } of fleet.broker.writesOf(parent)) {
      const { record } = fleet.codec.decodeRecord(bytes);
      for (const effect of record.outbox) if (effect.kind === "start") expect(effect.input).toBeUndefined();
    }
  });

  test("a child's input below the limit stays where it was, and no blob is stored", async () => {
    const fleet = new MemoryFleet();
    await alone(fleet);
    const puts = fleet.broker.faults.next("blobPut", { kind: "refuse", times: 1000 });
    let wasPut = false;
    void puts.happened.then(() => (wasPut = true));
    const { parent } = await delegated(fleet, 900);
    expect(fleet.record(parent)?.snapshot.children["leaf-0"]?.blobs).toBeUndefined();
    expect(wasPut).toBe(false);
  });

  test.each([
    { where: "outside", bytes: 1024, limitBytes: 2 * RECORD_SOFT_LIMIT_BYTES },
    { where: "inside", bytes: 1000, limitBytes: 4 * RECORD_SOFT_LIMIT_BYTES },
  ])(
    "F27: 256 children with $bytes B each, kept $where: the record stays small, a commit starts 64 at most",
    async ({ bytes: inputBytes, limitBytes }) => {
      const fleet = new MemoryFleet();
      await alone(fleet);
      const parent = await fleet.born("spread", "p");
      for (let wave = 0; wave < 4; wave += 1)
        await fleet.send(parent, { type: "SPREAD", from: wave * 64, count: 64, input: text(inputBytes) });
      await fleet.until(
        "all are known",
        () => Object.keys(fleet.record(parent)?.snapshot.children ?? {}).length === 256,
      );
      const children = Object.values(fleet.record(parent)?.snapshot.children ?? {});
      await fleet.until("all exist", () => children.every(({ key }) => fleet.record(key) !== undefined));
      const sizes = fleet.broker.writesOf(parent).map(({ bytes }) => bytes.length);
      expect(Math.max(...sizes)).toBeLessThan(limitBytes);
      for (const { bytes } of fleet.broker.writesOf(parent)) {
        const { outbox, rev } = fleet.codec.decodeRecord(bytes).record;
        const started = outbox.filter(({ kind, id }) => kind === "start" && id.startsWith(`${rev}#`));
        expect(started.length).toBeLessThanOrEqual(64);
      }
      for (const { key } of children) await fleet.send(key, { type: "FINISH" });
      await fleet.until("every result was applied once", () => spreadOf(fleet, parent).results === 256, 240_000);
      expect(spreadOf(fleet, parent).errors).toEqual([]);
    },
  );

  test("F27: 65 starts by one event are refused as the actor's own failure, and nothing of them starts", async () => {
    const fleet = new MemoryFleet();
    await alone(fleet);
    const parent = await fleet.born("spread", "p");
    await fleet.send(parent, { type: "SPREAD", from: 0, count: 65, input: text(2000) });
    await fleet.until("it has failed, visibly", () => fleet.record(parent)?.status === "error");
    expect(fleet.record(parent)?.snapshot).toMatchObject({ error: { code: "HF-5202" }, children: {} });
  });

  test("an event, an outcome and a result above the threshold are in no record, message or journal, and arrive whole", async () => {
    const fleet = new MemoryFleet();
    await alone(fleet);
    const { parent, leaf } = await delegated(fleet, 10);
    const big = text(BLOB_THRESHOLD_BYTES + 1, "y");
    await fleet.send(parent, { type: "TELL", id: "leaf-0", n: big });
    await fleet.until("the child heard it", () => leafOf(fleet, leaf).heard.length === 1);
    await fleet.send(leaf, { type: "RUN" });
    await fleet.until("its job runs", () => fleet.desk.of("labour").length === 1);
    fleet.desk.of("labour")[0]?.finish(big);
    await fleet.until("the outcome was applied", () => leafOf(fleet, leaf).heard.length === 2);
    expect(leafOf(fleet, leaf).heard).toEqual([big.length, big.length]);
    await fleet.clock.advance(3000);
    expect(isStored(fleet, leaf, big)).toBe(false);
    expect(isStored(fleet, parent, big)).toBe(false);
  });

  test("the result of a child, too, is named by record, message and journal, and applied whole", async () => {
    const fleet = new MemoryFleet();
    await alone(fleet);
    const parent = await fleet.born("boss", "b");
    const helper = await (async () => {
      await fleet.send(parent, { type: "DELEGATE", id: "h", input: {} });
      return fleet.child(parent, "h");
    })();
    await fleet.until("it listens", () => fleet.record(helper)?.snapshot.value === "listening");
    const big = text(BLOB_THRESHOLD_BYTES + 1, "z");
    await fleet.send(helper, { type: "WORD", n: big });
    await fleet.send(helper, { type: "FINISH" });
    await fleet.until("the result was applied", () => fleet.record(parent)?.snapshot.children["h"]?.status === "done");
    expect(fleet.context(parent)).toMatchObject({ results: [{ words: [big] }] });
    const ended = fleet.record(helper);
    expect(ended?.snapshot.output).toBeUndefined();
    expect(ended?.snapshot.blobs).toEqual({ output: expect.objectContaining({ kind: "value" }) });
    expect(ended?.settled).toMatchObject({ kind: "settled", blobs: ended?.snapshot.blobs });
    const named = ended === undefined ? [] : blobsOfRecord(ended);
    expect(named).toContain(ended?.snapshot.blobs?.["output"]?.sha256);
  });

  test("the input of a job and of a volatile host comes back from where it is kept after a takeover", async () => {
    const fleet = new MemoryFleet();
    const first = await alone(fleet);
    const { leaf } = await delegated(fleet, 5000);
    await fleet.send(leaf, { type: "RUN" });
    await fleet.until("its job runs", () => fleet.desk.of("labour").length === 1);
    expect(fleet.record(leaf)?.snapshot.children["labour"]).not.toHaveProperty("input");
    first.kill();
    const second = await alone(fleet, "n2");
    await fleet.until("it runs again", () => fleet.desk.of("labour", "n2").length === 1);
    expect(fleet.desk.of("labour").map(({ input }) => String(input).length)).toEqual([5000, 5000]);
    fleet.desk.of("labour", "n2")[0]?.finish("done");
    await fleet.until("it goes on", () => fleet.record(leaf)?.snapshot.value === "listening");
    await fleet.send(leaf, { type: "HEAR" });
    await fleet.until("its host speaks", () => leafOf(fleet, leaf).heard.length === 2);
    second.kill();
    await alone(fleet, "n3");
    await fleet.until("its host speaks again", () => leafOf(fleet, leaf).heard.length === 3);
    expect(leafOf(fleet, leaf).heard.slice(1)).toEqual([5000, 5000]);
  });
});

describe("F6: blobs are stored before the commit that names them", () => {
  test("a put that fails holds the commit back, and is tried again until it is stored", async () => {
    const fleet = new MemoryFleet();
    await alone(fleet);
    const parent = await fleet.born("spread", "p");
    const refused = fleet.broker.faults.next("blobPut", { kind: "refuse", times: 5, giveUp: true });
    await fleet.send(parent, { type: "SPREAD", from: 0, count: 1, input: text(4000) });
    await fleet.send(parent, { type: "SAID", n: "behind it" });
    const before = fleet.broker.writesOf(parent).length;
    await fleet.happened("it was refused for the last time", refused.happened);
    expect(fleet.broker.writesOf(parent)).toHaveLength(before);
    const leaf = await fleet.child(parent, "leaf-0");
    await fleet.until("the child has its input", () => leafOf(fleet, leaf)?.text?.length === 4000);
    await fleet.until("what came behind it was applied", () => spreadOf(fleet, parent).said.length === 1);
  });

  test.each(["lostAck", "lateWrite"] as const)(
    "a put whose acknowledgement is lost (%s) is put again",
    async (kind) => {
      const fleet = new MemoryFleet();
      await alone(fleet);
      const parent = await fleet.born("spread", "p");
      fleet.broker.faults.next("blobPut", { kind, giveUp: true });
      await fleet.send(parent, { type: "SPREAD", from: 0, count: 1, input: text(4000) });
      const leaf = await fleet.child(parent, "leaf-0");
      await fleet.until("the child has its input", () => leafOf(fleet, leaf)?.text?.length === 4000);
    },
  );

  test("a node that dies between put and commit leaves an unnamed blob; the next one decides the same and loses nothing", async () => {
    const fleet = new MemoryFleet();
    const first = await alone(fleet);
    const parent = await fleet.born("spread", "p");
    const stopped = first.stopAt("before-commit", parent);
    await fleet.send(parent, { type: "SPREAD", from: 0, count: 1, input: text(4000) });
    await fleet.happened("the blob is put, the commit is not", stopped.reached);
    expect(fleet.record(parent)?.snapshot.children).toEqual({});
    first.kill();
    await alone(fleet, "n2");
    const leaf = await fleet.child(parent, "leaf-0");
    await fleet.until("the child has its input", () => leafOf(fleet, leaf)?.text?.length === 4000);
    expect(Object.keys(fleet.record(parent)?.snapshot.children ?? {})).toEqual(["leaf-0"]);
  });

  test("an outcome whose blob cannot be put is held back, not lost", async () => {
    const fleet = new MemoryFleet();
    await alone(fleet);
    const { leaf } = await delegated(fleet, 10);
    await fleet.send(leaf, { type: "RUN" });
    await fleet.until("its job runs", () => fleet.desk.of("labour").length === 1);
    const refused = fleet.broker.faults.next("blobPut", { kind: "refuse", times: 3, giveUp: true });
    fleet.desk.of("labour")[0]?.finish(text(200_000));
    await fleet.happened("it was refused for the last time", refused.happened);
    expect(fleet.record(leaf)?.snapshot.value).toBe("working");
    await fleet.until("the outcome was applied", () => leafOf(fleet, leaf).heard.length === 1);
    expect(leafOf(fleet, leaf).heard).toEqual([200_000]);
    expect(fleet.desk.of("labour")).toHaveLength(1);
  });
});

describe("a blob that is missing or damaged: nothing runs from it", () => {
  const shaOfChild = (fleet: MemoryFleet, key: string, child: string): string =>
    fleet.record(key)?.snapshot.children[child]?.blobs?.["input"]?.sha256 ?? "none";

  test.each(["loseBlob", "damageBlob"] as const)(
    "F28: of a start (%s): the parent is told HF-3007, there is no child",
    async (harm) => {
      const fleet = new MemoryFleet();
      const first = await alone(fleet);
      const parent = await fleet.born("spread", "p");
      const held = first.stopAt("after-commit", parent);
      await fleet.send(parent, { type: "SPREAD", from: 0, count: 1, input: text(4000) });
      await fleet.happened("the start is decided", held.reached);
      fleet.broker[harm](shaOfChild(fleet, parent, "leaf-0"));
      first.kill();
      await alone(fleet, "n2");
      await fleet.until("the parent was told", () => spreadOf(fleet, parent).errors.length === 1);
      expect(spreadOf(fleet, parent).errors).toMatchObject([{ code: "HF-3007" }]);
      expect(fleet.record(await fleet.child(parent, "leaf-0"))).toBeUndefined();
      expect(fleet.events("message.no-payload").length).toBeGreaterThan(0);
    },
  );

  test("of a job's input: the job does not run, its actor gets HF-3007", async () => {
    const fleet = new MemoryFleet();
    const first = await alone(fleet);
    const { leaf } = await delegated(fleet, 5000);
    await fleet.send(leaf, { type: "RUN" });
    await fleet.until("its job runs", () => fleet.desk.of("labour").length === 1);
    fleet.broker.damageBlob(shaOfChild(fleet, leaf, "labour"));
    first.kill();
    await alone(fleet, "n2");
    await fleet.until("its actor was told", () => leafOf(fleet, leaf).errors.length === 1);
    expect(leafOf(fleet, leaf).errors).toMatchObject([{ code: "HF-3007" }]);
    expect(fleet.desk.of("labour", "n2")).toEqual([]);
  });

  test("of an event: it is set aside, visibly, and applied when the blob is back", async () => {
    const fleet = new MemoryFleet();
    const first = await alone(fleet);
    const { parent, leaf } = await delegated(fleet, 10);
    const held = first.stopAt("mid-dispatch", parent);
    const big = text(BLOB_THRESHOLD_BYTES + 1, "w");
    await fleet.send(parent, { type: "TELL", id: "leaf-0", n: big });
    await fleet.happened("the send is decided", held.reached);
    const sent = fleet.record(parent)?.outbox.find(({ kind }) => kind === "send");
    const sha256 = (sent?.kind === "send" ? sent.blobs?.["n"]?.sha256 : undefined) ?? "none";
    fleet.broker.loseBlob(sha256);
    first.kill();
    const second = await alone(fleet, "n2");
    const report = () => [...second.node.partitions.values()].flatMap(({ reports }) => reports.get(leaf) ?? [])[0];
    await fleet.until("it is said to be set aside", () => report()?.why.includes("HF-3007") === true);
    expect(leafOf(fleet, leaf).heard).toEqual([]);
    await fleet.outsider.blobs.put(sha256, fleet.codec.encodeValue(big));
    second.kill();
    await alone(fleet, "n3");
    await fleet.until("it is applied", () => leafOf(fleet, leaf).heard.length === 1);
    expect(leafOf(fleet, leaf).heard).toEqual([big.length]);
  });

  test("F35: a message from outside names no blobs: what it says about them is ignored", async () => {
    const fleet = new MemoryFleet();
    await alone(fleet);
    const secret = fleet.codec.encodeValue("a secret");
    await fleet.outsider.blobs.put(sha256Hex(secret), secret);
    const blobs = { n: { kind: "value", size: secret.length, sha256: sha256Hex(secret) } };
    const key = await fleet.born("tally", "a");
    const message = await fleet.outside(key, { kind: "send", event: { type: "ADD", n: "mine" }, blobs });
    await fleet.until("it was answered", () => fleet.outcomes(message).length === 1);
    expect(fleet.context(key)).toEqual({ seen: ["mine"] });
  });
});
