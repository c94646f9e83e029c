import { connect, type NatsConnection } from "@nats-io/transport-node";
import { Kvm } from "@nats-io/kv";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { inspect } from "node:util";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { startManagedNats, type ManagedNats } from "./managed-nats.ts";
import { inboxPrefixOf } from "./permissions.ts";
import { isPortFree } from "./port-availability.ts";
import type { StartManagedNatsOptions } from "./start-options.ts";
import { writeFakeServer } from "./testing/fake-server.ts";
import { serversForTests, withTemporaryFolder } from "./testing/servers-for-tests.ts";

const { servers, reason } = await serversForTests();
const newest = servers.at(-1);
const binary = newest?.path ?? "";

const optionsIn = (folder: string, more: Partial<StartManagedNatsOptions> = {}): StartManagedNatsOptions => ({
  binary,
  storeDir: join(folder, "store"),
  configDir: join(folder, "config"),
  ns: "main",
  shards: 1,
  ...more,
});

const withServer = (
  more: Partial<StartManagedNatsOptions>,
  run: (server: ManagedNats, folder: string) => Promise<void>,
): Promise<void> =>
  withTemporaryFolder(async (folder) => {
    const server = await startManagedNats(optionsIn(folder, more));
    try {
      await run(server, folder);
    } finally {
      await server.kill();
    }
  });

async function withConnection<Result>(
  server: ManagedNats,
  run: (connection: NatsConnection) => Promise<Result>,
): Promise<Result> {
  const { user, password } = server.credentials("node");
  const connection = await connect({ servers: server.url, user, pass: password, inboxPrefix: inboxPrefixOf(user) });
  try {
    return await run(connection);
  } finally {
    await connection.close();
  }
}

const put = (server: ManagedNats, value: string): Promise<number> =>
  withConnection(server, async (connection) => (await new Kvm(connection).create("kept")).put("key", value));

const get = (server: ManagedNats): Promise<string | undefined> =>
  withConnection(server, async (connection) => (await (await new Kvm(connection).open("kept")).get("key"))?.string());

/** Waits until a fake server has written its pid. */
const pidIn = (file: string): Promise<number> =>
  vi.waitFor(
    async () =>
      z.coerce
        .number()
        .min(1)
        .parse(await readFile(file, "utf8")),
    { timeout: 5000, interval: 5 },
  );

describe.skipIf(servers.length === 0)(`a managed server ${reason}`, () => {
  test.each(servers)("$version serves on a free port and says what it is", ({ path, version }) =>
    withServer({ binary: path }, async (server, folder) => {
      expect(server.url).toBe(`nats://127.0.0.1:${server.port}`);
      expect(server).toMatchObject({
        version,
        binary: path,
        durabilityClass: "F",
        storeDir: join(folder, "store"),
        user: "node",
      });
      expect(server.password.length).toBeGreaterThanOrEqual(32);
      await put(server, "one");
      expect(await get(server)).toBe("one");
    }),
  );

  test("servers started at once get different ports", () =>
    withTemporaryFolder(async (folder) => {
      const started = await Promise.all(["a", "b", "c"].map((name) => startManagedNats(optionsIn(join(folder, name)))));
      await Promise.all(started.map((server) => server.stop()));
      expect(new Set(started.map((server) => server.port)).size).toBe(3);
    }));

  test.each(["stop", "kill"] as const)("N4: after %s() it comes back on its port with its data", (verb) =>
    withServer({}, async (server) => {
      const { port, pid, url } = server;
      await put(server, verb);
      await server[verb]();
      expect(await isPortFree(port)).toBe(true);
      await server.restart();
      expect(server).toMatchObject({ port, url });
      expect(server.pid).not.toBe(pid);
      expect(await get(server)).toBe(verb);
    }),
  );

  test("a store outlives its server: another one starts on it", () =>
    withTemporaryFolder(async (folder) => {
      const first = await startManagedNats(optionsIn(folder));
      await put(first, "kept");
      await first.stop();
      const second = await startManagedNats(optionsIn(folder));
      const value = await get(second);
      await second.stop();
      expect(value).toBe("kept");
      expect(second.password).not.toBe(first.password);
    }));

  test("exited tells that the server went by itself, and restart() mends it", () =>
    withServer({}, async (server) => {
      process.kill(server.pid, "SIGKILL");
      expect(await server.exited).toEqual({ code: undefined, signal: "SIGKILL" });
      await server.restart();
      await put(server, "again");
    }));

  test("stop() kills a server that does not end", () =>
    withServer({}, async (server) => {
      process.kill(server.pid, "SIGSTOP");
      expect(await server.stop({ timeoutMs: 50 })).toEqual({ code: undefined, signal: "SIGKILL" });
    }));

  test("a restart waits while a dialling client holds the port", () =>
    withServer({}, async (server) => {
      await server.kill();
      const holder = createServer().listen(server.port, "127.0.0.1");
      await vi.waitUntil(async () => !(await isPortFree(server.port)));
      const restarted = server.restart();
      setTimeout(() => holder.close(), 200);
      await restarted;
      expect(await put(server, "served")).toBe(1);
    }));

  test("N2: passwords are in the closed file alone", () =>
    withServer({}, async (server, folder) => {
      const file = join(folder, "config", "nats-server.conf");
      expect(((await stat(file)).mode & 0o777).toString(8)).toBe("600");
      expect(((await stat(join(folder, "config"))).mode & 0o777).toString(8)).toBe("700");
      await put(server, "x");
      const log = await readFile(server.logFile, "utf8");
      const commandLine = await readFile(`/proc/${server.pid}/cmdline`, "utf8").catch(() => "");
      const shown = inspect(server, { depth: 9, showHidden: true }) + JSON.stringify(server) + log + commandLine;
      for (const user of ["node", "client", "operator"] as const) {
        expect(await readFile(file, "utf8")).toContain(server.credentials(user).password);
        expect(shown).not.toContain(server.credentials(user).password);
      }
    }));

  test("N1: nobody gets in without a password", () =>
    withServer({}, async (server) => {
      await expect(connect({ servers: server.url, reconnect: false })).rejects.toMatchObject({
        name: "AuthorizationError",
      });
      await expect(
        connect({ servers: server.url, user: "node", pass: "guess", reconnect: false }),
      ).rejects.toMatchObject({ name: "AuthorizationError" });
    }));

  test.each([
    ["F", true],
    ["P", false],
  ] as const)("durability class %s: every write is synced: %s", (durabilityClass, synced) =>
    withServer({ durabilityClass }, async (server, folder) => {
      expect(server.durabilityClass).toBe(durabilityClass);
      const config = await readFile(join(folder, "config", "nats-server.conf"), "utf8");
      expect(/"sync_interval": "always"/.test(config)).toBe(synced);
    }),
  );
});

describe.skipIf(servers.length === 0)(`a server that cannot start ${reason}`, () => {
  test("a port in use is HF-8004 and names the port and the fix", () =>
    withTemporaryFolder(async (folder) => {
      const holder = createServer().listen(0, "127.0.0.1");
      const port = await vi.waitUntil(() => {
        const address = holder.address();
        return typeof address === "object" && address !== null && address.port;
      });
      const start = startManagedNats(optionsIn(folder, { port }));
      await expect(start).rejects.toMatchObject({
        code: "HF-8004",
        facts: { port },
        message: expect.stringContaining("choose another port"),
      });
      holder.close();
      const server = await startManagedNats(optionsIn(folder, { port }));
      await server.stop();
      expect(server.port).toBe(port);
    }));

  test("N3: a store that is being served is HF-8003, and the first server is unharmed", () =>
    withServer({}, async (server, folder) => {
      const second = startManagedNats(optionsIn(folder, { configDir: join(folder, "other") }));
      await expect(second).rejects.toMatchObject({ code: "HF-8003", facts: { storeDir: join(folder, "store") } });
      await put(server, "fine");
    }));

  test("a store it cannot use is HF-8003 with the server's own words", () =>
    withTemporaryFolder(async (folder) => {
      await mkdir(join(folder, "store"));
      await writeFile(join(folder, "store", "jetstream"), "a file where a folder belongs");
      await expect(startManagedNats(optionsIn(folder))).rejects.toMatchObject({
        code: "HF-8003",
        message: expect.stringMatching(/it ended with 1\. Its last words: .*not a directory/is),
      });
    }));

  test.each(["pdeathsig", "guard"] as const)("%s: a binary that ends at once or is missing is HF-8003", (tie) =>
    withTemporaryFolder(async (folder) => {
      const fake = await writeFakeServer(join(folder, "fake"), "2.12.0");
      for (const path of [fake, join(folder, "missing")]) {
        await expect(startManagedNats(optionsIn(folder, { binary: path, tie }))).rejects.toMatchObject({
          code: "HF-8003",
          facts: { binary: path },
        });
      }
    }),
  );

  test("an aborted start rejects with the reason and leaves no process", () =>
    withTemporaryFolder(async (folder) => {
      const pidFile = join(folder, "pid");
      const sleeper = await writeFakeServer(join(folder, "fake"), `"\necho $$ > '${pidFile}'\nexec sleep 60 #"`);
      const abort = new AbortController();
      const start = startManagedNats(optionsIn(folder, { binary: sleeper, signal: abort.signal }));
      start.catch(() => undefined);
      const pid = await pidIn(pidFile);
      const why = new Error("not needed");
      abort.abort(why);
      await expect(start).rejects.toBe(why);
      expect(() => process.kill(pid, 0)).toThrow("ESRCH");
    }));

  test("a start that takes too long is HF-8003 and leaves no process", () =>
    withTemporaryFolder(async (folder) => {
      const pidFile = join(folder, "pid");
      const sleeper = await writeFakeServer(join(folder, "fake"), `"\necho $$ > '${pidFile}'\nexec sleep 60 #"`);
      const start = startManagedNats(optionsIn(folder, { binary: sleeper, startTimeoutMs: 1000 }));
      await expect(start).rejects.toMatchObject({
        code: "HF-8003",
        facts: { reason: "it did not serve JetStream within 1000 ms" },
      });
      const pid = await pidIn(pidFile);
      expect(() => process.kill(pid, 0)).toThrow("ESRCH");
    }));
});
