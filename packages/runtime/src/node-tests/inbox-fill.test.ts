import { expect, test } from "vitest";
import { MemoryFleet } from "./memory-fleet.ts";

const LIMIT_BYTES = 200_000;

test("F12: an inbox stream that is 70 % full is an alarm of one node, before it refuses anybody, until it has room again", async () => {
  const fleet = new MemoryFleet({ settings: { cursorFlushMs: 1000 } });
  fleet.broker.limit("inbox", { maxBytes: LIMIT_BYTES });
  const told = new Map<string, string>();
  await fleet.outsider.fleet.watch(({ key, bytes }) => void told.set(key, new TextDecoder().decode(bytes)), "stuck.>");
  const first = await fleet.alone("n1");
  const second = await fleet.start("n2");
  const key = await fleet.born("tally", "a");
  const position = () => fleet.outsider.log.position(key.slice(0, 3));
  const send = (): Promise<string> => fleet.send(key, { type: "HINT", text: "x".repeat(10_000) });
  while (((await position()).fill ?? 0) < 0.65) await send();
  await fleet.clock.advance(3000);
  expect(fleet.events("inbox.filling")).toEqual([]);
  while (((await position()).fill ?? 0) < 0.72) await send();
  await fleet.until("it is an alarm", () => fleet.events("inbox.filling").length > 0);
  await fleet.until("it is listed", () => told.get("stuck.n1")?.includes("inbox-filling") === true);
  await fleet.clock.advance(5000);
  expect(fleet.events("inbox.filling")).toMatchObject([{ node: "n1", fields: { percent: expect.any(Number) } }]);
  expect([first, second].map(({ node }) => node.partitions.size)).toEqual([4, 0]);
  await fleet.clock.advance(660_000); // what was considered is trimmed when the broker has forgotten its ids
  await fleet.until("it has room", () => fleet.events("inbox.relieved").length > 0);
  await fleet.until("it is listed no more", () => told.get("stuck.n1")?.includes("inbox-filling") === false);
});
