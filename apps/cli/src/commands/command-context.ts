import type { Config } from "@holdfast/process";
import type { Client } from "holdfast";
import { createOutput, type Output } from "../output.ts";
import { connect } from "./connect.ts";

export interface GlobalOptions {
  readonly json?: boolean;
}

export interface CommandContext {
  readonly config: () => Config;
}

/** Runs one command with a connection, prints its fault when it has one, and always closes. */
export async function withClient(
  context: CommandContext,
  options: GlobalOptions,
  user: "client" | "operator",
  work: (client: Client, output: Output) => Promise<void>,
): Promise<void> {
  const output = createOutput(options.json === true);
  try {
    await using client = await connect(context.config(), user);
    await work(client, output);
  } catch (error) {
    output.fail(error);
  }
}
