import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { listDebianMirrors, parseMirrors } from "./debian-package.ts";
import { provideNatsServer } from "./provide-nats-server.ts";
import { releaseLineOf } from "./server-version.ts";
import { withTemporaryFolder } from "./testing/servers-for-tests.ts";

describe("mirrors of this machine", () => {
  test("Debian's own come first, security and repetitions go", () => {
    const listing = [
      "https://vendor.example/apt/ Vendor",
      "http://mirror.example/debian/ Debian",
      "http://mirror.example/debian/ Debian",
      "http://mirror.example/debian-security/ Debian",
      "",
    ].join("\n");
    expect(parseMirrors(listing)).toEqual(["http://mirror.example/debian/", "https://vendor.example/apt/"]);
  });

  test("an origin that apt does not know yet does not hide a mirror", () => {
    expect(parseMirrors("http://mirror.example/debian/ $(ORIGIN)\n")).toEqual(["http://mirror.example/debian/"]);
  });
});

async function isReachable(mirror: string): Promise<boolean> {
  try {
    const response = await fetch(new URL("dists/trixie/Release", mirror), {
      method: "HEAD",
      signal: AbortSignal.timeout(3000),
    });
    return response.ok;
  } catch {
    return false;
  }
}

describe("the Debian package", () => {
  test("a mirror that does not answer is passed over, and nothing is left behind", async ({ skip }) => {
    skip((await listDebianMirrors()).length === 0, "apt-get is missing or names no mirror");
    await withTemporaryFolder(async (folder) => {
      const cacheDir = join(folder, "holdfast");
      const debian = { mirrors: ["http://127.0.0.1:9/debian/"] };
      await expect(provideNatsServer({ cacheDir, env: {}, archive: false, debian })).rejects.toMatchObject({
        code: "HF-8001",
        message: expect.stringMatching(/debian: sid: apt-get .*debian: trixie: apt-get /),
      });
      expect(await readdir(join(cacheDir, "tmp"))).toEqual([]);
    });
  });

  test("brings a recent server without root and without touching the system", async ({ skip }) => {
    const [mirror] = await listDebianMirrors();
    if (mirror === undefined) return skip("apt-get is missing or names no mirror");
    skip(!(await isReachable(mirror)), "the Debian mirror of this machine does not answer");
    await withTemporaryFolder(async (folder) => {
      const cacheDir = join(folder, "holdfast");
      const found = await provideNatsServer({ cacheDir, env: {}, archive: false, prefer: "oldest" });
      expect(found).toMatchObject({ source: "debian", path: join(cacheDir, "bin", `nats-server-${found.version}`) });
      expect(releaseLineOf(found.version)).toBe("2.10");
      expect(await readdir(join(cacheDir, "tmp"))).toEqual([]);
    });
  }, 60_000);
});
