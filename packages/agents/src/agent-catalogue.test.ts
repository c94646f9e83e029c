import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentDigest } from "@holdfast/protocol";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createAgentCatalogue } from "./agent-catalogue.ts";
import { readAgentFolder } from "./agent-folder.ts";
import { defineAgent } from "./define-agent.ts";
import { ASK_PARENT } from "./delegation-tools.ts";

let place: string;
beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), "holdfast-agents-"));
});
afterEach(() => rm(place, { recursive: true, force: true }));

const reader = defineAgent({ name: "reader", model: "small" });
const put = async (folder: string, files: Readonly<Record<string, string>>): Promise<string> => {
  const path = join(place, folder);
  await mkdir(path, { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text);
  return path;
};
const WRITER = `---
name: writer
description: Writes one section.
model: large
tools: [ask_parent]
delegates:
  - reader
limits: { maxIterations: 7, maxOpenTasks: 3 }
---

You write.

--- and this line is text ---
`;
const catalogue = async (project: string, user?: string) =>
  createAgentCatalogue({
    code: [reader],
    files: [
      ...(await readAgentFolder(project, "project")),
      ...(user === undefined ? [] : await readAgentFolder(user, "user")),
    ],
    tools: [ASK_PARENT],
  });
const refused = (reason: RegExp) =>
  expect.objectContaining({ code: "HF-5206", message: expect.stringMatching(reason) });

describe("a folder of agents", () => {
  test("Markdown with front matter and YAML say the same things", async () => {
    const folder = await put("p", {
      "a.md": WRITER,
      "helper.yaml": "instructions: You help.\n",
      "README.txt": "no agent",
    });
    const found = await catalogue(folder);
    expect(found.names()).toEqual(["reader", "writer", "helper"]);
    expect(found.get("writer")).toMatchObject({
      model: "large",
      description: "Writes one section.",
      instructions: "You write.\n\n--- and this line is text ---",
      limits: { maxIterations: 7, maxTurnMs: 3_600_000, maxOpenTasks: 3 },
      delegates: ["reader"],
    });
    expect(found.get("writer").tools.map(({ name }) => name)).toEqual([
      "ask_parent",
      "task",
      "task_group",
      "task_output",
      "task_stop",
    ]);
    expect(found.get("helper")).toMatchObject({ model: "inherit", instructions: "You help.", tools: [] });
  });

  test("a budget of another system, in dollars per run, is that of this one", async () => {
    const prices = "prices: { large: { inputMicroUsd: 3, outputMicroUsd: 4 } }";
    const folder = await put("p", {
      "own.yaml": `model: large\nmax_budget_per_run: 0.25\npermission_mode: never_confirm\n${prices}`,
      "heir.yaml": `max_budget_per_run: 0.0000011\n${prices}`,
    });
    const found = await catalogue(folder);
    expect(found.get("own")).toMatchObject({
      limits: { maxCostMicroUsd: 250_000 },
      prices: { large: { inputMicroUsd: 3, outputMicroUsd: 4 } },
    });
    expect(found.get("heir").limits.maxCostMicroUsd).toBe(2);
  });

  test("that is not there has none", async () => {
    expect((await catalogue(join(place, "gone"))).names()).toEqual(["reader"]);
  });

  test("an agent of the project takes the place of one of the user, and says where it is from", async () => {
    const project = await put("p", { "writer.md": "---\nmodel: ours\n---\nours" });
    const user = await put("u", { "writer.md": "---\nmodel: mine\n---\nmine", "own.yml": "model: mine" });
    const found = await catalogue(project, user);
    expect(found.entries().map(({ agent, origin, file }) => [agent.name, agent.model, origin, file])).toEqual([
      ["reader", "small", "code", undefined],
      ["writer", "ours", "project", join(project, "writer.md")],
      ["own", "mine", "user", join(user, "own.yml")],
    ]);
  });

  test.each([
    [
      "two of one name",
      { "a.md": "---\nname: x\n---\n", "b.yaml": "name: x" },
      /b\.yaml: the name x is taken by .*a\.md/,
    ],
    ["the name of an agent of the application", { "reader.md": "---\n---\n" }, /taken by an agent of the application/],
    ["no front matter", { "a.md": "You write." }, /front matter/],
    ["a key twice", { "a.yaml": "model: a\nmodel: b" }, /keys must be unique/i],
    ["a field that nobody knows", { "a.yaml": "colour: red" }, /colour/],
    ["a promise of another system", { "a.yaml": "skills: [x]\nhooks: []" }, /skills, hooks: not supported/],
    [
      "a promise to ask before a tool runs",
      { "a.yaml": "permission_mode: always_confirm" },
      /always_confirm is not supported/,
    ],
    ["a budget in money without a price", { "a.yaml": "model: m\nmax_budget_per_run: 1" }, /m no price/],
    ["a budget for a model to be inherited, without any price", { "a.yaml": "max_budget_per_run: 1" }, /no price/],
    [
      "two budgets",
      { "a.yaml": "model: m\nmax_budget_per_run: 1\nlimits: { maxCostMicroUsd: 5 }" },
      /the same is said by limits\.maxCostMicroUsd/,
    ],
    ["a name that does not fit", { "Not A Name.yaml": "model: m" }, /name/],
    ["a limit that does not fit", { "a.yaml": "limits: { maxIterations: 0 }" }, /maxIterations/],
    ["an unknown tool", { "a.yaml": "tools: [rm]" }, /there is no rm; known: ask_parent/],
    ["an unknown agent to delegate to", { "a.yaml": "delegates: [ghost]" }, /there is no agent ghost/],
    ["instructions twice", { "a.md": "---\ninstructions: x\n---\ny" }, /below the front matter/],
    ["too much", { "a.yaml": `instructions: "${"x".repeat(300_000)}"` }, /bytes/],
    ["no mapping", { "a.yaml": "- a list" }, /a\.yaml/],
    [
      "aliases without end",
      { "a.yaml": `a: &a [x]\nb: &b [${"*a,".repeat(20)}]\nc: [${"*b,".repeat(20)}]` },
      /aliases/,
    ],
  ])("%s is refused, naming the file", async (_, files, reason) => {
    const folder = await put("p", Object.fromEntries(Object.entries(files)));
    await expect(catalogue(folder)).rejects.toThrow(refused(reason));
  });

  test("what is no regular file is left out, a link without end is refused", async () => {
    const folder = await put("p", {});
    await mkdir(join(folder, "folder.md"));
    expect((await catalogue(folder)).names()).toEqual(["reader"]);
    await symlink(join(folder, "gone"), join(folder, "link.md"));
    await expect(catalogue(folder)).rejects.toThrow(refused(/link\.md/));
  });
});

describe("who talks to an agent", () => {
  test("gets it with all it may delegate to; one model may stand for all", async () => {
    const found = await catalogue(await put("p", { "a.md": WRITER }));
    expect(found.forConversation("writer").agents).toEqual({ reader });
    expect(found.forConversation("writer", "m")).toMatchObject({
      agent: { model: "m" },
      agents: { reader: { model: "m" } },
    });
  });

  test("needs a model that somebody names", async () => {
    const found = await catalogue(await put("p", { "helper.yaml": "instructions: You help." }));
    expect(() => found.forConversation("helper")).toThrow(refused(/inherits its model/));
    expect(found.forConversation("helper", "m").agent.model).toBe("m");
    expect(() => found.forConversation("ghost")).toThrow(expect.objectContaining({ code: "HF-5201" }));
  });

  test("sees by the digest whether a definition is another one", async () => {
    const folder = await put("p", { "helper.yaml": "model: m" });
    const digest = async () => (await catalogue(folder)).entries()[1]?.digest;
    const before = await digest();
    expect(await digest()).toBe(before);
    await put("p", { "helper.yaml": "model: m\ninstructions: more" });
    expect(await digest()).not.toBe(before);
    expect(agentDigest(reader)).toMatch(/^[0-9a-z]{12}$/);
  });
});
