import { resolve } from "node:path";
import type { Config } from "@holdfast/process";
import { parsePrincipalToken } from "@holdfast/protocol";
import { createClient, type Client } from "holdfast";
import { readStackFile, tryStackFile, type StackFile } from "../stack/stack-file.ts";

/**
 * A client for the running stack, or for the server that the environment names.
 * @param user  `client` sends and reads, `operator` reads everything
 * @throws RuntimeFault HF-7003 when neither is there, HF-4xxx when NATS cannot be used
 */
export async function connect(config: Config, user: "client" | "operator"): Promise<Client> {
  const principal = parsePrincipalToken(config.HOLDFAST_PRINCIPAL);
  const timeoutMs = 5000;
  if (config.HOLDFAST_NATS_URL !== undefined) {
    return createClient({
      nats: {
        servers: [config.HOLDFAST_NATS_URL],
        timeoutMs,
        ...(config.HOLDFAST_NATS_USER !== undefined && { user: config.HOLDFAST_NATS_USER }),
        ...(config.HOLDFAST_NATS_PASSWORD !== undefined && { password: config.HOLDFAST_NATS_PASSWORD }),
      },
      namespace: config.HOLDFAST_NAMESPACE,
      principal,
    });
  }
  const stack = await readStackFile(resolve(config.HOLDFAST_HOME));
  return createClient({
    nats: { servers: [stack.natsUrl], timeoutMs, ...stack[user] },
    namespace: stack.namespace,
    principal,
  });
}

/** Facts about the local stack, when one runs. */
export const localStack = (config: Config): Promise<StackFile | undefined> =>
  tryStackFile(resolve(config.HOLDFAST_HOME));
