import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { PURE_FOLDERS, ROOMS } from "./rooms.ts";

const root = join(import.meta.dirname, "../..");
const Manifest = z.object({
  name: z.string(),
  dependencies: z.record(z.string(), z.string()).default({}),
  exports: z.record(z.string(), z.string()).optional(),
});
const readJson = (path: string): unknown => JSON.parse(readFileSync(join(root, path), "utf8"));

/** Source files of a folder, tests excluded. */
function sources(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && !file.includes("node_modules"))
    .map((file) => join(folder, file));
}

const importsOf = (file: string): readonly string[] =>
  [
    ...readFileSync(join(root, file), "utf8").matchAll(
      /^\s*(?:import|export)[^"';]*?from\s+"([^"]+)"|import\("([^"]+)"\)/gm,
    ),
  ].map((match) => match[1] ?? match[2] ?? "");

describe.each(ROOMS)("room $name", ({ name, folder, tag, internal, vendors }) => {
  const manifest = Manifest.parse(readJson(`${folder}/package.json`));

  test("depends on exactly what the table allows", () => {
    expect(manifest.name).toBe(name);
    const allowed = new Set([...internal, ...vendors]);
    expect(Object.keys(manifest.dependencies).filter((dependency) => !allowed.has(dependency))).toEqual([]);
  });

  test("carries its tag, so that the boundaries tool guards it", () => {
    expect(readJson(`${folder}/turbo.json`)).toMatchObject({ tags: [tag] });
  });

  test("imports only what it declares, and other rooms only through their doors", () => {
    const allowed = new Set([...internal, ...vendors]);
    const strangers = sources(`${folder}/src`)
      .filter((file) => !file.includes("/testing/"))
      .flatMap((file) =>
        importsOf(file)
          .filter((specifier) => !specifier.startsWith("."))
          .filter((specifier) => !(specifier.startsWith("node:") && tag !== "pure" && tag !== "shell"))
          .filter((specifier) => {
            const base = specifier.startsWith("@")
              ? specifier.split("/").slice(0, 2).join("/")
              : (specifier.split("/")[0] ?? "");
            return !allowed.has(base);
          })
          .map((specifier) => `${file}: ${specifier}`),
      );
    expect(strangers).toEqual([]);
  });

  test("has a README whose first line says what it is for", () => {
    expect(readFileSync(join(root, folder, "README.md"), "utf8").split("\n")[0]).toMatch(/^# /);
  });
});

test("no vendor of NATS is known outside of the toolbox, but for the auditor, which must share no code", () => {
  const knowing = ROOMS.filter(({ name }) => name !== "@holdfast/jetstream" && name !== "@holdfast/audit").flatMap(
    ({ folder }) =>
      sources(`${folder}/src`).filter((file) => importsOf(file).some((specifier) => specifier.startsWith("@nats-io/"))),
  );
  expect(knowing).toEqual([]);
});

test("the runtime does not know machines, and machines and durable do not know each other", () => {
  const rooms = new Map(ROOMS.map((room) => [room.name, room]));
  expect(rooms.get("@holdfast/runtime")?.internal).not.toContain("@holdfast/machines");
  expect(rooms.get("@holdfast/machines")?.internal).not.toContain("@holdfast/durable");
  expect(rooms.get("@holdfast/durable")?.internal).not.toContain("@holdfast/machines");
});

test.each(PURE_FOLDERS)("%s compiles without the types of Node and the browser", (folder) => {
  expect(readJson(`${folder}/tsconfig.json`)).toMatchObject({ compilerOptions: { types: [], lib: ["es2024"] } });
});

test("the environment is read in one file", () => {
  const readers = [...ROOMS.map(({ folder }) => folder), "apps/node", "apps/cli", "apps/runner"]
    .flatMap((folder) => sources(`${folder}/src`))
    .filter((file) => !file.includes("/testing/") && /process\.env\b/.test(readFileSync(join(root, file), "utf8")));
  expect(readers.filter((file) => !/(^|\/)main\.ts$/.test(file))).toEqual([]);
});
