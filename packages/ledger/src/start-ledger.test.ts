import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { countLedgerFile } from "./count-ledger.ts";
import type { LedgerPlant } from "./ledger-book.ts";
import { LedgerFault } from "./ledger-fault.ts";
import { startLedger } from "./start-ledger.ts";
import type { Ledger } from "./start-ledger.ts";

let folder: string;
let file: string;
const open = new Set<Ledger>();
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ledger-"));
  file = join(folder, "deep", "ledger.jsonl");
});
afterEach(async () => {
  for (const ledger of open) await ledger.close();
  open.clear();
  await rm(folder, { recursive: true });
});

async function start(plant?: LedgerPlant): Promise<Ledger> {
  const ledger = await startLedger({ file, ...(plant === undefined ? {} : { plant }) });
  open.add(ledger);
  return ledger;
}

async function post(ledger: Ledger, path: string, body: unknown): Promise<unknown> {
  const response = await fetch(ledger.url + path, { method: "POST", body: JSON.stringify(body) });
  return response.json();
}

const effect = (ledger: Ledger, callId: string, idempotencyKey: string, more: object = {}) =>
  post(ledger, "/effects", { callId, idempotencyKey, kind: "mail", ...more });
const settle = (ledger: Ledger, callId: string, outcome = "completed") =>
  post(ledger, "/settlements", { callId, outcome });

async function get(ledger: Ledger, path: string): Promise<readonly [number, unknown]> {
  const response = await fetch(ledger.url + path);
  return [response.status, await response.json()];
}

describe("effects and settlements", () => {
  test("B1, B2: a key is applied once, every attempt is written", async () => {
    const ledger = await start();
    expect(await effect(ledger, "c", "k", { node: "n1", detail: { to: ["a"] } })).toEqual({
      applied: true,
      first: 1,
      attempt: 1,
    });
    expect(await effect(ledger, "d", "k2")).toEqual({ applied: true, first: 2, attempt: 2 });
    expect(await effect(ledger, "c", "k")).toEqual({ applied: false, first: 1, attempt: 3 });
    expect(await settle(ledger, "c")).toEqual({ settled: true, outcome: "completed" });
    expect(await settle(ledger, "c", "failed")).toEqual({ settled: false, outcome: "completed" });

    const at = expect.any(Number);
    const entries = await (await fetch(`${ledger.url}/entries`)).text();
    expect(entries).toBe(await readFile(file, "utf8"));
    expect(
      entries
        .split("\n")
        .slice(0, -1)
        .map((line): unknown => JSON.parse(line)),
    ).toEqual([
      {
        line: "attempt",
        attempt: 1,
        at,
        callId: "c",
        idempotencyKey: "k",
        kind: "mail",
        node: "n1",
        detail: { to: ["a"] },
      },
      { line: "applied", attempt: 1, at },
      { line: "attempt", attempt: 2, at, callId: "d", idempotencyKey: "k2", kind: "mail" },
      { line: "applied", attempt: 2, at },
      { line: "attempt", attempt: 3, at, callId: "c", idempotencyKey: "k", kind: "mail" },
      { line: "settlement", at, callId: "c", outcome: "completed" },
      { line: "settlement", at, callId: "c", outcome: "failed" },
    ]);
  });

  test("of many concurrent attempts under one key exactly one is applied", async () => {
    const ledger = await start();
    const answers = await Promise.all(Array.from({ length: 50 }, () => effect(ledger, "c", "k")));
    expect(answers.filter((answer) => JSON.stringify(answer).includes('"applied":true'))).toHaveLength(1);
    expect(await ledger.figures()).toMatchObject({ attempts: 50, applied: 1, duplicateEffects: 0 });
  });

  test.each([
    ["a missing field", "/effects", { callId: "c", kind: "mail" }, "idempotencyKey"],
    ["a misspelt field", "/effects", { callId: "c", idempotencyKey: "k", kind: "m", nod: "n" }, "nod"],
    ["an empty id", "/settlements", { callId: "", outcome: "completed" }, "callId"],
    ["no object", "/settlements", 7, "body"],
  ])("%s is refused and not written", async (_name, path, body, field) => {
    const ledger = await start();
    const response = await fetch(ledger.url + path, { method: "POST", body: JSON.stringify(body) });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(field);
    expect(await readFile(file, "utf8")).toBe("");
  });

  test("no JSON, an unknown path and a bad wait are refused; health is served", async () => {
    const ledger = await start();
    expect((await fetch(`${ledger.url}/effects`, { method: "POST", body: "{" })).status).toBe(400);
    expect((await fetch(`${ledger.url}/effects`)).status).toBe(404);
    expect((await get(ledger, "/wait?attempts=-1"))[0]).toBe(400);
    expect(await get(ledger, "/health")).toEqual([200, { status: "ok" }]);
  });
});

describe("restart", () => {
  test("B3: keys, settlements and attempt numbers survive", async () => {
    const first = await start();
    await effect(first, "c", "k");
    await settle(first, "c");
    const before = await first.figures();
    await first.close();

    const second = await start();
    expect(await second.figures()).toEqual(before);
    expect(await get(second, "/wait?attempts=1&applied=1&settled=1&timeoutMs=0")).toMatchObject([200, {}]);
    expect(await effect(second, "c", "k")).toEqual({ applied: false, first: 1, attempt: 2 });
    expect(await settle(second, "c", "failed")).toEqual({ settled: false, outcome: "completed" });
  });

  test("L3: a torn last line is cut and does not count", async () => {
    const first = await start();
    await effect(first, "c", "k");
    await first.close();
    const whole = await readFile(file, "utf8");
    await appendFile(file, '{"line":"applied","att');
    expect(await countLedgerFile(file)).toMatchObject({ applied: 1 });

    const second = await start();
    expect(await readFile(file, "utf8")).toBe(whole);
    expect(await effect(second, "d", "k2")).toMatchObject({ applied: true, attempt: 2 });
  });

  test("W2: a log that cannot be counted stops the start", async () => {
    await (await start()).close();
    await writeFile(file, "not a line\n");
    await expect(start()).rejects.toThrow("Line 1 of the ledger is not a ledger line.");
    await expect(start()).rejects.toBeInstanceOf(LedgerFault);
  });
});

describe("reading", () => {
  test("figures online and offline are the same", async () => {
    const ledger = await start();
    await effect(ledger, "c", "k");
    await settle(ledger, "c");
    await settle(ledger, "d");
    const [status, figures] = await get(ledger, "/figures");
    expect(status).toBe(200);
    expect(figures).toMatchObject({ attempts: 1, calls: 2, applied: 1, settled: 2, lost: 1 });
    expect(await countLedgerFile(file)).toEqual(figures);
    expect(await ledger.figures()).toEqual(figures);
  });

  test("a long poll answers once every count is reached", async () => {
    const ledger = await start();
    const wait = get(ledger, "/wait?attempts=2&settled=1&timeoutMs=15000");
    await effect(ledger, "c", "k");
    await effect(ledger, "c", "k");
    await settle(ledger, "c");
    await settle(ledger, "c");
    expect(await wait).toMatchObject([200, { kind: "reached", attempts: 2, settled: 1 }]);
    expect(await get(ledger, "/wait?applied=1")).toEqual([
      200,
      { kind: "reached", attempts: 2, applied: 1, settled: 1 },
    ]);
  });

  test("a long poll that is not met in time says where the ledger stands", async () => {
    const ledger = await start();
    await effect(ledger, "c", "k");
    expect(await get(ledger, "/wait?attempts=2&timeoutMs=20")).toEqual([
      408,
      { kind: "timed-out", attempts: 1, applied: 1, settled: 0 },
    ]);
  });
});

describe("planted faults each move their own figure, once", () => {
  test.each<[LedgerPlant | undefined, object]>([
    [undefined, { applied: 2, duplicateEffects: 0, lost: 0 }],
    ["duplicate", { applied: 3, duplicateEffects: 1, lost: 0, details: { keysAppliedTwice: ["k1"] } }],
    ["lost", { applied: 1, duplicateEffects: 0, lost: 1, details: { lostCalls: ["c1"] } }],
    [
      "late",
      {
        applied: 2,
        duplicateEffects: 1,
        lost: 0,
        details: { effectsAfterSettlement: [{ callId: "c1", attempt: 1 }] },
      },
    ],
  ])("%s", async (plant, figures) => {
    const ledger = await start(plant);
    const answers: unknown[] = [];
    for (const n of ["1", "2"]) {
      answers.push(await effect(ledger, `c${n}`, `k${n}`), await effect(ledger, `c${n}`, `k${n}`));
      await settle(ledger, `c${n}`);
      await settle(ledger, `c${n}`);
    }
    // The caller sees nothing unusual: only the count can tell.
    expect(answers).toEqual([
      { applied: true, first: 1, attempt: 1 },
      { applied: false, first: 1, attempt: 2 },
      { applied: true, first: 3, attempt: 3 },
      { applied: false, first: 3, attempt: 4 },
    ]);
    expect(await ledger.figures()).toMatchObject({ attempts: 4, settled: 2, ...figures });
  });
});

test("a taken port and an unusable file are faults that say what to do", async () => {
  const ledger = await start();
  await expect(startLedger({ file: join(folder, "other"), port: ledger.port })).rejects.toThrow(
    `cannot listen on 127.0.0.1:${ledger.port}. Choose another port, or 0.`,
  );
  await expect(startLedger({ file: folder })).rejects.toThrow(`cannot write ${folder}.`);
});
