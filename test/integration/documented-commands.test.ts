import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provideNatsServer } from "@holdfast/process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COMMANDS_TEST, DOCUMENTED_COMMANDS } from "../architecture/documented-commands.ts";
import { waitUntil } from "../harness/wait-until.ts";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "holdfast-commands-"));
let natsServer = "";

beforeAll(async () => {
  const env = { PATH: process.env["PATH"], HOLDFAST_NATS_SERVER: process.env["HOLDFAST_NATS_SERVER"] };
  natsServer = (await provideNatsServer({ cacheDir: join(root, ".holdfast"), env })).path;
});

interface Typed {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  readonly text: () => string;
  /** Ctrl-C: the whole foreground group is told, as a terminal does. */
  readonly interrupt: () => void;
}

const typed = new Set<ChildProcess>();

/** Types a command as a reader would, with a home of its own. What installs is left out: it has been done. */
function type(command: string, home: string): Typed {
  const child = spawn("sh", ["-c", command.replace(/^npm install && /, "")], {
    cwd: root,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: process.env["HOME"] ?? "",
      HOLDFAST_HOME: join(folder, home),
      HOLDFAST_NATS_SERVER: natsServer,
    },
  });
  typed.add(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  const ended = new Promise<number | null>((resolve) => {
    child.once("close", (code) => {
      typed.delete(child);
      resolve(code);
    });
  });
  return { child, ended, text: () => text, interrupt: () => process.kill(-(child.pid ?? 0), "SIGINT") };
}

async function output(command: string, home: string): Promise<string> {
  const { ended, text } = type(command, home);
  const code = await ended;
  expect(code, `${command}\n${text()}`).toBe(0);
  return text();
}

afterAll(async () => {
  for (const child of typed) if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
});

const ROWS = ["decidedEqualsApplied", "noDuplicates", "noneLost", "reportMatchesFiles"].map((row) => `✓ ${row}`);
const ASIDE: Readonly<Record<string, RegExp>> = {
  "npx holdfast doctor": /^nodes: \["node-a","node-b"\]$/m,
  "npx holdfast fleet": /^node-a +serving +d +1 +\d+/m,
  "npx holdfast stuck": /^nothing is stuck$/m,
  "npx holdfast conversation list": /^survey-\S+ +idle +surveyor/m,
  "npx holdfast task list": /^\S+ +completed +reader$/m,
  "npx holdfast budget set global --usd 50": /^global: applied, now at revision 1$/m,
  "npx holdfast budget set survey --usd 5 --tokens 2000000": /^survey: applied, now at revision 1$/m,
  "npx holdfast budget list": /^survey +root +open +\$5\.000000 +\$0\.000000/m,
  "npx holdfast budget show survey": /^ledger +0 reservations, agrees$/m,
  "npx holdfast wait list --all": /^\S+ +consumed \(answered\) +owner/m,
  'npx holdfast events "task.*.*.completed"':
    /^\S+ +holdfast\.task\.completed +.*taskId=\S+ .* e1-[0-9a-f]{8}-\d+-\d+$/m,
};

describe.concurrent("every command of the documents does what they say", () => {
  test.concurrent("npm install && npm start", { timeout: 180_000 }, async () => {
    const text = await output("npm install && npm start", "start");
    for (const row of ROWS) expect(text).toContain(row);
    const [, decided, applied] = /delegations decided (\d+), created \d+, settled \d+, applied (\d+)/.exec(text) ?? [];
    expect(Number(decided)).toBeGreaterThan(5);
    expect(applied).toBe(decided);
  });

  test.concurrent("npm start -- docs --kill", { timeout: 180_000 }, async () => {
    const text = await output("npm start -- docs --kill", "kill");
    for (const row of ROWS) expect(text).toContain(row);
    expect(text).toMatch(/^SIGKILL to node-[ab] \(process \d+\), which ran \d+ tasks and owned \d+ partitions$/m);
    expect(text).toMatch(/killed node-[ab] with SIGKILL, recovered in \d+ ms/);
  });

  test.concurrent(
    "npm start -- docs --answer title --stay, and the commands beside it",
    { timeout: 180_000 },
    async () => {
      const stack = type("npm start -- docs --answer title --stay", "stay");
      await waitUntil("the stack stays up", () => stack.text().includes("The stack stays up"), {
        timeoutMs: 120_000,
        dump: () => stack.text(),
      });
      for (const row of ROWS) expect(stack.text()).toContain(row);
      for (const [command, says] of Object.entries(ASIDE)) expect(await output(command, "stay"), command).toMatch(says);
      stack.interrupt();
      await stack.ended;
      const after = type("npx holdfast doctor", "stay");
      expect(await after.ended).toBe(1);
      expect(after.text()).toContain("HF-7003");
    },
  );
});

test("no command of the documents is left out here", () => {
  const wanted = Object.entries(DOCUMENTED_COMMANDS).flatMap(([command, { file }]) =>
    file === COMMANDS_TEST ? [command] : [],
  );
  const run = [
    "npm install && npm start",
    "npm start -- docs --kill",
    "npm start -- docs --answer title --stay",
    ...Object.keys(ASIDE),
  ];
  expect(wanted.toSorted()).toEqual(run.toSorted());
});
