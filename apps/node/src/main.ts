import { parseConfig } from "@holdfast/process";
import { toPlainFault } from "@holdfast/protocol";
import { runNode } from "./run-node.ts";

try {
  await runNode({ config: parseConfig(process.env), tied: process.argv.includes("--tied") });
} catch (error) {
  const { code, message } = toPlainFault(error, "HF-4001");
  process.stderr.write(`${code}: ${message}\n`);
  process.exit(1);
}
