import { expect, test } from "vitest";
import { replayOf, storedEntries } from "./journal-replay.ts";
import { MemoryFleet } from "./memory-fleet.ts";

test("an entry that a successor sends says who committed it, under which epoch", async () => {
  const fleet = new MemoryFleet();
  const first = await fleet.alone("n1");
  const key = await fleet.born("tally", "a");
  await fleet.until("its start is in the journal", () => storedEntries(fleet, key).length === 1);
  const hung = fleet.broker.faults.next("append", { kind: "hang" }, { about: key });
  await fleet.send(key, { type: "ADD", n: 1 });
  await fleet.happened("the entry hangs", hung.happened);
  first.kill();
  const second = await fleet.alone("n2");
  await fleet.send(key, { type: "ADD", n: 2 });
  await fleet.until("all entries are stored", () => storedEntries(fleet, key).length === 3);

  const of = ({ node }: typeof first, epoch: number) => ({
    node: node.incarnation.split(":")[0],
    writer: { incarnation: node.incarnation, epoch },
  });
  const entries = storedEntries(fleet, key);
  const epoch = entries[0]?.writer?.epoch ?? 0;
  expect(entries).toMatchObject([
    { rev: 1, ...of(first, epoch) },
    { rev: 2, ...of(first, epoch) },
    { rev: 3, ...of(second, epoch + 1) },
  ]);
  expect(replayOf(fleet, key)).toEqual({ end: { kind: "complete" }, differences: [] });
});
