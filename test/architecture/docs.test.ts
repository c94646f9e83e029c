import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { topologyOf } from "@holdfast/jetstream";
import { ENVIRONMENT, parseConfig } from "@holdfast/process";
import * as protocol from "@holdfast/protocol";
import { CRASH_POINTS } from "@holdfast/runtime/ports";
import { describe, expect, test } from "vitest";
import { DOCUMENTED_COMMANDS } from "./documented-commands.ts";
import {
  anchorsOf,
  codeBlocksOf,
  codeWords,
  filesBelow,
  linksOf,
  plain,
  proseOf,
  readDocument,
  rowsUnder,
  tablesOf,
} from "./markdown.ts";
import { ROOMS } from "./rooms.ts";

const root = join(import.meta.dirname, "../..");
const run = promisify(execFile);
const open = (path: string) => readDocument(root, path);
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const docs = filesBelow(root, "docs");
const ours = ["README.md", ...docs].map(open);
const roomReadmes = filesBelow(root, "packages")
  .filter((path) => /^packages\/[^/]+\/README\.md$/.test(path))
  .map(open);
const isTest = (path: string): boolean => /\.(test|contract)\.ts$/.test(path);
const sources = ["packages", "apps", "test"]
  .flatMap((folder) => filesBelow(root, folder))
  .filter((path) => path.endsWith(".ts"));

describe("docs/errors.md", () => {
  const rows = rowsUnder(open("docs/errors.md"), "Code", "Title", "Next");

  test("has a row for every code of the catalogue, in its order, with title and consequence", () => {
    const catalogue = Object.entries(protocol.ERROR_CATALOGUE).map(([code, { title, next }]) => [code, title, next]);
    expect(rows.map(([code, title, next]) => [code, title, plain(next ?? "")])).toEqual(catalogue);
  });

  test("says of exactly those codes that they are not raised which no source mentions", () => {
    const code = sources
      .filter((path) => !isTest(path) && !/^test\/|\/testing\/|protocol\/src\/errors\.ts$/.test(path))
      .map(read)
      .join("\n");
    const silent = Object.keys(protocol.ERROR_CATALOGUE).filter((each) => !code.includes(each));
    const admitted = rows.filter((row) => row.join(" ").includes("not raised by this build")).map(([each]) => each);
    expect(admitted).toEqual(silent);
  });
});

test("docs/configuration.md has every variable with its default and meaning, in order", () => {
  const defaults: Readonly<Record<string, unknown>> = parseConfig({});
  const shown = (value: unknown): string =>
    value === undefined
      ? "none"
      : [value]
          .flat()
          .map((one) => JSON.stringify(one).replaceAll('"', ""))
          .join(",");
  const expected = Object.entries(ENVIRONMENT).map(([name, { meaning }]) => [name, shown(defaults[name]), meaning]);
  const rows = rowsUnder(open("docs/configuration.md"), "Variable", "Default", "Meaning");
  expect(rows.map((row) => row.map(plain))).toEqual(expected);
});

describe("docs/invariants.md", () => {
  const path = "docs/invariants.md";
  const sections = open(path)
    .text.split(/^## (?=I\d+: )/m)
    .slice(1);
  const marked = (section: string, mark: string) =>
    section
      .split("\n")
      .filter((line) => line.startsWith(`- ${mark}`))
      .flatMap((text) => linksOf({ path, text }));

  test("lists I1 to I14", () => {
    const names = sections.map((section) => /^I\d+/.exec(section)?.[0]);
    expect(names).toEqual(Array.from({ length: 14 }, (_, index) => `I${index + 1}`));
  });

  test.each(sections.map((section) => [section.split("\n")[0] ?? "", section] as const))("%s", (_title, section) => {
    expect(marked(section, "Kept in").length, "a file that keeps it").toBeGreaterThan(0);
    const proofs = marked(section, "Proved by");
    expect(proofs.length > 0 || section.includes("\n- Not yet: "), "a proof, or what is missing").toBe(true);
    const wrong = proofs.filter(({ label, target }) => {
      const source = read(join("docs", target));
      return !isTest(target) || ![`"${plain(label)}"`, `\`${plain(label)}`].some((title) => source.includes(title));
    });
    expect(wrong.map(({ label, target }) => `${target}: ${label}`)).toEqual([]);
  });
});

describe("docs/architecture.md", () => {
  const document = open("docs/architecture.md");

  test("has the table of rooms that the walls are built from", () => {
    const short = (name: string): string => name.replace("@holdfast/", "");
    const rows = rowsUnder(document, "Room", "Kind", "Knows").map((row) => row.slice(0, 3));
    expect(rows).toEqual(ROOMS.map(({ name, tag, internal }) => [short(name), tag, internal.map(short).join(", ")]));
  });

  test("names every crash point, and no other", () => {
    const named = rowsUnder(document, "Crash point").map(([point = ""]) => plain(point));
    expect(named.toSorted()).toEqual([...CRASH_POINTS].toSorted());
  });

  test("names every stream and bucket", () => {
    const named = rowsUnder(document, "What", "Stream")
      .map(([, name = ""]) => plain(name).replace("<ns>", "main").replace("<NS>", "MAIN").replace("<shard>", "0"))
      .toSorted();
    const declared = topologyOf({ ns: "main", pools: { d: 1 }, shards: 1 }).map(({ name }) => name);
    expect(named).toEqual([...declared, "KV_hf_main_fleet"].toSorted());
  });
});

describe("docs/protocol.md", () => {
  const document = open("docs/protocol.md");

  test("its golden vectors are those of the partition hash", () => {
    const vectors = rowsUnder(document, "Text", "FNV-1a-32");
    expect(vectors.length).toBeGreaterThan(4);
    for (const [text = "", hash = ""] of vectors)
      expect(protocol.fnv1a32(plain(text).replaceAll("\\0", "\0")), text).toBe(Number(plain(hash)));
  });

  test("its limits are those of the code", () => {
    const limits = rowsUnder(document, "Limit", "Value").map(([name = "", value]) => [
      codeWords(name)[0],
      Number(value),
    ]);
    const known: Readonly<Record<string, unknown>> = { ...protocol };
    for (const [name, value] of limits) expect(known[String(name)], String(name)).toBe(value);
    expect(limits).toHaveLength(
      Object.keys(known).filter((name) => /_LIMIT_BYTES$|_THRESHOLD_BYTES$|^MAX_(?!SUBJECT)/.test(name)).length,
    );
  });

  test("its states in other protocols are those of the code", () => {
    const rows = rowsUnder(document, "Work state", "A2A 1.0").map((row) => row.map(plain));
    const { PROTOCOL_NAMES } = protocol;
    expect(rows).toEqual(
      Object.entries(PROTOCOL_NAMES).map(([state, { a2a, mcp = "", agUi = "", responses = "" }]) => [
        state,
        a2a,
        mcp,
        agUi,
        responses,
      ]),
    );
  });

  test("its statuses and tags are those of the code", () => {
    const statuses = new Map(
      rowsUnder(document, "Of what", "Values").map(([what, values = ""]) => [what, codeWords(values)]),
    );
    expect(statuses).toEqual(
      new Map<string, readonly string[]>([
        ["record", protocol.RecordStatus.options],
        ["conversation", protocol.ConversationStatus.options],
        ["task", protocol.TaskStatus.options],
        ["owner-wait", protocol.WaitStatus.options],
        ["waiting on", protocol.WaitingOn.options],
        ["failure cause", protocol.FailureCause.options],
      ]),
    );
    expect(rowsUnder(document, "Tag", "Content").map(([tag = ""]) => plain(tag))).toEqual(
      Object.keys(protocol.VALUE_TAGS),
    );
  });

  test("its kinds of envelopes and outcomes are those of the code", () => {
    const kinds = (schema: typeof protocol.Envelope | typeof protocol.MessageOutcome) =>
      schema.options.map((option) => option.shape.kind.value);
    const envelopes = tablesOf(document).find(({ head }) => head[0] === "Kind" && head[1] === "Fields");
    expect(envelopes?.rows.map(([kind = ""]) => plain(kind))).toEqual(kinds(protocol.Envelope));
    expect(rowsUnder(document, "Outcome").map(([kind = ""]) => plain(kind))).toEqual(kinds(protocol.MessageOutcome));
  });
});

test("docs/test-matrix.md has every test that can be skipped, and no other", () => {
  const skipping = sources.filter(
    (path) => isTest(path) && /\b(describe|test|it)\.(skip|todo|skipIf|runIf)\b|\bskip\(/.test(read(path)),
  );
  const listed = rowsUnder(open("docs/test-matrix.md"), "File", "What is skipped").flatMap(([file = ""]) =>
    linksOf({ path: "docs/test-matrix.md", text: file }).map(({ target }) => join("docs", target)),
  );
  expect([...new Set(listed)].toSorted()).toEqual(skipping);
});

test("docs/test-matrix.md has every scenario and its variants, and no other", () => {
  const [code, plays] = ["test/scenarios", "test/chaos"].map((folder) => filesBelow(root, folder).map(read).join("\n"));
  const scenarios = [...(code ?? "").matchAll(/: Scenario = \{\s*name: "([^"]+)"/g)].map(([, name = ""]) => name);
  const rows = rowsUnder(open("docs/test-matrix.md"), "Scenario", "What happens", "Variants");
  expect(rows.map(([name = ""]) => plain(name)).toSorted()).toEqual(scenarios.toSorted());
  const variants = rows.flatMap(([, , cell = ""]) => codeWords(cell));
  expect(
    variants.filter((variant) => !new RegExp(`^ {2}"?${variant}"?: (\\{|async \\()`, "m").test(`${code}\n${plays}`)),
  ).toEqual([]);
});

test("every link leads to a file, and every anchor to a heading", () => {
  const dead = [...ours, ...roomReadmes]
    .flatMap((document) => linksOf({ path: document.path, text: proseOf(document) }))
    .filter(({ path, target }) => {
      const [file = "", anchor] = target.split("#");
      const found = file === "" ? path : join(dirname(path), file);
      if (!existsSync(join(root, found))) return true;
      return anchor !== undefined && !anchorsOf(open(found)).includes(anchor);
    });
  expect(dead.map(({ path, target }) => `${path}: ${target}`)).toEqual([]);
});

describe("commands", () => {
  const documented = ours
    .flatMap(codeBlocksOf)
    .filter(({ language }) => language === "sh")
    .flatMap(({ path, text }) => text.split("\n").map((line) => ({ path, command: line.trim() })))
    .filter(({ command }) => command !== "");

  test("every command of a sh block is run by something", () => {
    expect(documented.filter(({ command }) => DOCUMENTED_COMMANDS[command] === undefined)).toEqual([]);
  });

  test("what runs them still does, and each of them is still documented", () => {
    const written = new Set(documented.map(({ command }) => command));
    for (const [command, { file, as }] of Object.entries(DOCUMENTED_COMMANDS)) {
      expect(written, command).toContain(command);
      expect(read(file), `${file} runs ${command}`).toContain(as);
    }
  });

  test("every command and subcommand that is named exists", () => {
    const code = filesBelow(root, "apps/cli/src/commands").map(read).join("\n");
    const named = ours
      .flatMap(({ text }) => [...text.matchAll(/(?:`|npx )holdfast ([a-z]+)(?: ([a-z]+))?/g)])
      .flatMap(([, command, sub]) => [command, sub])
      .filter((word) => word !== undefined);
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((word) => !code.includes(`"${word}"`))).toEqual([]);
  });
});

test("TypeScript of the documents type-checks", { timeout: 60_000 }, async () => {
  const snippets = ours.flatMap(codeBlocksOf).filter(({ language }) => /^tsx?$|^typescript$/.test(language));
  expect(snippets).not.toEqual([]);
  // Inside of the project, so that its packages are found; ignored by git, should this run be killed.
  const parent = join(root, ".holdfast/tmp");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "docs-"));
  try {
    for (const { path, line, text } of snippets)
      writeFileSync(join(folder, `${path.replaceAll(/\W/g, "-")}-line-${line}.ts`), `${text}\nexport {};\n`);
    const config = {
      extends: "../../../tsconfig.base.json",
      // A reader's snippet may leave a value unused.
      compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
      include: ["*.ts"],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const checked = await run(join(root, "node_modules/.bin/tsc"), ["-p", folder]).then(
      () => "",
      (error: unknown) => (error instanceof Error && "stdout" in error ? String(error.stdout) : String(error)),
    );
    expect(checked).toBe("");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

describe("the documents themselves", () => {
  test("are plain Markdown below 60 KB", () => {
    expect(docs.filter((path) => !path.endsWith(".md") || statSync(join(root, path)).size >= 60_000)).toEqual([]);
  });

  test("begin with a title", () => {
    expect(ours.filter(({ text }) => !text.startsWith("# ")).map(({ path }) => path)).toEqual([]);
  });

  test("name no path of a machine and no host but this one", () => {
    const absolute = /(?<![\w.)>}])\/(?:work|root|home|tmp|usr|opt|Users)\//g;
    const host = /\b[a-z]+:\/\/(?!127\.0\.0\.1)[^\s`)"']+|\b[a-z0-9-]+\.(?:com|org|io|net|dev)\b|\bnpmjs\b/g;
    const found = ours.flatMap(({ path, text }) =>
      [...text.matchAll(absolute), ...text.matchAll(host)].map(([match]) => `${path}: ${match}`),
    );
    expect(found).toEqual([]);
  });

  test("are all reachable from the README", () => {
    const seen = new Set(["README.md"]);
    for (const path of seen) {
      if (!path.endsWith(".md")) continue;
      for (const { target } of linksOf(open(path))) {
        const found = resolve("/", dirname(path), target.split("#")[0] ?? "").slice(1);
        if (existsSync(join(root, found)) && found !== "") seen.add(found);
      }
    }
    expect(docs.filter((path) => !seen.has(path))).toEqual([]);
  });

  test("the license is the whole text of Apache 2.0", () => {
    const license = read("LICENSE");
    expect(license).toContain("Apache License");
    expect(license).toContain("Version 2.0, January 2004");
    expect(license).toContain("END OF TERMS AND CONDITIONS");
    expect(license.length).toBeGreaterThan(11_000);
  });
});
