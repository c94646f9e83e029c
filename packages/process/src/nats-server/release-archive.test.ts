import { execFile } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, test } from "vitest";
import { sha256OfFile } from "./binary-cache.ts";
import { provideNatsServer, type ProvidedNatsServer } from "./provide-nats-server.ts";
import { releaseTargetOf } from "./release-archive.ts";
import { writeFakeServer } from "./testing/fake-server.ts";
import { withTemporaryFolder } from "./testing/servers-for-tests.ts";

const VERSION = "2.10.29";
const target = releaseTargetOf(process.platform, process.arch);
let http: Server | undefined;

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  http = server;
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `http://127.0.0.1:${address.port}/download`;
}

afterEach(async () => {
  const server = http;
  http = undefined;
  server?.closeAllConnections();
  await new Promise<void>((resolve) => {
    if (server === undefined) resolve();
    else server.close(() => resolve());
  });
});

/** An archive with the layout of the official ones around a fake server. */
async function packArchive(folder: string): Promise<{ readonly file: string; readonly sha256: string }> {
  const stem = `nats-server-v${VERSION}-${target}`;
  await writeFakeServer(join(folder, stem, "nats-server"), VERSION);
  await writeFakeServer(join(folder, stem, "README.md"), VERSION);
  const file = join(folder, "archive.tar.gz");
  await promisify(execFile)("tar", ["-czf", file, "-C", folder, stem]);
  return { file, sha256: await sha256OfFile(file) };
}

const provide = (
  folder: string,
  baseUrl: string,
  sha256: string,
  silenceTimeoutMs = 300,
): Promise<ProvidedNatsServer> =>
  provideNatsServer({
    cacheDir: join(folder, "holdfast"),
    env: {},
    debian: false,
    archive: { baseUrl, pin: { version: VERSION, sha256 }, silenceTimeoutMs },
  });

describe.skipIf(target === undefined)("the official archive (needs a machine an archive is pinned for)", () => {
  test("is downloaded from the release's address, checked, unpacked and cached", () =>
    withTemporaryFolder(async (folder) => {
      const { file, sha256 } = await packArchive(folder);
      const bytes = await readFile(file);
      const asked: (string | undefined)[] = [];
      const baseUrl = await serve((request, response) => {
        asked.push(request.url);
        response.end(bytes);
      });
      const found = await provide(folder, baseUrl, sha256);
      const path = join(folder, "holdfast", "bin", `nats-server-${VERSION}`);
      expect(found).toEqual({ path, version: VERSION, source: "archive", notes: [] });
      expect(asked).toEqual([`/download/v${VERSION}/nats-server-v${VERSION}-${target}.tar.gz`]);
      expect(await readdir(join(folder, "holdfast", "tmp"))).toEqual([]);
      expect(await provide(folder, "http://127.0.0.1:9", sha256)).toMatchObject({ path, source: "cache" });
    }));

  test("may come slowly, as long as it comes", () =>
    withTemporaryFolder(async (folder) => {
      const { file, sha256 } = await packArchive(folder);
      const bytes = await readFile(file);
      const size = Math.ceil(bytes.length / 5);
      const baseUrl = await serve((_, response) => {
        let sent = 0;
        const timer = setInterval(() => {
          response.write(bytes.subarray(sent, sent + size));
          sent += size;
          if (sent < bytes.length) return;
          clearInterval(timer);
          response.end();
        }, 300);
      });
      expect(await provide(folder, baseUrl, sha256, 1000)).toMatchObject({ source: "archive" });
    }));

  test("with another checksum is HF-8005 and nothing of it is kept", () =>
    withTemporaryFolder(async (folder) => {
      const { file, sha256 } = await packArchive(folder);
      const bytes = await readFile(file);
      const baseUrl = await serve((_, response) => response.end(bytes));
      const wanted = "0".repeat(64);
      await expect(provide(folder, baseUrl, wanted)).rejects.toMatchObject({
        code: "HF-8005",
        next: "stop-node",
        facts: { expected: wanted, found: sha256 },
      });
      expect(await readdir(join(folder, "holdfast"), { recursive: true })).toEqual(["tmp"]);
    }));

  test.each<readonly [string, RequestListener, RegExp]>([
    ["answers 404", (_, response) => response.writeHead(404).end(), /answered 404/],
    ["is a sign-in page", (_, response) => response.end("<html>"), /not an archive/],
    ["never answers", () => undefined, /no answer for 300 ms/],
    ["stops in the middle", (_, response) => response.writeHead(200).write("x"), /no answer for 300 ms/],
    ["breaks off", (request) => request.socket.destroy(), /fetch failed/],
  ])("an address that %s is passed over with the reason", (_, listener, reason) =>
    withTemporaryFolder(async (folder) => {
      const baseUrl = await serve(listener);
      await expect(provide(folder, baseUrl, "0".repeat(64))).rejects.toMatchObject({
        code: "HF-8001",
        message: expect.stringMatching(reason),
      });
    }),
  );
});

test.each([
  ["linux", "x64", "linux-amd64"],
  ["linux", "arm64", "linux-arm64"],
  ["linux", "ia32", undefined],
  ["darwin", "arm64", undefined],
])("%s %s uses the archive %s", (platform, arch, expected) => {
  expect(releaseTargetOf(platform, arch)).toBe(expected);
});
