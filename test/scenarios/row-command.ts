import { strict as assert } from "node:assert";
import { runCommand } from "./holdfast-command.ts";
import type { RowWorld } from "./row-scenario.ts";

/** A command of an operator, in a process of its own. @throws AssertionError with what it said unless it ended like that */
export async function typed({ cluster, fleet }: RowWorld, args: readonly string[], ends = 0): Promise<unknown> {
  const { url, user, password } = cluster.nats;
  const { code, json, stderr } = await runCommand([...args, "--json"], {
    env: {
      HOLDFAST_NATS_URL: url,
      HOLDFAST_NATS_USER: user,
      HOLDFAST_NATS_PASSWORD: password,
      HOLDFAST_NAMESPACE: fleet.namespace,
    },
  });
  assert.equal(code, ends, `${args.join(" ")}: ${code} ${stderr}`);
  return json;
}
