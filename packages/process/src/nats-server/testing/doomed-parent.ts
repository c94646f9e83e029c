// A process that starts a server, tells where, and then waits to be killed. Arguments: binary, folder, tie method.
import { join } from "node:path";
import { z } from "zod";
import { startManagedNats } from "../managed-nats.ts";

const [binary, folder, tie] = z
  .tuple([z.string(), z.string(), z.enum(["pdeathsig", "guard"])])
  .parse(process.argv.slice(2));
const server = await startManagedNats({
  binary,
  storeDir: join(folder, "store"),
  configDir: join(folder, "config"),
  ns: "main",
  tie,
});
process.stdout.write(`${JSON.stringify({ pid: server.pid, port: server.port })}\n`);
