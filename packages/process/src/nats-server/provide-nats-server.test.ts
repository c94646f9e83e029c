import { execFile } from "node:child_process";
import { appendFile, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { installIntoCache, listCachedServers } from "./binary-cache.ts";
import { provideNatsServer, provideNatsServers, type ProvideNatsServerOptions } from "./provide-nats-server.ts";
import { writeFakeServer } from "./testing/fake-server.ts";
import { withTemporaryFolder } from "./testing/servers-for-tests.ts";

/** No network: what is not on this machine cannot be had. */
const offline = { archive: false, debian: false } as const;

const inFolder = (folder: string, env: ProvideNatsServerOptions["env"]): ProvideNatsServerOptions => ({
  ...offline,
  cacheDir: join(folder, "holdfast"),
  env,
});

async function cacheFake(folder: string, version: string): Promise<string> {
  const binary = await writeFakeServer(join(folder, `fake-${version}`), version);
  return (await installIntoCache(join(folder, "holdfast"), binary, version)).path;
}

describe("the order of search", () => {
  test("HOLDFAST_NATS_SERVER comes before PATH and cache", () =>
    withTemporaryFolder(async (folder) => {
      const chosen = await writeFakeServer(join(folder, "mine"), "2.10.23");
      await writeFakeServer(join(folder, "path", "nats-server"), "2.11.0");
      await cacheFake(folder, "2.12.0");
      const env = { HOLDFAST_NATS_SERVER: chosen, PATH: join(folder, "path") };
      const expected = { path: chosen, version: "2.10.23", source: "env", notes: [] };
      expect(await provideNatsServer(inFolder(folder, env))).toEqual(expected);
      expect(await provideNatsServers(inFolder(folder, env))).toEqual([expected]);
    }));

  test("PATH comes before the cache, the cache before a fetch", () =>
    withTemporaryFolder(async (folder) => {
      const cached = await cacheFake(folder, "2.12.0");
      const fromCache = await provideNatsServer(inFolder(folder, { PATH: join(folder, "path") }));
      expect(fromCache).toEqual({ path: cached, version: "2.12.0", source: "cache", notes: [] });
      const onPath = await writeFakeServer(join(folder, "path", "nats-server"), "2.11.0");
      const fromPath = await provideNatsServer(inFolder(folder, { PATH: join(folder, "path") }));
      expect(fromPath).toEqual({ path: onPath, version: "2.11.0", source: "path", notes: [] });
    }));

  test("an older server on PATH is refused with the reason and the search goes on", () =>
    withTemporaryFolder(async (folder) => {
      const old = await writeFakeServer(join(folder, "usr", "nats-server"), "2.9.10");
      const newer = await writeFakeServer(join(folder, "local", "nats-server"), "2.10.23");
      const PATH = `${join(folder, "usr")}:${join(folder, "none")}:${join(folder, "local")}`;
      const found = await provideNatsServer(inFolder(folder, { PATH }));
      expect(found).toMatchObject({ path: newer, source: "path" });
      expect(found.notes).toEqual([
        `path: ${old} is 2.9.10, older than 2.10.23: refused, it can lose acknowledged data`,
      ]);
    }));

  test("prefer picks among cached copies; the contract pair is the old line and the newest", () =>
    withTemporaryFolder(async (folder) => {
      for (const version of ["2.12.4", "2.10.29", "2.15.1", "2.10.27"]) await cacheFake(folder, version);
      const options = inFolder(folder, {});
      expect((await provideNatsServer(options)).version).toBe("2.15.1");
      expect((await provideNatsServer({ ...options, prefer: "oldest" })).version).toBe("2.10.27");
      expect((await provideNatsServers(options)).map(({ version }) => version)).toEqual(["2.10.29", "2.15.1"]);
    }));

  test("nothing to be had is HF-8001 with what was tried and the ways out", () =>
    withTemporaryFolder(async (folder) => {
      const mirrorless = { ...inFolder(folder, {}), debian: { mirrors: [] } };
      await expect(provideNatsServer(mirrorless)).rejects.toMatchObject({
        name: "NatsServerFault",
        code: "HF-8001",
        next: "stop-node",
        message: expect.stringMatching(/archive: switched off; debian: .*HOLDFAST_NATS_SERVER/),
      });
      await expect(provideNatsServers(mirrorless)).rejects.toMatchObject({ code: "HF-8001" });
    }));
});

describe("a server somebody named is never passed over in silence", () => {
  test("too old is HF-8002", () =>
    withTemporaryFolder(async (folder) => {
      const old = await writeFakeServer(join(folder, "old"), "2.9.10");
      await cacheFake(folder, "2.12.0");
      await expect(provideNatsServer(inFolder(folder, { HOLDFAST_NATS_SERVER: old }))).rejects.toMatchObject({
        code: "HF-8002",
        facts: { path: old, found: "2.9.10" },
      });
    }));

  test("missing, or no nats-server, is HF-8001", () =>
    withTemporaryFolder(async (folder) => {
      await cacheFake(folder, "2.12.0");
      for (const path of [join(folder, "missing"), folder, "/bin/true"]) {
        await expect(provideNatsServer(inFolder(folder, { HOLDFAST_NATS_SERVER: path }))).rejects.toMatchObject({
          code: "HF-8001",
          facts: { path },
        });
      }
    }));

  test("an aborted search rejects with the reason given", () =>
    withTemporaryFolder(async (folder) => {
      const slow = await writeFakeServer(join(folder, "slow"), "2.12.0\nexec sleep 60");
      const reason = new Error("shutting down");
      const abort = new AbortController();
      const search = provideNatsServer({
        ...inFolder(folder, { HOLDFAST_NATS_SERVER: slow }),
        signal: abort.signal,
      });
      abort.abort(reason);
      await expect(search).rejects.toBe(reason);
    }));
});

describe("the cache", () => {
  test("B2: a copy whose bytes were changed is not used", () =>
    withTemporaryFolder(async (folder) => {
      const good = await cacheFake(folder, "2.10.27");
      const tampered = await cacheFake(folder, "2.12.0");
      await appendFile(tampered, "\n# changed\n");
      const found = await provideNatsServer(inFolder(folder, {}));
      expect(found.path).toBe(good);
      expect(found.notes).toEqual([`cache: ${tampered} does not match the sha256 stored beside it and is not used`]);
    }));

  test("B2: a changed copy is replaced by the next install", () =>
    withTemporaryFolder(async (folder) => {
      const path = await cacheFake(folder, "2.12.0");
      const original = await readFile(path, "utf8");
      await appendFile(path, "\n# changed\n");
      await cacheFake(folder, "2.12.0");
      expect(await readFile(path, "utf8")).toBe(original);
      expect((await provideNatsServer(inFolder(folder, {}))).notes).toEqual([]);
    }));

  test("B1 B3: while processes install at once, a reader sees only whole copies, and no scraps stay", () =>
    withTemporaryFolder(async (folder) => {
      const cacheDir = join(folder, "holdfast");
      const binary = await writeFakeServer(join(folder, "fake"), "2.12.0");
      await appendFile(binary, `exit\n${"x".repeat(4 * 1024 * 1024)}`);
      const module = new URL("binary-cache.ts", import.meta.url).href;
      const script = `
        const { installIntoCache } = await import(${JSON.stringify(module)});
        for (let round = 0; round < 8; round++) {
          await installIntoCache(${JSON.stringify(cacheDir)}, ${JSON.stringify(binary)}, "2.12." + round);
        }`;
      const installs = [1, 2, 3].map(() =>
        promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]),
      );
      const done = new AbortController();
      const installed = Promise.all(installs).finally(() => done.abort());
      while (!done.signal.aborted) expect((await listCachedServers(cacheDir)).notes).toEqual([]);
      await installed;
      const expected = Array.from({ length: 8 }, (_, round) => [
        `nats-server-2.12.${round}`,
        `nats-server-2.12.${round}.sha256`,
      ]).flat();
      expect((await readdir(join(cacheDir, "bin"))).toSorted()).toEqual(expected.toSorted());
    }));
});
