import { resolve } from "node:path";
import { inboxPrefixOf, type Config } from "@holdfast/process";
import { parsePrincipalToken } from "@holdfast/protocol";
import { createClient, type Client, type NatsOptions } from "holdfast";
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
        ...credentialsOf(config, user),
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

function credentialsOf(config: Config, as: "client" | "operator"): Partial<NatsOptions> {
  const { HOLDFAST_OPERATOR_USER: operator, HOLDFAST_OPERATOR_PASSWORD: word } = config;
  if (as === "operator" && operator !== undefined)
    return { user: operator, inboxPrefix: inboxPrefixOf(as), ...(word !== undefined && { password: word }) };
  const { HOLDFAST_NATS_USER: user, HOLDFAST_NATS_PASSWORD: password } = config;
  return { ...(user !== undefined && { user }), ...(password !== undefined && { password }) };
}
