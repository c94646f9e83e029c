import { connect } from "node:net";
import { z } from "zod";

/** The part of a server's first line that start-up looks at. */
export const ServerGreeting = z.object({
  server_name: z.string(),
  version: z.string(),
  jetstream: z.boolean().default(false),
});
export type ServerGreeting = z.infer<typeof ServerGreeting>;

const MAX_GREETING_BYTES = 64 * 1024;

/**
 * Reads the line every NATS server sends before any login.
 *
 * @returns undefined when nothing listens there, it is no NATS server, or it says nothing for `timeoutMs`
 */
export function readServerGreeting(port: number, timeoutMs: number): Promise<ServerGreeting | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" });
    let text = "";
    const finish = (greeting: ServerGreeting | undefined): void => {
      socket.destroy();
      resolve(greeting);
    };
    socket.setTimeout(timeoutMs, () => finish(undefined));
    socket.once("error", () => finish(undefined));
    socket.once("close", () => finish(undefined));
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.includes("\r\n")) finish(parseGreeting(text));
      else if (text.length > MAX_GREETING_BYTES) finish(undefined);
    });
  });
}

/** @param text  starts with `INFO {…}` and a line break */
export function parseGreeting(text: string): ServerGreeting | undefined {
  const json = /^INFO (\{.*\}) *\r\n/.exec(text)?.[1];
  if (json === undefined) return undefined;
  try {
    const parsed = ServerGreeting.safeParse(JSON.parse(json));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
