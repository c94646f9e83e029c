import { spawnSync } from "node:child_process";
import { chown, chmod, mkdir, mkdtemp, open, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provideNatsServer } from "@holdfast/process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startProcess } from "../harness/child-process.ts";
import { HOLDFAST_BIN, runCommand, type CommandResult } from "../scenarios/holdfast-command.ts";
import { ResultLine } from "../scenarios/scenario.ts";

const KEY = "sk-planted-key-c41e";
const SECRET = "planted-content-88d1";
const HUGE_BYTES = 50 * 1024 * 1024;

/** Permissions mean nothing to root, so root runs the commands as nobody; where nobody cannot read this checkout, nothing is unreadable. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const canBeNobody =
  isRoot && spawnSync(process.execPath, [HOLDFAST_BIN, "--help"], { uid: NOBODY, gid: NOBODY }).status === 0;
const uid = canBeNobody ? { uid: NOBODY } : {};
const canForbid = !isRoot || canBeNobody;

let place: string;
let serverPath: string;
beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "holdfast-bad-input-"));
  const { PATH, HOLDFAST_NATS_SERVER } = process.env;
  const cacheDir = join(import.meta.dirname, "../../.holdfast");
  serverPath = (await provideNatsServer({ cacheDir, env: { PATH, HOLDFAST_NATS_SERVER } })).path;
  if (canBeNobody) await chown(place, NOBODY, NOBODY);
});
afterAll(async () => {
  await chmod(join(place, "documents/closed"), 0o700).catch(() => undefined);
  await rm(place, { recursive: true, force: true });
});

const home = (name: string): Record<string, string> => ({
  HOLDFAST_HOME: join(place, name),
  HOLDFAST_NATS_SERVER: serverPath,
});

/** A command that refuses says why with a code, and its line is there all the same. */
function expectRefusal({ code, json, stderr }: CommandResult, fault: string): void {
  expect(code).toBe(1);
  expect(stderr).toMatch(new RegExp(`^${fault}: `, "m"));
  const line = ResultLine.parse(json);
  expect(line.pass).toBe(false);
  expect(Object.values(line.rows)).not.toContain(true);
}

describe("a folder that cannot be surveyed is refused before anything is started", () => {
  test.each([
    ["does not exist", () => Promise.resolve()],
    ["is a file", (path: string) => writeFile(path, "text")],
    ["holds no documents", (path: string) => mkdir(path)],
  ])("one that %s", async (what, make) => {
    const path = join(place, what.replaceAll(" ", "-"));
    await make(path);
    const result = await runCommand(["demo", path, "--json"], { env: home("unused"), ...uid });
    expectRefusal(result, "HF-7004");
    expect(await readdir(place)).not.toContain("unused");
  });

  test.skipIf(!canForbid)("one that may not be read", async () => {
    const path = join(place, "forbidden");
    await mkdir(path);
    await writeFile(join(path, "a.md"), "# A");
    await chmod(path, 0o000);
    expectRefusal(await runCommand(["demo", path, "--json"], { env: home("unused"), ...uid }), "HF-7004");
    await chmod(path, 0o700);
  });
});

describe("an environment that does not fit", () => {
  test("the configured port is in use", async () => {
    const [server, port] = await listening();
    const folder = join(place, "one-document");
    await mkdir(folder);
    await writeFile(join(folder, "a.md"), "# A");
    const env = { ...home("port"), HOLDFAST_NATS_PORT: String(port) };
    expectRefusal(await runCommand(["demo", folder, "--json"], { env, ...uid }), "HF-8004");
    server.close();
  });

  test("a variable that is not known is named, with the one that was meant", async () => {
    const env = { ...home("unused"), HOLDFAST_LEASE_TTL: "5" };
    const { code, stderr, json } = await runCommand(["fleet", "--json"], { env });
    expect(code).toBe(1);
    expect(stderr).toContain(
      "HF-7002: HOLDFAST_LEASE_TTL is not a variable of Holdfast. Did you mean HOLDFAST_LEASE_TTL_MS?",
    );
    expect(json).toMatchObject({ error: { code: "HF-7002" } });
    const node = startProcess(join(import.meta.dirname, "../../apps/node/src/main.ts"), ["--tied"], env);
    await expect(node).rejects.toThrow(/HF-7002: HOLDFAST_LEASE_TTL /);
  });
});

describe("a survey of documents that cannot all be read", () => {
  const unreadable: Record<string, string> = {};
  let result: CommandResult;
  let report: string;
  beforeAll(async () => {
    const folder = join(place, "documents");
    await mkdir(folder);
    await writeFile(join(folder, "good.md"), `# Good\n\nOne sentence. ${SECRET}\n`);
    // Where two ways to count could differ: headings without a text or behind a tab, lines that end as on other systems.
    await writeFile(
      join(folder, "odd.md"),
      "\uFEFF#\r\n# \r\n\t## Tab\u2028 here\r\n\t```\r\n# code\r\n```\r\n— 7 x-y 水\r\n",
    );
    await writeFile(join(folder, "binary.md"), Buffer.from([0x23, 0x20, 0x41, 0x00, 0x01, 0x02]));
    unreadable["binary.md"] = "it is no text";
    await writeFile(join(folder, "latin.txt"), Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x0a]));
    unreadable["latin.txt"] = "it is not UTF-8";
    const huge = await open(join(folder, "huge.md"), "w");
    await huge.truncate(HUGE_BYTES);
    await huge.close();
    unreadable["huge.md"] = `it has ${HUGE_BYTES} bytes`;
    await symlink(join(folder, "nothing-there.md"), join(folder, "dangling.md"));
    unreadable["dangling.md"] = "there is none";
    await writeFile(join(place, "outside.md"), `# Outside\n\n${SECRET}\n`);
    await symlink(join(place, "outside.md"), join(folder, "leads-out.md"));
    unreadable["leads-out.md"] = "leads out of the folder";
    await symlink("good.md", join(folder, "stays-inside.md"));
    if (canForbid) {
      await writeFile(join(folder, "forbidden.md"), "# Forbidden", { mode: 0o000 });
      unreadable["forbidden.md"] = "reading it is not allowed";
      await mkdir(join(folder, "closed"));
      await writeFile(join(folder, "closed/inside.md"), "# Inside");
      await chmod(join(folder, "closed"), 0o000);
    }
    const env = { ...home("survey"), HOLDFAST_LOG_LEVEL: "debug", HOLDFAST_MODEL_API_KEY: KEY };
    result = await runCommand(["demo", folder, "--json"], { env, ...uid }, 100_000);
    report = await readFile(join(place, "survey/reports/report.md"), "utf8").catch(() => "");
  });

  test("it finishes, and its report says what the files say", () => {
    expect(result.stderr).toContain("I surveyed 3 documents");
    expect(ResultLine.parse(result.json)).toMatchObject({ pass: true, differences: [] });
    expect(result.code).toBe(0);
    expect(report).toContain("- File: `good.md`");
    expect(report).toContain("- File: `stays-inside.md`");
  });

  test.each(["binary.md", "latin.txt", "huge.md", "dangling.md", "leads-out.md", "forbidden.md"])(
    "%s stands under what could not be read, with the reason",
    (file) => {
      const reason = unreadable[file];
      if (reason === undefined) return; // Nothing is forbidden to this user.
      const [, failed = ""] = report.split("## Could not be read");
      expect(failed.split("\n").find((line) => line.startsWith(`- \`${file}\`:`))).toContain(reason);
    },
  );

  test("what is in a document, and the key of the model, is in no log", async () => {
    const run = join(place, "survey/run");
    const logs = (await readdir(run, { recursive: true })).filter((name) => /\.(log|out)$/.test(name));
    expect(logs).toEqual(expect.arrayContaining(["node-a.log", "node-b.log", "nats/nats-server.log"]));
    const texts = await Promise.all(logs.map((name) => readFile(join(run, name), "utf8")));
    for (const text of [result.stderr, result.stdout, ...texts])
      for (const secret of [KEY, SECRET]) expect(text).not.toContain(secret);
  });
});

async function listening(): Promise<readonly [Server, number]> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return [server, typeof address === "object" && address !== null ? address.port : 0];
}
