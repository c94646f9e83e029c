import { toPlainFault } from "@holdfast/protocol";
import { runRunner } from "./run-runner.ts";
import { parseSettings } from "./settings.ts";

try {
  await runRunner(parseSettings(process.env));
  process.exit(0);
} catch (error) {
  const { code, message } = toPlainFault(error, "HF-9004");
  process.stderr.write(`${code}: ${message}\n`);
  process.exit(1);
}
