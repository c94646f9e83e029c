import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import {
  inboxPrefixOf,
  provideNatsServer,
  startManagedNats,
  type Config,
  type ManagedNats,
  type ProvidedNatsServer,
} from "@holdfast/process";
import { RuntimeFault } from "@holdfast/protocol";
import { removeStackFile, tryStackFile, writeStackFile, type StackFile } from "./stack-file.ts";
import { startTiedProgram, type TiedProgram } from "./tied-program.ts";

export interface StartStackOptions {
  readonly config: Config;
  /** Variables of the environment that child programs need to run at all. */
  readonly systemEnv: { readonly PATH: string; readonly HOME: string };
  /** Names of the agent nodes to start. */
  readonly nodeNames: readonly string[];
  /** Folder the file tools may read. */
  readonly root: string;
  readonly say: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** NATS, model, ledger and agent nodes, all children of this process. */
export interface Stack {
  readonly file: StackFile;
  readonly home: string;
  readonly server: ProvidedNatsServer;
  readonly nats: ManagedNats;
  readonly nodes: readonly TiedProgram[];
  readonly outputFolder: string;
  readonly ledgerFile: string;
  stop(): Promise<void>;
}

const programFile = (specifier: string): string => fileURLToPath(import.meta.resolve(specifier));
const DURABILITY = {
  F: "class F: every acknowledged write is on disk",
  P: "class P: acknowledged writes survive the death of a process, not a power cut",
} as const;

/**
 * Starts everything the demo needs on loopback, from the home folder's store.
 * @throws RuntimeFault HF-8001 to HF-8005 for the server, HF-8003 when a program does not start, HF-7003 when a stack runs from this home already
 */
export async function startStack(options: StartStackOptions): Promise<Stack> {
  const { config, say } = options;
  const home = resolve(config.HOLDFAST_HOME);
  const running = await tryStackFile(home);
  if (running !== undefined) {
    throw new RuntimeFault(
      "HF-7003",
      `A stack already runs from ${home} (process ${running.pid}). Stop it, or set HOLDFAST_HOME to another folder.`,
    );
  }
  const runFolder = join(home, "run");
  const outputFolder = resolve(config.HOLDFAST_OUTPUT ?? join(home, "reports"));
  for (const folder of [home, runFolder, outputFolder]) await mkdir(folder, { recursive: true, mode: 0o700 });
  const started: { stop(): Promise<unknown> }[] = [];
  const stop = async (): Promise<void> => {
    await removeStackFile(home);
    for (const part of started.toReversed()) await part.stop();
  };
  try {
    const server = await provideNatsServer({
      cacheDir: home,
      env: { HOLDFAST_NATS_SERVER: config.HOLDFAST_NATS_SERVER, PATH: options.systemEnv.PATH },
      ...(options.signal !== undefined && { signal: options.signal }),
    });
    const nats = await startManagedNats({
      binary: server.path,
      storeDir: join(home, "store"),
      configDir: join(runFolder, "nats"),
      ns: config.HOLDFAST_NAMESPACE,
      principals: [config.HOLDFAST_PRINCIPAL],
      ...(config.HOLDFAST_NATS_PORT !== undefined && { port: config.HOLDFAST_NATS_PORT }),
    });
    started.push({ stop: () => nats.stop() });
    say(`nats-server ${nats.version} (${server.source}), ${nats.url}, ${DURABILITY[nats.durabilityClass]}`);
    const program = async (
      name: string,
      file: string,
      env: Readonly<Record<string, string>>,
      args: readonly string[] = [],
    ) => {
      const one = await startTiedProgram({
        name,
        file,
        args,
        env: { ...options.systemEnv, ...env },
        logFile: join(runFolder, `${name}.log`),
      });
      started.push({ stop: () => one.stop("SIGTERM", 5000) });
      return one;
    };
    const modelUrl = config.HOLDFAST_MODEL_BASE_URL ?? `${await urlOf(startModel(program))}/v1`;
    const ledgerFile = join(home, "ledger.jsonl");
    const ledgerUrl = await urlOf(
      program("ledger", programFile("@holdfast/ledger/main"), { LEDGER_FILE: ledgerFile, LEDGER_EXIT_WITH_STDIN: "1" }),
    );
    say(config.HOLDFAST_MODEL_BASE_URL === undefined ? `scripted model ${modelUrl}` : `model ${modelUrl}`);
    const nodes: TiedProgram[] = [];
    for (const name of options.nodeNames) {
      nodes.push(
        await program(
          name,
          programFile("@holdfast/node-app/main"),
          {
            ...forwarded(config),
            HOLDFAST_NATS_URL: nats.url,
            HOLDFAST_NATS_USER: nats.user,
            HOLDFAST_NATS_PASSWORD: nats.password,
            HOLDFAST_NODE: name,
            HOLDFAST_ROOT: resolve(options.root),
            HOLDFAST_OUTPUT: outputFolder,
            HOLDFAST_LEDGER_URL: ledgerUrl,
            HOLDFAST_MODEL_BASE_URL: modelUrl,
          },
          ["--tied"],
        ),
      );
      say(`agent node ${name}, process ${nodes.at(-1)?.pid ?? "?"}`);
    }
    const credentials = (user: "client" | "operator" | "subscriber") => ({
      ...nats.credentials(user),
      inboxPrefix: inboxPrefixOf(user),
    });
    const file: StackFile = {
      v: 1,
      pid: process.pid,
      namespace: config.HOLDFAST_NAMESPACE,
      natsUrl: nats.url,
      client: credentials("client"),
      operator: credentials("operator"),
      subscriber: credentials("subscriber"),
      durabilityClass: DURABILITY[nats.durabilityClass],
      modelUrl,
      ledgerUrl,
      root: resolve(options.root),
      nodes: nodes.map(({ name, pid }) => ({ name, pid })),
    };
    await writeStackFile(home, file);
    return { file, home, server, nats, nodes, outputFolder, ledgerFile, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

type StartProgram = (name: string, file: string, env: Readonly<Record<string, string>>) => Promise<TiedProgram>;

/** A little thinking time, so that a person can watch the tasks and a kill meets work in flight. */
const startModel = (program: StartProgram): Promise<TiedProgram> =>
  program("sim-model", programFile("@holdfast/sim-model/main"), {
    SIM_MODEL_EXIT_WITH_STDIN: "1",
    SIM_MODEL_THINK_MS: "700",
  });

async function urlOf(program: Promise<TiedProgram>): Promise<string> {
  const { name, hello } = await program;
  if (typeof hello["url"] === "string") return hello["url"];
  throw new RuntimeFault("HF-8003", `${name}: it started without saying where. Look at its log.`);
}

/** Settings of this process that its nodes share. */
function forwarded(config: Config): Readonly<Record<string, string>> {
  const { HOLDFAST_MODEL_API_KEY, HOLDFAST_MODEL, HOLDFAST_ROLES } = config;
  const roles = Object.entries(HOLDFAST_ROLES ?? {}).map(([role, members]) => `${role}=${members.join(",")}`);
  return {
    ...(roles.length > 0 && { HOLDFAST_ROLES: roles.join(";") }),
    HOLDFAST_NAMESPACE: config.HOLDFAST_NAMESPACE,
    HOLDFAST_LEASE_TTL_MS: String(config.HOLDFAST_LEASE_TTL_MS),
    HOLDFAST_SWEEP_MS: String(config.HOLDFAST_SWEEP_MS),
    HOLDFAST_DRAIN_GRACE_MS: String(config.HOLDFAST_DRAIN_GRACE_MS),
    HOLDFAST_KEEP_ENDED_HOURS: String(config.HOLDFAST_KEEP_ENDED_HOURS),
    HOLDFAST_KEEP_TOMBSTONES_HOURS: String(config.HOLDFAST_KEEP_TOMBSTONES_HOURS),
    HOLDFAST_MAX_ATTEMPTS: String(config.HOLDFAST_MAX_ATTEMPTS),
    HOLDFAST_LOG_LEVEL: config.HOLDFAST_LOG_LEVEL,
    HOLDFAST_MODEL_CONNECT_MS: String(config.HOLDFAST_MODEL_CONNECT_MS),
    HOLDFAST_MODEL_FIRST_TOKEN_MS: String(config.HOLDFAST_MODEL_FIRST_TOKEN_MS),
    HOLDFAST_MODEL_IDLE_MS: String(config.HOLDFAST_MODEL_IDLE_MS),
    ...(HOLDFAST_MODEL_API_KEY !== undefined && { HOLDFAST_MODEL_API_KEY }),
    ...(HOLDFAST_MODEL !== undefined && { HOLDFAST_MODEL }),
  };
}
