#!/usr/bin/env node
// The ledger as a process: prints one JSON line {"url"} when it listens, nothing else.
import { z } from "zod";
import { LedgerFault } from "./ledger-fault.ts";
import { startLedger } from "./start-ledger.ts";

const Environment = z.object({
  LEDGER_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  LEDGER_FILE: z.string().min(1),
  LEDGER_PLANT: z.enum(["duplicate", "lost", "late"]).optional(),
  LEDGER_EXIT_WITH_STDIN: z.enum(["0", "1"]).default("0"),
});

function readEnvironment(): z.infer<typeof Environment> {
  const parsed = Environment.safeParse(process.env);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new LedgerFault(
    "bad-environment",
    `The environment variable ${issue?.path.join(".")} is missing or not valid: ${issue?.message}. Set it as packages/ledger/README.md says.`,
  );
}

const environment = readEnvironment();
const stop = new Promise<void>((resolve) => {
  process.once("SIGTERM", resolve);
  process.once("SIGINT", resolve);
  if (environment.LEDGER_EXIT_WITH_STDIN === "1") {
    // A parent that dies without a signal closes the pipe; no orphan is left behind.
    process.stdin.once("close", resolve).once("end", resolve).resume();
  }
});
const ledger = await startLedger({
  port: environment.LEDGER_PORT,
  file: environment.LEDGER_FILE,
  ...(environment.LEDGER_PLANT === undefined ? {} : { plant: environment.LEDGER_PLANT }),
});
process.stdout.write(`${JSON.stringify({ url: ledger.url })}\n`);
await stop;
await ledger.close();
process.stdin.destroy();
