import type { ServerResponse } from "node:http";
import { RuntimeFault } from "@holdfast/protocol";
import { afterEach, describe, expect, test } from "vitest";
import { endpointPool, contextOf, faultOf, modelAt, requestOf, sendStatus } from "./testing/model-call.ts";
import { beginStream, endStream, sendEvent, sendText } from "./testing/raw-endpoint.ts";

const { start: endpoint, closeAll } = endpointPool();
afterEach(closeAll);

describe("waiting", () => {
  test.each([
    ["connectMs", (): void => undefined],
    ["firstTokenMs", (response: ServerResponse) => beginStream(response)],
    [
      "idleMs",
      (response: ServerResponse) => {
        beginStream(response);
        sendEvent(response, { content: "and then" });
      },
    ],
  ])("ends at %s, says which limit it was and closes the connection", async (field, answer) => {
    const at = await endpoint(answer);
    const timeouts = { connectMs: 5000, firstTokenMs: 5000, idleMs: 5000, [field]: 60 };
    const fault = await faultOf(modelAt(at, { timeouts }).generate(requestOf(), contextOf()));
    expect(fault).toMatchObject({ code: "HF-5005", next: "retry" });
    expect(fault.message).toContain(`timeouts.${field}`);
    await at.socketClosed(0);
  });

  test("goes on while tokens come, thoughts and arguments included", async () => {
    const at = await endpoint((response) => {
      beginStream(response);
      const deltas = ["a", "b", "c"].flatMap((content) => [{ reasoning_content: "hm" }, { content }]);
      let index = 0;
      const timer = setInterval(() => {
        const delta = deltas[index];
        index += 1;
        if (delta !== undefined) return sendEvent(response, delta);
        clearInterval(timer);
        endStream(response, "stop");
      }, 200);
    });
    const model = modelAt(at, { timeouts: { firstTokenMs: 5000, idleMs: 700 } });
    expect((await model.generate(requestOf(), contextOf())).text).toBe("abc");
  });

  test("is not prolonged by comments that keep a connection alive", async () => {
    const at = await endpoint((response) => {
      beginStream(response);
      const timer = setInterval(() => response.write(": still queued\n\n"), 20);
      response.once("close", () => clearInterval(timer));
    });
    const fault = await faultOf(modelAt(at, { timeouts: { firstTokenMs: 120 } }).generate(requestOf(), contextOf()));
    expect(fault.message).toContain("no first token within 120 ms");
  });

  test("takes the status when the body of an error never ends", async () => {
    const at = await endpoint((response) => {
      response.writeHead(503, { "content-type": "application/json" });
      response.write('{"error":');
    });
    const fault = await faultOf(modelAt(at, { timeouts: { connectMs: 1000 } }).generate(requestOf(), contextOf()));
    expect(fault).toMatchObject({ code: "HF-5003", facts: { status: 503 } });
    await at.socketClosed(0);
  });
});

describe("an abort", () => {
  test("in the middle of an answer ends the call and frees its connection", async () => {
    const at = await endpoint((response) => {
      beginStream(response);
      sendEvent(response, { content: "begun" });
    });
    const caller = new AbortController();
    const fault = await faultOf(
      modelAt(at, { maxRetries: 5 }).generate(
        requestOf(),
        contextOf({ signal: caller.signal, onToken: () => caller.abort() }),
      ),
    );
    expect(fault).toMatchObject({ code: "HF-5203", facts: { endpoint: at.host, model: "m1" } });
    await at.socketClosed(0);
    expect(at.requests).toHaveLength(1);
  });

  test("before the answer begins ends the call and frees its connection", async () => {
    const caller = new AbortController();
    const at = await endpoint(() => caller.abort());
    expect(await faultOf(modelAt(at).generate(requestOf(), contextOf({ signal: caller.signal })))).toMatchObject({
      code: "HF-5203",
    });
    await at.socketClosed(0);
  });

  test("between two tries ends the wait", async () => {
    const caller = new AbortController();
    const at = await endpoint((response) => sendStatus(response, 503, {}, { "retry-after": "30" }));
    const started = performance.now();
    const call = modelAt(at, { maxRetries: 5 }).generate(
      requestOf(),
      contextOf({ signal: caller.signal, onRetry: () => setImmediate(() => caller.abort()) }),
    );
    expect(await faultOf(call)).toMatchObject({ code: "HF-5203" });
    expect(performance.now() - started).toBeLessThan(5000);
    expect(at.requests).toHaveLength(1);
  });

  test("with a fault of ours as its reason throws that fault", async () => {
    const reason = new RuntimeFault("HF-3008", "Node n1: is shutting down. Try again on another one.");
    const signal = AbortSignal.abort(reason);
    const at = await endpoint((response) => sendText(response, "too late"));
    await expect(modelAt(at).generate(requestOf(), contextOf({ signal }))).rejects.toBe(reason);
    expect(at.requests).toHaveLength(0);
  });
});
