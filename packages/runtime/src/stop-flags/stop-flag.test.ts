import { PANIC_KEY } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { silentTelemetry } from "../ports/index.ts";
import { StopFlag } from "./stop-flag.ts";

const flagged = (state: string) =>
  new TextEncoder().encode(JSON.stringify({ v: 1, state, by: "person-ada", reason: "", token: "t" }));

function flag() {
  const changes: boolean[] = [];
  const known: StopFlag = new StopFlag({
    fleet: { get: () => Promise.resolve(undefined) },
    telemetry: silentTelemetry,
    changed: () => changes.push(known.isRaised),
  });
  const see = (seq: number, bytes: Uint8Array, key = PANIC_KEY): void =>
    known.take({ key, bytes, seq, storedAtMs: seq });
  return { known, changes, see };
}

describe("stop flag", () => {
  test("S1: one that cannot be read counts as raised", () => {
    const { known, see } = flag();
    see(4, new TextEncoder().encode("not JSON"));
    expect(known.state).toMatchObject({ isRaised: true, revision: 4 });
  });

  test("S1: one that was removed stays what it was", () => {
    const { known, see } = flag();
    see(4, flagged("raised"));
    see(5, new Uint8Array());
    expect(known.isRaised).toBe(true);
  });

  test("S2: one that is cleared when it is first seen is told of as a change", () => {
    const { changes, see } = flag();
    see(9, flagged("cleared"));
    expect(changes).toEqual([false]);
  });

  test("an older one, the same one, and other keys change nothing", () => {
    const { known, changes, see } = flag();
    see(7, flagged("cleared"));
    see(7, flagged("cleared"));
    see(6, flagged("raised"));
    see(8, flagged("raised"), "flag.other");
    expect([known.isRaised, changes]).toEqual([false, [false]]);
  });
});
