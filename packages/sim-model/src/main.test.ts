import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";

const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
});

function start(environment: Record<string, string>) {
  const main = new URL("./main.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [main], {
    env: { ...process.env, ...environment },
    stdio: ["pipe", "pipe", "pipe"],
  });
  running.add(child);
  return child;
}

async function urlOf(child: { readonly stdout: Readable }): Promise<string> {
  const [line] = z.tuple([z.string()]).parse(await once(createInterface(child.stdout), "line"));
  return z.object({ url: z.url() }).parse(JSON.parse(line)).url;
}

test("prints its URL, serves, and exits with 0 on SIGTERM although a request is held", async () => {
  const child = start({ SIM_MODEL_PORT: "0" });
  const url = await urlOf(child);
  const held = fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "blocker", messages: [{ role: "user", content: "child A" }] }),
  });
  expect((await fetch(`${url}/control/wait?state=blocked`)).status).toBe(200);
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  await expect(held).rejects.toThrow("fetch failed");
  expect(await exit).toEqual([0, null]);
});

test("exits when its standard input closes, if told so", async () => {
  const child = start({ SIM_MODEL_EXIT_WITH_STDIN: "1" });
  await urlOf(child);
  const exit = once(child, "exit");
  child.stdin.end();
  expect(await exit).toEqual([0, null]);
});

test("a client that is killed is seen as aborted", async () => {
  const child = start({});
  const url = await urlOf(child);
  const script = `await fetch(process.argv[1] + "/v1/chat/completions", { method: "POST", body: process.argv[2] })`;
  const body = JSON.stringify({ model: "blocker", messages: [{ role: "user", content: "child A" }] });
  const client = spawn(process.execPath, ["--input-type=module", "-e", script, url, body], { stdio: "ignore" });
  running.add(client);
  expect((await fetch(`${url}/control/wait?state=blocked`)).status).toBe(200);
  client.kill("SIGKILL");
  expect((await fetch(`${url}/control/wait?state=aborted`)).status).toBe(200);
});

test("refuses a bad environment variable by name", async () => {
  const child = start({ SIM_MODEL_PORT: "many" });
  let stderr = "";
  child.stderr.on("data", (data: Buffer) => {
    stderr += data.toString();
  });
  const [code] = await once(child, "close");
  expect(code).toBe(1);
  expect(stderr).toContain("The environment variable SIM_MODEL_PORT is not valid");
});
