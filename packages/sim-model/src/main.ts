#!/usr/bin/env node
// The simulated model as a process: prints one JSON line {"url"} when it listens, nothing else.
import { z } from "zod";
import { SimModelFault } from "./sim-model-fault.ts";
import { startSimModel } from "./start-sim-model.ts";

const Milliseconds = z.coerce.number().int().min(0).default(0);

const Environment = z.object({
  SIM_MODEL_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  SIM_MODEL_API_KEY: z.string().min(1).optional(),
  SIM_MODEL_CHUNK_DELAY_MS: Milliseconds,
  SIM_MODEL_THINK_MS: Milliseconds,
  SIM_MODEL_EXIT_WITH_STDIN: z.enum(["0", "1"]).default("0"),
});

function readEnvironment(): z.infer<typeof Environment> {
  const parsed = Environment.safeParse(process.env);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new SimModelFault(
    "bad-environment",
    `The environment variable ${issue?.path.join(".")} is not valid: ${issue?.message}. Correct or unset it.`,
  );
}

const environment = readEnvironment();
const stop = new Promise<void>((resolve) => {
  process.once("SIGTERM", resolve);
  process.once("SIGINT", resolve);
  if (environment.SIM_MODEL_EXIT_WITH_STDIN === "1") {
    // A parent that dies without a signal closes the pipe; no orphan is left behind.
    process.stdin.once("close", resolve).once("end", resolve).resume();
  }
});
const model = await startSimModel({
  port: environment.SIM_MODEL_PORT,
  chunkDelayMs: environment.SIM_MODEL_CHUNK_DELAY_MS,
  thinkMs: environment.SIM_MODEL_THINK_MS,
  ...(environment.SIM_MODEL_API_KEY === undefined ? {} : { apiKey: environment.SIM_MODEL_API_KEY }),
});
process.stdout.write(`${JSON.stringify({ url: model.url })}\n`);
await stop;
await model.close();
process.stdin.destroy();
