import { execFile } from "node:child_process";
import { appendFileSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FileToolsOptions } from "./file-tools.ts";
import { READ_LIMITS, readTextFile } from "./read-file.ts";
import { fileFaultOf as faultOf, fileToolsOf, makeSandbox, type FileSandbox } from "./testing/file-sandbox.ts";

let sandbox: FileSandbox;
let root = "";
let output = "";
beforeEach(async () => {
  sandbox = await makeSandbox();
  ({ root, output } = sandbox);
});
afterEach(() => rm(sandbox.base, { recursive: true, force: true }));

const toolbox = (options: Partial<FileToolsOptions> = {}) => fileToolsOf(sandbox, options);

describe("list_files", () => {
  test("stops at its limits and says how much is missing", async () => {
    for (let index = 0; index < 30; index += 1) await writeFile(join(root, "sub", `f${index}.md`), "");
    const few = await toolbox({ limits: { maxFiles: 5 } })("list_files", {});
    expect(few).toMatchObject({ skipped: [{ path: "…", reason: "27 more files; list a folder below" }] });
    const short = await toolbox({ limits: { maxBytes: 200 } })("list_files", {});
    expect(Buffer.byteLength(JSON.stringify(short))).toBeLessThan(300);
    const walked = await toolbox({ limits: { maxEntries: 4 } })("list_files", {});
    expect(walked).toMatchObject({ skipped: [{ reason: "too many entries; list a folder below" }] });
  });

  test("HF-5105: a folder that is not there, or is a file, is refused", async () => {
    for (const path of ["nowhere", "a.md", "a.md/x"]) {
      expect((await faultOf(toolbox()("list_files", { path }))).code).toBe("HF-5105");
    }
  });
});

describe("read_file", () => {
  test("HF-5106: a file of 50 MB is refused without being read", async () => {
    await writeFile(join(root, "big.txt"), "");
    await truncate(join(root, "big.txt"), 50 * 1024 * 1024);
    const before = process.memoryUsage().arrayBuffers;
    const fault = await faultOf(toolbox()("read_file", { path: "big.txt" }));
    expect(fault.code).toBe("HF-5106");
    expect(fault.message).toContain("52428800 bytes");
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 1024 * 1024);
  });

  test("HF-5106: a file that grows over the limit while it is read is refused", async () => {
    const path = join(root, "log.txt");
    await writeFile(path, "x".repeat(100_000));
    // Looked at before every piece that is read: that is when the file grows.
    const growing: AbortSignal = Object.create(new AbortController().signal, {
      throwIfAborted: { value: () => appendFileSync(path, "y".repeat(65_536)) },
    });
    const limits = { ...READ_LIMITS, maxFileBytes: 200_000 };
    expect((await faultOf(readTextFile({ root }, "log.txt", { signal: growing, limits }))).code).toBe("HF-5106");
  });

  test("HF-5107: a file with NUL bytes or without UTF-8 is no text", async () => {
    await writeFile(join(root, "nul.bin"), Uint8Array.of(65, 0, 66));
    await writeFile(join(root, "latin.txt"), Uint8Array.of(0x66, 0xfc, 0x72));
    await writeFile(join(root, "half.txt"), Uint8Array.of(0xe2, 0x82));
    for (const path of ["nul.bin", "latin.txt", "half.txt"]) {
      expect((await faultOf(toolbox()("read_file", { path }))).code).toBe("HF-5107");
    }
  });

  test("HF-5105: a folder, a missing file, a dangling link and a circle of links cannot be read", async () => {
    await symlink("nowhere.txt", join(root, "dangling"));
    await symlink("circle", join(root, "circle"));
    for (const path of ["sub", ".", "missing.txt", "dangling", "circle", "a.md/x", "x".repeat(4000)]) {
      expect([path, (await faultOf(toolbox()("read_file", { path }))).code]).toEqual([path, "HF-5105"]);
    }
  });

  test("HF-5105: a pipe nobody writes to is refused instead of waited for", async () => {
    await promisify(execFile)("mkfifo", [join(root, "pipe")]);
    expect((await faultOf(toolbox()("read_file", { path: "pipe" }))).code).toBe("HF-5105");
  });

  // The superuser may read everything, so there is nothing to refuse.
  test.skipIf(process.getuid?.() === 0)("HF-5105: a file without permission cannot be read", async () => {
    await chmod(join(root, "a.md"), 0o000);
    expect((await faultOf(toolbox()("read_file", { path: "a.md" }))).code).toBe("HF-5105");
  });

  test("cuts a long text so that the result stays whole JSON, and says so", async () => {
    await writeFile(join(root, "long.md"), '"😀\n'.repeat(30_000));
    const result = await toolbox()("read_file", { path: "long.md" });
    expect(result).toMatchObject({
      path: "long.md",
      truncated: true,
      text: expect.stringMatching(/^("😀\n)+("?|"😀)$/u),
    });
    const bytes = Buffer.byteLength(JSON.stringify(result));
    expect(bytes).toBeLessThanOrEqual(60 * 1024);
    expect(bytes).toBeGreaterThan(60 * 1024 - 8);
    const wide = await toolbox({ limits: { maxResultBytes: 100_000 } })("read_file", { path: "long.md" });
    expect(Buffer.byteLength(JSON.stringify(wide))).toBeGreaterThan(100_000 - 8);
  });
});

describe("write_report", () => {
  const report = { path: "sub/report.md", content: "# Report\n" };

  test("writes below the output folder, which it makes, and leaves nothing half-written", async () => {
    expect(await toolbox()("write_report", report)).toEqual({ path: "sub/report.md", bytes: 9 });
    expect(await readFile(join(output, "sub", "report.md"), "utf8")).toBe("# Report\n");
    expect((await readdir(join(output, ".holdfast"))).filter((name) => name.endsWith(".half"))).toEqual([]);
    expect((await readdir(output)).toSorted()).toEqual([".holdfast", "sub"]);
  });

  test("of one idempotency key is written once: a late second attempt does not undo a later report", async () => {
    const run = toolbox();
    const first = await run("write_report", report, "call-1");
    const before = await stat(join(output, report.path));
    expect(await run("write_report", report, "call-1")).toEqual(first);
    expect((await stat(join(output, report.path))).ino).toBe(before.ino);
    await run("write_report", { ...report, content: "newer" }, "call-2");
    await run("write_report", report, "call-1");
    expect(await readFile(join(output, report.path), "utf8")).toBe("newer");
  });

  test("HF-3006: a key that was used for other content or another path is refused", async () => {
    const run = toolbox();
    await run("write_report", report, "call-1");
    for (const other of [{ content: "other" }, { path: "other.md" }]) {
      expect((await faultOf(run("write_report", { ...report, ...other }, "call-1"))).code).toBe("HF-3006");
    }
    expect(await readFile(join(output, report.path), "utf8")).toBe(report.content);
  });

  test("of many attempts at once leaves one whole file", async () => {
    const run = toolbox();
    const content = "line\n".repeat(20_000);
    await Promise.all(Array.from({ length: 8 }, () => run("write_report", { path: "r.md", content }, "call-1")));
    expect(await readFile(join(output, "r.md"), "utf8")).toBe(content);
  });

  test("HF-5103: in the place of a folder it is refused and leaves nothing half-written", async () => {
    await mkdir(join(output, "taken"), { recursive: true });
    expect((await faultOf(toolbox()("write_report", { path: "taken", content: "x" }))).code).toBe("HF-5103");
    expect(await readdir(join(output, ".holdfast"))).toEqual([]);
  });

  test("HF-5104: hidden names, the notes of earlier calls among them, are not written", async () => {
    for (const path of [".holdfast/x.json", "sub/.env", "."]) {
      expect((await faultOf(toolbox()("write_report", { path, content: "x" }))).code).toBe("HF-5104");
    }
  });
});
