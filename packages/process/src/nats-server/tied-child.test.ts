import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { startManagedNats } from "./managed-nats.ts";
import { isPortFree } from "./port-availability.ts";
import { runCommand } from "./run-command.ts";
import { serversForTests, withTemporaryFolder } from "./testing/servers-for-tests.ts";
import { spawnTied, type TieMethod } from "./tied-child.ts";

const { servers, reason } = await serversForTests();
const binary = servers.at(-1)?.path ?? "";
const Started = z.object({ pid: z.int(), port: z.int() });
const PARENT = fileURLToPath(new URL("testing/doomed-parent.ts", import.meta.url));

const setpriv = await runCommand("setpriv", ["--pdeathsig", "KILL", "--", "true"], { timeoutMs: 5000 });
const methods: readonly TieMethod[] =
  setpriv.kind === "exited" && setpriv.code === 0 ? ["pdeathsig", "guard"] : ["guard"];

/** A process nobody has reaped yet still has its pid. */
async function isGone(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return true;
  }
  const facts = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return /\) Z /.test(facts);
}

describe.skipIf(servers.length === 0)(`T1: a server does not outlive its parent ${reason}`, () => {
  const deaths = methods.flatMap((tie) => (["SIGKILL", "SIGTERM"] as const).map((signal) => ({ tie, signal })));

  test.each(deaths)("$tie: the parent dies of $signal", ({ tie, signal }) =>
    withTemporaryFolder(async (folder) => {
      const parent = spawn(process.execPath, [PARENT, binary, folder, tie], { stdio: ["ignore", "pipe", "inherit"] });
      const lines = createInterface({ input: parent.stdout });
      const [line] = z.tuple([z.string()]).parse(await once(lines, "line"));
      const { pid, port } = Started.parse(JSON.parse(line));
      expect(await isGone(pid)).toBe(false);
      parent.kill(signal);
      await once(parent, "exit");
      await vi.waitUntil(async () => (await isGone(pid)) && isPortFree(port));
      // N3: the claim on the store went with the parent.
      const next = await startManagedNats({
        binary,
        storeDir: `${folder}/store`,
        configDir: `${folder}/next`,
        ns: "main",
        shards: 1,
      });
      await next.stop();
    }),
  );
});

describe.each(methods)("a child tied by %s", (method) => {
  const spawnShell = (script: string): ReturnType<typeof spawnTied> =>
    spawnTied("sh", ["-c", script], { outputFd: 2, method });

  test("tells how it ended", async () => {
    const [ended, killed] = await Promise.all([spawnShell("exit 7"), spawnShell("kill -TERM $$")]);
    expect(await ended.exited).toEqual({ code: 7, signal: undefined });
    expect(await killed.exited).toEqual({ code: undefined, signal: "SIGTERM" });
    ended.kill("SIGKILL");
  });

  test("T3: kill reaches the program itself, under its own pid", async () => {
    const child = await spawnTied("sleep", ["60"], { outputFd: 2, method });
    const name = await readFile(`/proc/${child.pid}/comm`, "utf8").catch(() => "sleep");
    expect(["sleep", "setpriv", "sh"]).toContain(name.trim());
    child.kill("SIGTERM");
    expect(await child.exited).toEqual({ code: undefined, signal: "SIGTERM" });
    expect(await isGone(child.pid)).toBe(true);
  });

  test("T2: it is in a session of its own, out of reach of the terminal", async () => {
    const child = await spawnTied("sleep", ["60"], { outputFd: 2, method });
    const session = await runCommand("ps", ["-o", "sid=", "-p", String(child.pid)], { timeoutMs: 5000 });
    const own = await runCommand("ps", ["-o", "sid=", "-p", String(process.pid)], { timeoutMs: 5000 });
    child.kill("SIGKILL");
    await child.exited;
    expect(session).toMatchObject({ kind: "exited", code: 0 });
    expect(session).not.toEqual(own);
  });
});

test("T1: when the guard alone is killed, the child goes too", async () => {
  const child = await spawnTied("sleep", ["60"], { outputFd: 2, method: "guard" });
  const parents = await runCommand("ps", ["-o", "ppid=", "-p", String(child.pid)], { timeoutMs: 5000 });
  const guard = Number(parents.kind === "exited" ? parents.stdout : 0);
  expect(guard).not.toBe(process.pid);
  process.kill(guard, "SIGKILL");
  await child.exited;
  await vi.waitUntil(() => isGone(child.pid));
});
