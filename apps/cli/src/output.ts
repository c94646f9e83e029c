import { toPlainFault } from "@holdfast/protocol";

/** Where a command writes: results to standard output, everything else to standard error. */
export interface Output {
  readonly json: boolean;
  /** The result: one JSON line with `--json`, the text otherwise. */
  readonly result: (value: unknown, text: string) => void;
  /** Progress for people. */
  readonly say: (line: string) => void;
  /** Says what went wrong; with `--json` also as the result. */
  readonly fail: (error: unknown) => void;
}

export function createOutput(json: boolean): Output {
  return {
    json,
    result: (value, text) => void process.stdout.write(json ? `${JSON.stringify(value)}\n` : `${text}\n`),
    say: (line) => void process.stderr.write(`${line}\n`),
    fail: (error) => {
      const fault = toPlainFault(error, "HF-4001");
      process.stderr.write(`${fault.code}: ${fault.message}\n`);
      if (json) process.stdout.write(`${JSON.stringify({ error: fault })}\n`);
      process.exitCode = 1;
    },
  };
}

/** Plain text table: first row is the head. */
export function table(rows: readonly (readonly (string | number)[])[]): string {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, String(cell).length)));
  return rows
    .map((row) =>
      row
        .map((cell, i) => String(cell).padEnd(widths[i] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
