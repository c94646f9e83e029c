import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat, unlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { NatsServerFault } from "./nats-server-fault.ts";
import { isPortFree } from "./port-availability.ts";
import { serverConfigText, type ServerConfigOptions } from "./server-config.ts";
import { readServerGreeting, type ServerGreeting } from "./server-greeting.ts";
import { isRecentEnough, MINIMUM_SERVER_VERSION } from "./server-version.ts";
import { spawnTied, type ChildExit, type TiedChild, type TieMethod } from "./tied-child.ts";

/** Everything a launch needs but the port. */
export interface LaunchOptions {
  readonly binary: string;
  readonly configFile: string;
  /** What the server prints before its log is open. */
  readonly outputFile: string;
  readonly startTimeoutMs: number;
  readonly tie: TieMethod | undefined;
  readonly config: Omit<ServerConfigOptions, "port" | "serverName">;
}

export interface LaunchedServer {
  readonly child: TiedChild;
  readonly port: number;
  readonly version: string;
}

const PortsFile = z.object({ nats: z.array(z.string()).min(1) });

const POLL_MS = 10;
const GREETING_TIMEOUT_MS = 1000;
const LOG_TAIL_CHARACTERS = 1500;

/**
 * Runs a server once and waits until it greets. On any failure the process is gone when this rejects.
 *
 * @param port  -1 lets the server choose
 * @throws NatsServerFault HF-8002, HF-8003, HF-8004; the reason of `signal`
 */
export async function launchServer(
  options: LaunchOptions,
  port: number,
  signal?: AbortSignal,
): Promise<LaunchedServer> {
  signal?.throwIfAborted();
  if (port !== -1 && !(await isPortFree(port))) throw portFault(port);
  // Random, so that the greeting proves that the server which answers is the one just started.
  const serverName = `holdfast-${randomBytes(6).toString("hex")}`;
  await preparePortsDir(options.config.portsDir);
  await writeSecretFile(options.configFile, serverConfigText({ ...options.config, serverName, port }));
  const logStart = await sizeOf(options.config.logFile);
  const child = await spawnServer(options);
  try {
    const { greeting, boundPort } = await untilServing(options, child, port, serverName, signal);
    if (!isRecentEnough(greeting.version)) throw tooOldFault(options.binary, greeting.version);
    return { child, port: boundPort, version: greeting.version };
  } catch (error) {
    child.kill("SIGKILL");
    await child.exited;
    if (!(error instanceof NotServing)) throw error;
    if (port !== -1 && !(await isPortFree(port))) throw portFault(port);
    throw await notServingFault(options, error.reason, logStart);
  }
}

class NotServing extends Error {
  readonly reason: string;
  constructor(reason: string) {
    super(reason);
    this.reason = reason;
  }
}

async function spawnServer(options: LaunchOptions): Promise<TiedChild> {
  const output = await open(options.outputFile, "w", 0o600);
  try {
    return await spawnTied(options.binary, ["-c", options.configFile], {
      outputFd: output.fd,
      method: options.tie,
    });
  } catch (cause) {
    throw new NatsServerFault(
      "HF-8003",
      `nats-server ${options.binary}: expected it to run, found that it cannot be started. Check that the file exists and fits this machine.`,
      { facts: { binary: options.binary }, cause },
    );
  } finally {
    await output.close();
  }
}

async function untilServing(
  options: LaunchOptions,
  child: TiedChild,
  wantedPort: number,
  serverName: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly greeting: ServerGreeting; readonly boundPort: number }> {
  const deadline = performance.now() + options.startTimeoutMs;
  let exit: ChildExit | undefined;
  void child.exited.then((found) => (exit = found));
  while (performance.now() < deadline) {
    signal?.throwIfAborted();
    if (exit !== undefined) throw new NotServing(`it ended with ${exit.signal ?? exit.code ?? "?"}`);
    const port = wantedPort === -1 ? await tryPortsFile(options.config.portsDir, child.pid) : wantedPort;
    if (port !== undefined) {
      const greeting = await readServerGreeting(port, GREETING_TIMEOUT_MS);
      if (greeting?.server_name === serverName && greeting.jetstream) {
        return { greeting, boundPort: port };
      }
    }
    await delay(POLL_MS);
  }
  throw new NotServing(`it did not serve JetStream within ${options.startTimeoutMs} ms`);
}

/** @returns undefined while the server has not written all of it */
async function tryPortsFile(portsDir: string, pid: number): Promise<number | undefined> {
  const name = (await readdir(portsDir)).find((entry) => entry.endsWith(`_${pid}.ports`));
  if (name === undefined) return undefined;
  try {
    const ports = PortsFile.parse(JSON.parse(await readFile(join(portsDir, name), "utf8")));
    return Number(new URL(ports.nats[0] ?? "").port);
  } catch {
    return undefined;
  }
}

/** A killed server leaves its file behind, and pids come round again. */
async function preparePortsDir(portsDir: string): Promise<void> {
  await mkdir(portsDir, { recursive: true, mode: 0o700 });
  for (const name of await readdir(portsDir)) await rm(join(portsDir, name), { force: true });
}

async function writeSecretFile(file: string, text: string): Promise<void> {
  const temporary = join(dirname(file), `.${basename(file)}.${randomBytes(6).toString("hex")}`);
  try {
    await writeFile(temporary, text, { flag: "wx", mode: 0o600 });
    await rename(temporary, file);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

const sizeOf = (file: string): Promise<number> =>
  stat(file).then(
    (facts) => facts.size,
    () => 0,
  );

function portFault(port: number): NatsServerFault {
  return new NatsServerFault(
    "HF-8004",
    `nats-server on 127.0.0.1:${port}: expected the port to be free, found another program listening there. Stop that program, choose another port, or give none to get a free one.`,
    { facts: { port } },
  );
}

function tooOldFault(binary: string, version: string): NatsServerFault {
  return new NatsServerFault(
    "HF-8002",
    `nats-server ${binary}: expected ${MINIMUM_SERVER_VERSION} or newer, found ${version}. Older ones can lose acknowledged data. Use a newer binary.`,
    { facts: { binary, version } },
  );
}

async function notServingFault(options: LaunchOptions, reason: string, logStart: number): Promise<NatsServerFault> {
  const log = await readFile(options.config.logFile, "utf8").catch(() => "");
  const output = await readFile(options.outputFile, "utf8").catch(() => "");
  // The log of earlier runs is left out, unless it was rotated meanwhile.
  const fresh = log.length > logStart ? log.slice(logStart) : log;
  let tail = `${output}${fresh}`.trim().slice(-LOG_TAIL_CHARACTERS);
  for (const password of Object.values(options.config.passwords)) {
    tail = tail.replaceAll(password, "***");
  }
  return new NatsServerFault(
    "HF-8003",
    `nats-server ${options.binary}: expected it to serve, found that ${reason}. Its last words: ${tail === "" ? "none" : tail}. Read ${options.config.logFile}, then mend what it names and start again.`,
    { facts: { binary: options.binary, reason, logFile: options.config.logFile } },
  );
}
