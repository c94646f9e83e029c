/** A service that writes down which public events it heard, and goes on behind the last one it wrote when it is started again. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createSubscriber } from "holdfast";
import { z } from "zod";

const Options = z.object({
  nats: z.object({
    servers: z.array(z.string()),
    user: z.string(),
    password: z.string(),
    inboxPrefix: z.string(),
  }),
  namespace: z.string(),
  subject: z.string(),
  file: z.string(),
});

const { nats, namespace, subject, file } = Options.parse(JSON.parse(process.argv[2] ?? ""));
const last = existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").at(-1) : undefined;
const from =
  last === undefined || last === "" ? "first" : z.object({ cursor: z.string() }).parse(JSON.parse(last)).cursor;

// A test that dies takes its services along.
process.stdin.once("end", () => process.exit(1)).resume();
const subscriber = await createSubscriber({ nats, namespace });
process.stdout.write(`${JSON.stringify({ from })}\n`);
for await (const { event, on, cursor } of subscriber.events({ subject, from }))
  appendFileSync(file, `${JSON.stringify({ id: event.id, type: event.type, actor: event.subject, on, cursor })}\n`);
