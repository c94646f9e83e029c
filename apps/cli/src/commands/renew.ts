import { join, resolve } from "node:path";
import { provideNatsServer, startManagedNats, type Config } from "@holdfast/process";
import { RuntimeFault } from "@holdfast/protocol";
import type { Command } from "commander";
import { renewNamespace, type NatsOptions } from "holdfast";
import { createOutput } from "../output.ts";
import type { CommandContext, GlobalOptions } from "./command-context.ts";
import { localStack } from "./connect.ts";

export interface RenewContext extends CommandContext {
  readonly systemEnv: { readonly PATH: string };
}

/** `holdfast renew` */
export function renewCommand(program: Command, context: RenewContext): void {
  program
    .command("renew")
    .description("after the server lost data (HF-4006): new generations for its streams, with all nodes stopped")
    .option("--replicas <n>", "copies of each stream, as the nodes are told", "1")
    .option("--json")
    .action(async (options: GlobalOptions & { readonly replicas: string }) => {
      const output = createOutput(options.json === true);
      try {
        const config = context.config();
        const renewed = await withServer(config, context.systemEnv.PATH, (nats) =>
          renewNamespace({ nats, namespace: config.HOLDFAST_NAMESPACE, replicas: Number(options.replicas) }),
        );
        const text = renewed.length === 0 ? "every stream is the recorded one" : `renewed:\n${renewed.join("\n")}`;
        output.result({ renewed }, text);
      } catch (error) {
        output.fail(error);
      }
    });
}

/** The server of the environment, or the managed one, started for the time of the work: a running stack has living nodes. */
async function withServer<T>(config: Config, path: string, work: (nats: NatsOptions) => Promise<T>): Promise<T> {
  const { HOLDFAST_NATS_URL: url, HOLDFAST_NATS_USER: user, HOLDFAST_NATS_PASSWORD: password } = config;
  if (url !== undefined) {
    return work({
      servers: [url],
      inboxPrefix: "_INBOX_node",
      ...(user !== undefined && { user }),
      ...(password !== undefined && { password }),
    });
  }
  if ((await localStack(config)) !== undefined) {
    throw new RuntimeFault("HF-4005", `Namespace ${config.HOLDFAST_NAMESPACE}: a stack is running. Stop it first.`);
  }
  const home = resolve(config.HOLDFAST_HOME);
  const server = await provideNatsServer({
    cacheDir: home,
    env: { HOLDFAST_NATS_SERVER: config.HOLDFAST_NATS_SERVER, PATH: path },
  });
  const nats = await startManagedNats({
    binary: server.path,
    storeDir: join(home, "store"),
    configDir: join(home, "run", "nats"),
    ns: config.HOLDFAST_NAMESPACE,
  });
  try {
    return await work({
      servers: [nats.url],
      user: nats.user,
      password: nats.password,
      inboxPrefix: "_INBOX_node",
    });
  } finally {
    await nats.stop();
  }
}
