import { describe, expect, test } from "vitest";
import { defineActor } from "../actor-definition.ts";
import { echoMachine } from "./echo.machine.ts";
import { MemoryFleet } from "./memory-fleet.ts";

const definitions = [defineActor({ type: "echo", machine: echoMachine })];

describe("what a custom action sends by hand", () => {
  test("arrives, in order", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone("n1", { definitions });
    const key = await fleet.born("echo", "e");
    await fleet.send(key, { type: "GO" });
    await fleet.until("both were heard", () => fleet.record(key)?.rev === 4);
    expect(fleet.context(key)).toEqual({ heard: [1, 2] });
  });

  test("is applied once, although the action runs again after a crash", async () => {
    const fleet = new MemoryFleet({ settings: { idleCleanMs: 600_000 } });
    const first = await fleet.alone("n1", { definitions });
    const key = await fleet.born("echo", "e");
    const unstored = first.holdAt("before-commit", key, 1);
    await fleet.send(key, { type: "GO" });
    await fleet.happened("the first word is not stored yet", unstored.reached);
    await fleet.until("both words are in the stream", () => fleet.broker.messagesOf("inbox", key).length === 4);
    first.kill();
    fleet.broker.forgetMessageIds();
    const stored = fleet.record(key)?.outbox.filter(({ kind }) => kind === "action") ?? [];
    expect(stored, "the action is still in the record, so that it runs again").toHaveLength(1);
    await fleet.alone("n2", { definitions });
    await fleet.until("its words came again", () => fleet.broker.messagesOf("inbox", key).length === 6);
    const after = await fleet.send(key, { type: "HEARD", n: 3 });
    await fleet.until("what came after is applied", () => fleet.outcomes(after).length > 0);
    expect(fleet.context(key)).toEqual({ heard: [1, 2, 3] });
  });

  test("to nobody is told, and the actor goes on", async () => {
    const fleet = new MemoryFleet();
    await fleet.alone("n1", { definitions });
    const key = await fleet.born("echo", "e");
    await fleet.send(key, { type: "STRAY" });
    await fleet.until("it was told", () => fleet.events("actor.action-failed").length === 1);
    expect(fleet.events("actor.action-failed")[0]?.fields).toMatchObject({ fault: "HF-3001", action: "stray" });
    await fleet.send(key, { type: "HEARD", n: 1 });
    await fleet.until("the next one is applied", () => fleet.record(key)?.rev === 3);
  });
});
