import { describe, expect, test } from "vitest";
import { CountedConnection, WINDOW } from "./counted-connection.ts";
import type { Packet } from "./packet.ts";

/** Two ends; `lose` says which packets of the left one never arrive. */
function ends(lose: (packet: Packet) => boolean = () => false) {
  const left: CountedConnection = new CountedConnection((packet) => {
    if (!lose(packet)) right.arrived(packet);
  });
  const right: CountedConnection = new CountedConnection((packet) => left.arrived(packet));
  return { left, right };
}

async function readOf(connection: CountedConnection, count: number): Promise<readonly unknown[]> {
  const frames: unknown[] = [];
  if (count === 0) return frames;
  for await (const frame of connection.frames) {
    frames.push(frame);
    if (frames.length === count) break;
  }
  return frames;
}

const isFrame = (n: number) => (packet: Packet) => packet.kind === "frame" && packet.n === n;

test("frames come in order, and those before the end are still read", async () => {
  const { left, right } = ends();
  for (const frame of [{ a: 1 }, "b", null]) await left.send(frame);
  left.close();
  const frames: unknown[] = [];
  for await (const frame of right.frames) frames.push(frame);
  expect(frames).toEqual([{ a: 1 }, "b", null]);
  await right.send("late");
  expect(left.closed.aborted && right.closed.aborted).toBe(true);
});

describe("K1: a lost frame ends the connection", () => {
  test("when the next one comes", async () => {
    const { left, right } = ends(isFrame(2));
    for (const frame of [1, 2]) await left.send(frame);
    expect(right.closed.aborted).toBe(false);
    await left.send(3);
    expect(right.closed.aborted).toBe(true);
    expect(await readOf(right, 1)).toEqual([1]);
  });

  test("when it was the last one: the next beat tells", async () => {
    const { left, right } = ends(isFrame(1));
    await left.send(1);
    left.beat();
    expect([left.closed.aborted, right.closed.aborted]).toEqual([true, true]);
  });

  test("a frame that comes twice does too", async () => {
    const { left, right } = ends();
    await left.send(1);
    right.arrived({ kind: "frame", n: 1, frame: 1 });
    expect(right.closed.aborted).toBe(true);
  });
});

test("K2: a sender waits for the reader, and for nothing after the end", async () => {
  const { left, right } = ends();
  let sent = 0;
  const sending = (async () => {
    for (; sent < 3 * WINDOW; sent += 1) await left.send(sent);
  })();
  await expect.poll(() => sent).toBe(WINDOW);
  expect(await readOf(right, WINDOW)).toHaveLength(WINDOW);
  await expect.poll(() => sent).toBe(2 * WINDOW);
  left.close();
  await sending;
  expect(sent).toBe(3 * WINDOW);
});

test("K3: silence ends a connection, beats keep it", () => {
  const { left, right } = ends((packet) => packet.kind === "beat");
  for (let beat = 0; beat < 5; beat += 1) left.beat();
  expect(left.closed.aborted).toBe(false);
  right.beat();
  for (let beat = 0; beat < 5; beat += 1) left.beat();
  expect(left.closed.aborted).toBe(false);
  left.beat();
  expect([left.closed.aborted, right.closed.aborted]).toEqual([true, true]);
});
