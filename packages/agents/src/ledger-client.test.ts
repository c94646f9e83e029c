import type { ServerResponse } from "node:http";
import { afterEach, expect, test } from "vitest";
import { createLedgerClient } from "./ledger-client.ts";
import { startRawEndpoint, type RawEndpoint } from "./testing/raw-endpoint.ts";

const endpoints: RawEndpoint[] = [];
afterEach(async () => {
  await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.close()));
});

async function ledgerThat(answer: (response: ServerResponse, index: number) => void, timeoutMs = 10_000) {
  const endpoint = await startRawEndpoint(answer);
  endpoints.push(endpoint);
  const url = `http://${endpoint.host}`;
  return { endpoint, client: createLedgerClient(url, { timeoutMs, maxRetries: 2, retryBaseMs: 1 }) };
}

const json = (response: ServerResponse, body: object, status = 200): void => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
};

const effect = { callId: "c1", idempotencyKey: "k1", kind: "write_report", node: "n1" };

test("an effect and a settlement are posted as they are and answered", async () => {
  const { endpoint, client } = await ledgerThat((response, index) =>
    json(response, index === 0 ? { applied: true, first: 1, attempt: 1 } : { settled: true, outcome: "completed" }),
  );
  expect(await client.effect(effect)).toEqual({ applied: true, first: 1, attempt: 1 });
  expect(await client.settle("c1", "completed")).toEqual({ settled: true, outcome: "completed" });
  expect(endpoint.requests.map(({ url, body }) => [url, JSON.parse(body)])).toEqual([
    ["/effects", effect],
    ["/settlements", { callId: "c1", outcome: "completed" }],
  ]);
});

test("a short outage is waited out under the same key", async () => {
  const { endpoint, client } = await ledgerThat((response, index) => {
    if (index === 0) response.destroy();
    else if (index === 1) json(response, {}, 503);
    else json(response, { applied: true, first: 3, attempt: 3 });
  });
  expect(await client.effect(effect)).toMatchObject({ applied: true });
  expect(new Set(endpoint.requests.map(({ body }) => body)).size).toBe(1);
});

test("HF-4008: a ledger that never answers is a retryable fault within a bounded time, and no connection stays", async () => {
  const { endpoint, client } = await ledgerThat(() => undefined, 80);
  await expect(client.effect(effect)).rejects.toMatchObject({
    code: "HF-4008",
    next: "retry",
    message: expect.stringContaining("nothing within 80 ms"),
    facts: { tries: 3, retryable: true },
  });
  await Promise.all([0, 1, 2].map((index) => endpoint.socketClosed(index)));
});

test("HF-4008: so are an answer that never ends and a ledger that is not there", async () => {
  const { client } = await ledgerThat((response) => {
    response.writeHead(200);
    response.write("{");
  }, 80);
  await expect(client.settle("c1", "failed")).rejects.toMatchObject({ code: "HF-4008" });
  const gone = await ledgerThat(() => undefined);
  await gone.endpoint.close();
  await expect(gone.client.effect(effect)).rejects.toThrow(/ECONNREFUSED/);
});

test("HF-1001: what the ledger refuses, and an answer of something else, is not repeated", async () => {
  const refusing = await ledgerThat((response) => json(response, { error: { message: "kind: too small" } }, 400));
  await expect(refusing.client.effect(effect)).rejects.toMatchObject({ code: "HF-1001", facts: { status: 400 } });
  const other = await ledgerThat((response) => json(response, { hello: "world" }));
  await expect(other.client.effect(effect)).rejects.toMatchObject({ code: "HF-1001" });
  expect([refusing, other].map(({ endpoint }) => endpoint.requests.length)).toEqual([1, 1]);
});

test("HF-5203: an abort ends the wait for an answer", async () => {
  const caller = new AbortController();
  const { endpoint, client } = await ledgerThat(() => caller.abort());
  await expect(client.effect(effect, caller.signal)).rejects.toMatchObject({ code: "HF-5203" });
  expect(endpoint.requests).toHaveLength(1);
});
