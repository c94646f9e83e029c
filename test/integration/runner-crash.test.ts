import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { placeEnvelope, type RunnerEnvelope } from "@holdfast/runner";
import { ACTIVATE, draftOf, MemoryFacts, PREPARE } from "@holdfast/runner/testing";
import { expect, test } from "vitest";
import { startBroker } from "../contract/jetstream-fixture.ts";
import { startProcess, type StartedProcess } from "../harness/child-process.ts";
import { seatHosts } from "../harness/seat-hosts.ts";

const NS = "guest";
const MAIN = join(import.meta.dirname, "../../apps/runner/src/main.ts");
const ENGINE = join(import.meta.dirname, "../harness/engine-under-test.ts");

/** What stands at a place that an engine filled. */
const asWritten = (envelope: RunnerEnvelope): RunnerEnvelope => {
  const { seq, epoch, conversation } = envelope;
  return placeEnvelope(draftOf(seq), { seq, epoch, conversation });
};

test("a runner that is killed in the middle of a turn: what a host saw is what the journal has, no more is lost, and the host is told", async () => {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-runner-"));
  const broker = await startBroker(NS, ["s1"]);
  const end = new AbortController();
  let runner: StartedProcess | undefined;
  try {
    await writeFile(join(folder, "token"), PREPARE.token);
    const start = (): Promise<StartedProcess> =>
      startProcess(MAIN, [], {
        RUNNER_NATS_URL: broker.nats.url,
        RUNNER_NATS_PASSWORD: broker.nats.credentials("runner_s1").password,
        RUNNER_NAMESPACE: NS,
        RUNNER_SEAT: "s1",
        RUNNER_FOLDER: join(folder, "journal"),
        RUNNER_TOKEN_FILE: join(folder, "token"),
        RUNNER_ENGINE: JSON.stringify([process.execPath, ENGINE]),
        RUNNER_CONTRACT: JSON.stringify({ engine: "sim", options: [], permissionModes: ["ask"] }),
      });
    runner = await start();
    expect(runner.hello).toEqual({ seat: "s1", epoch: 1 });
    const hosts = seatHosts(await broker.connect(), NS, "s1");
    expect((await hosts.answerTo(PREPARE)).op).toBe("prepared");
    expect((await hosts.answerTo(ACTIVATE)).op).toBe("activated");
    const facts = new MemoryFacts();
    const reading = hosts.host(facts, 1, end.signal);
    await expect.poll(() => reading.envelopes.length, { timeout: 20_000 }).toBeGreaterThan(40);
    await runner.kill();
    runner = await start();
    expect(runner.hello).toEqual({ seat: "s1", epoch: 2 });
    await expect
      .poll(() => reading.envelopes.at(-1), { timeout: 30_000 })
      .toMatchObject({ op: "error", code: "engine-lost", epoch: 2 });
    const [first, ...rest] = reading.envelopes;
    const ofTheEngine = rest.slice(0, -1);
    expect(first).toMatchObject({ op: "status", seq: 1 });
    expect(ofTheEngine.length, "killed before the engine had said everything").toBeLessThan(999);
    expect(ofTheEngine.map(({ seq }) => seq)).toEqual(ofTheEngine.map((_, index) => index + 2));
    expect(ofTheEngine).toEqual(ofTheEngine.map(asWritten));
    expect(new Set(ofTheEngine.map(({ epoch }) => Number(epoch)))).toEqual(new Set([1]));
    const durable = ofTheEngine.filter((each) => each.op === "event" && each.requiresPersistence === true);
    expect([...facts.rows.values()].map(({ payload }) => payload.runnerSeq)).toEqual(durable.map(({ seq }) => seq));
    runner.child.kill("SIGTERM");
    expect(await runner.exited).toMatchObject({ code: 0 });
  } finally {
    end.abort();
    await runner?.kill();
    await broker.close();
    await rm(folder, { recursive: true, force: true });
  }
}, 90_000);
