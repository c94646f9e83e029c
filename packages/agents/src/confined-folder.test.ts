import { constants } from "node:fs";
import { mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfinedFolder, type ConfinedRoot } from "./confined-folder.ts";
import type { FileToolsOptions } from "./file-tools.ts";
import { fileFaultOf as faultOf, fileToolsOf, makeSandbox, SECRET, type FileSandbox } from "./testing/file-sandbox.ts";

let sandbox: FileSandbox;
let base = "";
let root = "";
let output = "";
beforeEach(async () => {
  sandbox = await makeSandbox();
  ({ base, root, output } = sandbox);
});
afterEach(() => rm(sandbox.base, { recursive: true, force: true }));

const toolbox = (options: Partial<FileToolsOptions> = {}) => fileToolsOf(sandbox, options);

async function replaceFileByLink(): Promise<void> {
  await rm(join(root, "a.md"));
  await symlink(join(base, "outside", "secret.txt"), join(root, "a.md"));
}

const CONFINEMENTS = ["descriptor", "recheck"] as const;
const ESCAPES = [
  "../outside/secret.txt",
  "sub/../../outside/secret.txt",
  "/etc/passwd",
  "C:\\x",
  "a\0.md",
  "..",
  "sub/../..",
];

describe.each(CONFINEMENTS)("a root kept closed by %s", (confinement) => {
  const closed = (more: Omit<ConfinedRoot, "root"> = {}) => toolbox({ confinement: { confinement, ...more } });

  test.each(ESCAPES)("HF-5104: %j leads out and is refused by every tool", async (path) => {
    const run = closed();
    for (const name of ["read_file", "list_files"]) expect((await faultOf(run(name, { path }))).code).toBe("HF-5104");
    expect((await faultOf(run("write_report", { path, content: "x" }))).code).toBe("HF-5104");
  });

  test("a path may go up and down as long as it stays inside", async () => {
    expect(await closed()("read_file", { path: "./sub/../a.md" })).toMatchObject({ text: "# A\n" });
  });

  test("HF-5104: a link to a file outside is refused; a link that stays inside is followed", async () => {
    await symlink(join(base, "outside", "secret.txt"), join(root, "out.txt"));
    await symlink("../a.md", join(root, "sub", "in.md"));
    expect((await faultOf(closed()("read_file", { path: "out.txt" }))).code).toBe("HF-5104");
    expect(await closed()("read_file", { path: "sub/in.md" })).toEqual({
      path: "sub/in.md",
      text: "# A\n",
      truncated: false,
    });
  });

  test("HF-5104: a link to a folder outside is refused, above and beside", async () => {
    await symlink(join(base, "outside"), join(root, "door"));
    await mkdir(join(base, "root-beside"));
    await symlink(join(base, "root-beside"), join(root, "beside"));
    const run = closed();
    for (const path of ["door", "beside"]) expect((await faultOf(run("list_files", { path }))).code).toBe("HF-5104");
    expect((await faultOf(run("read_file", { path: "door/secret.txt" }))).code).toBe("HF-5104");
  });

  test("HF-5104: a file that becomes a link after the check is not read", async () => {
    expect((await faultOf(closed({ afterCheck: replaceFileByLink })("read_file", { path: "a.md" }))).code).toBe(
      "HF-5104",
    );
  });

  test("HF-5104: a folder that becomes a link after the check is not entered", async () => {
    await writeFile(join(root, "sub", "secret.txt"), "harmless");
    const afterCheck = async (): Promise<void> => {
      await rename(join(root, "sub"), join(root, "moved"));
      await symlink(join(base, "outside"), join(root, "sub"));
    };
    expect((await faultOf(closed({ afterCheck })("read_file", { path: "sub/secret.txt" }))).code).toBe("HF-5104");
    await rm(join(root, "sub"));
    await rename(join(root, "moved"), join(root, "sub"));
    expect((await faultOf(closed({ afterCheck })("list_files", { path: "sub" }))).code).toBe("HF-5104");
  });

  test("HF-5104: a folder that becomes a link while it is open leads nowhere new", async () => {
    const folder = await ConfinedFolder.open({ root, confinement }, ["sub"], { shown: "sub/secret.txt" });
    try {
      await rename(join(root, "sub"), join(root, "moved"));
      await symlink(join(base, "outside"), join(root, "sub"));
      const opening = folder.openEntry("secret.txt", constants.O_RDONLY);
      // With a descriptor it is the folder that was opened, in which there is no such file.
      await expect(opening).rejects.toMatchObject({ code: confinement === "descriptor" ? "ENOENT" : "HF-5104" });
    } finally {
      await folder.close();
    }
  });

  test("the output folder is written through no link", async () => {
    await mkdir(output);
    await symlink(join(base, "outside"), join(output, "door"));
    const fault = await faultOf(closed()("write_report", { path: "door/secret.txt", content: "x" }));
    expect(fault.code).toBe("HF-5104");
    await symlink(join(base, "outside", "secret.txt"), join(output, "report.md"));
    await closed()("write_report", { path: "report.md", content: "report" });
    expect(await readFile(join(base, "outside", "secret.txt"), "utf8")).toBe(SECRET);
    expect(await readFile(join(output, "report.md"), "utf8")).toBe("report");
  });

  test("a listing is sorted, recursive, and names what it leaves out", async () => {
    for (const folder of [".git", "node_modules", "sub/deep"]) await mkdir(join(root, folder));
    for (const file of [".env", ".git/config", "node_modules/x.js", "sub/deep/c.md", "Z.md"]) {
      await writeFile(join(root, file), "xyz");
    }
    await symlink(join(base, "outside"), join(root, "door"));
    expect(await closed()("list_files", {})).toEqual({
      files: [
        { path: "Z.md", bytes: 3 },
        { path: "a.md", bytes: 4 },
        { path: "sub/b.txt", bytes: 1 },
        { path: "sub/deep/c.md", bytes: 3 },
      ],
      skipped: [
        { path: ".env", reason: "hidden" },
        { path: ".git", reason: "hidden" },
        { path: "door", reason: "link" },
        { path: "node_modules", reason: "node_modules" },
      ],
    });
    expect(await closed()("list_files", { path: "sub/deep" })).toMatchObject({
      files: [{ path: "sub/deep/c.md", bytes: 3 }],
    });
  });
});
