import { RuntimeFault } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool, MAX_RESULT_BYTES, type ToolContext } from "./define-tool.ts";
import { ToolFault } from "./tool-fault.ts";
import { createToolbox } from "./toolbox.ts";

const contextOf = (more: Partial<ToolContext> = {}): ToolContext => ({
  signal: new AbortController().signal,
  callId: "c1",
  idempotencyKey: "k1",
  attempt: 1,
  conversation: "d-0.conversation.x",
  agent: "a",
  ...more,
});

const add = defineTool({
  name: "add",
  description: "Adds two numbers.",
  input: z.object({ a: z.number().describe("First."), b: z.number().default(1) }),
  crashPolicy: "idempotent",
  run: ({ a, b }) => ({ sum: a + b }),
});

const answering = (name: string, run: (context: ToolContext) => Promise<string | object> | string | object) =>
  defineTool({
    name,
    description: "",
    input: z.object({}),
    crashPolicy: "unsafe",
    run: (_input, context) => run(context),
  });

describe("a tool", () => {
  test("is shown to the model by its name, text and JSON Schema, without a dialect", () => {
    expect(createToolbox([add]).definitions()).toEqual([
      {
        name: "add",
        description: "Adds two numbers.",
        inputSchema: {
          type: "object",
          properties: { a: { type: "number", description: "First." }, b: { type: "number", default: 1 } },
          required: ["a"],
        },
        kind: "local",
        crashPolicy: "idempotent",
      },
    ]);
  });

  test.each([
    ["whose input is no object", z.string()],
    ["whose input JSON Schema cannot say", z.object({ when: z.date() })],
  ])("%s is refused when it is declared", (_what, input) => {
    const declare = () => defineTool({ name: "odd", description: "", input, crashPolicy: "idempotent", run: () => "" });
    expect(declare).toThrow(expect.objectContaining({ code: "HF-1001" }));
  });

  test("with a name no provider takes is refused when it is declared", () => {
    expect(() => answering("Odd Name", () => "")).toThrow(expect.objectContaining({ code: "HF-1001" }));
  });
});

describe("a toolbox", () => {
  test("refuses two tools of one name", () => {
    expect(() => createToolbox([add, add])).toThrow(expect.objectContaining({ code: "HF-1001" }));
  });

  test("gives text as it is and anything else as JSON", async () => {
    const box = createToolbox([add, answering("say", () => "plain")]);
    expect(await box.run("add", { a: 2 }, contextOf())).toEqual({ content: '{"sum":3}', isTruncated: false });
    expect(await box.run("say", {}, contextOf())).toEqual({ content: "plain", isTruncated: false });
  });

  test("HF-5101: an unknown tool is refused with the names of those there are", async () => {
    const run = createToolbox([add]).run("toString", {}, contextOf());
    await expect(run).rejects.toMatchObject({ code: "HF-5101", message: expect.stringContaining("Available: add") });
  });

  test("HF-5102: input that does not fit is refused with the place, and the tool does not run", async () => {
    for (const input of [{ a: "2" }, "{oops", undefined, null]) {
      await expect(createToolbox([add]).run("add", input, contextOf())).rejects.toMatchObject({ code: "HF-5102" });
    }
    await expect(createToolbox([add]).run("add", { a: "2" }, contextOf())).rejects.toThrow(/a: .*number/);
  });

  test("HF-5103: what a tool throws becomes a fault with its first line", async () => {
    const box = createToolbox([
      answering("fail", () => {
        throw new Error("no such order\n  at secret place");
      }),
    ]);
    const error = await box.run("fail", {}, contextOf()).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ToolFault);
    expect(error).toMatchObject({ code: "HF-5103", message: "Tool fail: failed. no such order" });
  });

  test("a fault a tool throws stays as it is", async () => {
    const fault = new ToolFault("HF-5107", "File x: it is no text.");
    await expect(createToolbox([answering("f", () => Promise.reject(fault))]).run("f", {}, contextOf())).rejects.toBe(
      fault,
    );
  });

  test.each([
    ["a cycle", () => Object.assign({}, { self: globalThis })],
    ["a big number", () => ({ n: 1n })],
    ["a function", () => () => 1],
  ])("HF-5103: a result with %s is a mistake of the tool", async (_what, make) => {
    const run = createToolbox([answering("odd", make)]).run("odd", {}, contextOf());
    await expect(run).rejects.toMatchObject({ code: "HF-5103" });
  });

  test("a result over 64 KiB is cut at a character and says so", async () => {
    const box = createToolbox([answering("long", () => "é😀".repeat(20_000))]);
    const { content, isTruncated } = await box.run("long", {}, contextOf());
    expect(isTruncated).toBe(true);
    expect(Buffer.byteLength(content)).toBeLessThanOrEqual(MAX_RESULT_BYTES);
    expect(Buffer.byteLength(content)).toBeGreaterThan(MAX_RESULT_BYTES - 8);
    expect(content).toMatch(/^(é😀)+é?\n\[The beginning of 120000 bytes\. .*\]$/u);
  });

  test("an abort ends a call whose tool does not listen", async () => {
    const caller = new AbortController();
    const box = createToolbox([
      answering("deaf", () => {
        setImmediate(() => caller.abort());
        return new Promise<string>(() => undefined);
      }),
    ]);
    await expect(box.run("deaf", {}, contextOf({ signal: caller.signal }))).rejects.toMatchObject({ code: "HF-5203" });
  });

  test("an abort before the call keeps the tool from running", async () => {
    let runs = 0;
    const box = createToolbox([
      answering("count", () => {
        runs += 1;
        return "";
      }),
    ]);
    const reason = new RuntimeFault("HF-3008", "Node n1: is shutting down.");
    await expect(box.run("count", {}, contextOf({ signal: AbortSignal.abort(reason) }))).rejects.toBe(reason);
    expect(runs).toBe(0);
  });
});
