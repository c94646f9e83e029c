import { readEvents, type EventsOptions, type ReceivedEvent } from "@holdfast/client";
import { messageFlow, publishStored, purgeBelow, type Link } from "@holdfast/jetstream";
import {
  encodeLifecycleEvent,
  subjectsOf,
  type LifecycleEvent,
  type RuntimeFault,
  type Subjects,
} from "@holdfast/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitUntil } from "../harness/wait-until.ts";
import { askApi, bytesOf, newToken, startBroker, type BrokerFixture } from "./jetstream-fixture.ts";

let broker: BrokerFixture;
let link: Link;
beforeAll(async () => {
  broker = await startBroker();
  link = await broker.connect();
});
afterAll(() => broker.close());

const freshNamespace = async (): Promise<Subjects> => subjectsOf((await broker.namespace(link)).manifest.ns);

const taskEvent = (task: string, rev: number, event = "waiting"): LifecycleEvent => ({
  specversion: "1.0",
  id: `d-1.task.${task}^g1:7@${rev}#0`,
  source: `holdfast/task/${task}`,
  type: `holdfast.task.${event}`,
  subject: `d-1.task.${task}`,
  time: "2027-01-15T08:00:00.000Z",
  datacontenttype: "application/json",
  data: { taskId: task, agent: "reader", callId: "c" },
});

/** Stores an event as a node does; the broker remembers nothing of it, as after ten minutes. */
async function store(subjects: Subjects, task: string, rev: number, event = "waiting"): Promise<void> {
  const { headers, data } = encodeLifecycleEvent(taskEvent(task, rev, event));
  const subject = subjects.event("task", ["reader", task, event]);
  const outcome = await publishStored(link, { subject, bytes: bytesOf(data), headers, messageId: newToken() });
  if (outcome.kind !== "accepted") throw new Error(`arranging failed: ${outcome.reason}`);
}

const placeOf = ({ event }: ReceivedEvent): string => event.id.replace("d-1.task.", "").replace("^g1:7", "");
/** Everything that is stored from a position on. */
async function stored(subjects: Subjects, options: Partial<EventsOptions> & { readonly via?: Link } = {}) {
  const { via = link, ...rest } = options;
  const events: ReceivedEvent[] = [];
  for await (const received of readEvents(via, subjects, { subject: "task.>", from: "first", follow: false, ...rest }))
    events.push(received);
  return events;
}
const faultOf = (reading: Promise<unknown>): Promise<RuntimeFault> =>
  reading.then(
    () => Promise.reject(new Error("expected a fault")),
    (fault: RuntimeFault) => fault,
  );

describe("public events as a client reads them", () => {
  test("in stored order, each once, though the stream holds some of them twice", async () => {
    const subjects = await freshNamespace();
    for (const rev of [1, 2, 2, 1, 3]) await store(subjects, "a", rev);
    await store(subjects, "b", 1);
    await store(subjects, "a", 3);
    expect((await stored(subjects)).map(placeOf)).toEqual(["a@1#0", "a@2#0", "a@3#0", "b@1#0"]);
    expect((await stored(subjects, { subject: "task.*.b.*" })).map(placeOf)).toEqual(["b@1#0"]);
    expect(await stored(subjects, { subject: "wait.>" })).toEqual([]);
  });

  test("from every cursor exactly what comes after it, also when that repeats what was before", async () => {
    const subjects = await freshNamespace();
    const plan = [
      ["a", 1, "created"],
      ["a", 2, "waiting"],
      ["b", 1, "created"],
      ["a", 3, "resumed"],
      ["a", 2, "waiting"],
      ["a", 3, "resumed"],
      ["a", 4, "waiting"],
      ["b", 1, "created"],
      ["b", 2, "completed"],
      ["a", 4, "waiting"],
      ["a", 5, "completed"],
    ] as const;
    for (const [task, rev, event] of plan) await store(subjects, task, rev, event);
    const all = await stored(subjects);
    expect(all.map(placeOf)).toEqual(["a@1#0", "a@2#0", "b@1#0", "a@3#0", "a@4#0", "b@2#0", "a@5#0"]);
    for (const [at, { cursor }] of all.entries())
      expect((await stored(subjects, { from: cursor })).map(placeOf)).toEqual(all.slice(at + 1).map(placeOf));
  });

  test("from now on what comes, until the reader has enough, whatever happens to its connection", async () => {
    const subjects = await freshNamespace();
    await store(subjects, "a", 1);
    const proxy = await broker.proxy();
    const via = await broker.connect({ via: proxy });
    const enough = new AbortController();
    const got: string[] = [];
    const reading = (async () => {
      for await (const received of readEvents(via, subjects, { subject: ">", from: "now", signal: enough.signal }))
        got.push(placeOf(received));
    })();
    let rev = 0;
    await waitUntil("it hears", async () => {
      await store(subjects, "b", (rev += 1));
      return got.length > 0;
    });
    for (const next of [1, 2, 3]) {
      proxy.cut();
      await store(subjects, "a", next);
    }
    await waitUntil("everything has come", () => got.includes("a@3#0"), { dump: () => got });
    enough.abort();
    await reading;
    // The first of a was stored before: what begins in the middle knows a repetition when it comes.
    expect(got.filter((place) => place.startsWith("a"))).toEqual(["a@2#0", "a@3#0"]);
  });

  test("at the pace of the reader: what it does not take stays in the stream", async () => {
    const subjects = await freshNamespace();
    const stream = subjects.eventsStream(0);
    const count = 1000;
    for (let n = 0; n < count; n += 100)
      await Promise.all(Array.from({ length: 100 }, (_, m) => store(subjects, `t${n + m}`, 1)));
    const seqs: number[] = [];
    for await (const { seq } of messageFlow(link, {
      stream,
      filters: [">"],
      fromSeq: 1,
      throughSeq: count,
      capacity: 50,
    })) {
      seqs.push(seq);
      if (seqs.length !== 1) continue;
      const consumers = async (): Promise<string> => (await askApi(link, `CONSUMER.NAMES.${stream}`)).text;
      await waitUntil("it reads no more", async () => (await consumers()).includes('"consumers":[]'), {
        dump: consumers,
      });
    }
    expect(seqs).toEqual(Array.from({ length: count }, (_, n) => n + 1));
  });

  test("a message that is no event is thrown with the cursor behind it, or told and passed over", async () => {
    const subjects = await freshNamespace();
    await store(subjects, "a", 1);
    const subject = subjects.event("task", ["reader", "a", "odd"]);
    await publishStored(link, { subject, bytes: bytesOf("{}"), messageId: newToken() });
    await store(subjects, "a", 2);
    const fault = await faultOf(stored(subjects));
    expect(fault).toMatchObject({ code: "HF-1001", facts: { subject } });
    expect((await stored(subjects, { from: String(fault.facts["cursor"]) })).map(placeOf)).toEqual(["a@2#0"]);
    const told: string[] = [];
    const events = await stored(subjects, { unreadable: ({ code }) => told.push(code) });
    expect([events.map(placeOf), told]).toEqual([["a@1#0", "a@2#0"], ["HF-1001"]]);
  });

  test("a cursor whose next event is gone by age, or that is of another stream, is refused", async () => {
    const subjects = await freshNamespace();
    for (const rev of [1, 2, 3]) await store(subjects, "a", rev);
    const [first, second] = await stored(subjects);
    await purgeBelow(link, { stream: subjects.eventsStream(0), belowSeq: 3 });
    expect((await stored(subjects, { from: second?.cursor })).map(placeOf)).toEqual(["a@3#0"]);
    expect(await faultOf(stored(subjects, { from: first?.cursor }))).toMatchObject({ code: "HF-4009" });
    const other = await freshNamespace();
    expect(await faultOf(stored(other, { from: first?.cursor }))).toMatchObject({ code: "HF-4006" });
  });

  test("a subscriber may read them and nothing else", async () => {
    const guest = subjectsOf((await broker.namespace(link, { ns: "guest" })).manifest.ns);
    await store(guest, "a", 1);
    const via = await broker.connect({ user: "subscriber" });
    const events = await stored(guest, { via });
    expect(events.map(placeOf)).toEqual(["a@1#0"]);
    expect((await stored(guest, { via, from: events[0]?.cursor })).map(placeOf)).toEqual([]);
    const other = await freshNamespace();
    expect(await faultOf(stored(other, { via }))).toMatchObject({ code: "HF-4007" });
  });
});
