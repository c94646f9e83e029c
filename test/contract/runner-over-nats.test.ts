import { EnvelopeSeq, listenForHosts, placeEnvelope, type RunnerEnvelope } from "@holdfast/runner";
import {
  ACTIVATE,
  draftOf,
  MemoryFacts,
  PREPARE,
  readingAs,
  seatFixture,
  type SeatFixture,
} from "@holdfast/runner/testing";
import type { Link } from "@holdfast/jetstream";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { seatHosts, type SeatHosts } from "../harness/seat-hosts.ts";
import { startBroker, type BrokerFixture } from "./jetstream-fixture.ts";
import type { Proxy } from "./jetstream-proxy.ts";

const NS = "guest";
const SEAT = "s1";
let broker: BrokerFixture;
let proxy: Proxy;
let runnerLink: Link;
let seat: SeatFixture;
let stop: () => void;
let hosts: SeatHosts;

beforeAll(async () => {
  broker = await startBroker(NS, [SEAT]);
  proxy = await broker.proxy();
  hosts = seatHosts(await broker.connect(), NS, SEAT);
  runnerLink = await broker.connect({ user: `runner_${SEAT}`, via: proxy });
});
afterAll(() => broker.close());

beforeEach(async () => {
  seat = await seatFixture();
  stop = listenForHosts({ link: runnerLink, ns: NS, seat: SEAT }, (connection) => void seat.seat.serve(connection));
  await runnerLink.whenConnected(10_000);
  await runnerLink.nc.flush();
  for (const opening of [PREPARE, ACTIVATE]) await hosts.answerTo(opening);
});
afterEach(async () => {
  stop();
  await seat.remove();
});

const expected = (count: number): readonly RunnerEnvelope[] =>
  Array.from({ length: count }, (_, index) => index + 2).map((seq) => ({
    ...placeEnvelope(draftOf(seq), {
      seq: EnvelopeSeq.parse(seq),
      epoch: seat.journal.epoch,
      conversation: "c1",
    }),
  }));

async function append(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await seat.journal.append(draftOf(seat.journal.lastSeq + 1));
}

test("the same envelopes as in the journal reach a host in order, and its receipts come back", async () => {
  const end = new AbortController();
  const reading = hosts.host(new MemoryFacts(), 1, end.signal);
  await append(100);
  await expect.poll(() => reading.envelopes.at(-1)?.seq, { timeout: 10_000 }).toBe(101);
  expect(reading.envelopes.slice(1)).toEqual(expected(100));
  await expect.poll(() => seat.journal.unreceipted).toEqual([]);
  end.abort();
  await reading.ended;
});

test("a link that breaks while envelopes are under way loses none and brings none twice", async () => {
  const end = new AbortController();
  const facts = new MemoryFacts();
  const reading = hosts.host(facts, 1, end.signal);
  await expect.poll(() => reading.envelopes.length, { timeout: 10_000 }).toBe(1);
  for (let cut = 0; cut < 2; cut += 1) {
    const writing = append(30);
    proxy.cut();
    await writing;
    await expect.poll(() => reading.envelopes.at(-1)?.seq, { timeout: 20_000 }).toBe(seat.journal.lastSeq);
  }
  expect(reading.envelopes.slice(1)).toEqual(expected(60));
  expect(reading.connections()).toBeGreaterThan(1);
  await expect.poll(() => seat.journal.unreceipted, { timeout: 10_000 }).toEqual([]);
  expect(facts.rows.size).toBe(
    reading.envelopes.filter((each) => each.op === "event" && each.requiresPersistence).length,
  );
  end.abort();
  await reading.ended;
}, 60_000);

test("of two hosts the one with the greater epoch reads on, and the other is refused", async () => {
  const end = new AbortController();
  const old = hosts.host(new MemoryFacts(), 1, end.signal);
  await expect.poll(() => old.envelopes.length, { timeout: 10_000 }).toBe(1);
  const next = hosts.host(new MemoryFacts(), 2, end.signal);
  await expect(old.ended).rejects.toMatchObject({ code: "HF-9001", facts: { reason: "fenced" } });
  await append(10);
  await expect.poll(() => next.envelopes.at(-1)?.seq, { timeout: 10_000 }).toBe(11);
  expect(old.envelopes).toHaveLength(1);
  end.abort();
  await next.ended;
});

test("a wrong token is refused over the wire as well", async () => {
  expect(await hosts.answerTo({ ...readingAs(1), token: "x", cursor: { seq: 0 } })).toMatchObject({
    op: "refused",
    reason: "token",
  });
});
