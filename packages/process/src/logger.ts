import type { Telemetry } from "@holdfast/runtime/ports";
import { pino, type DestinationStream } from "pino";

export interface LoggerOptions {
  readonly level: "debug" | "info" | "warn" | "error" | "silent";
  readonly node?: string;
  /** Default: standard error, one JSON line per event. */
  readonly destination?: DestinationStream;
}

/** Fields that must never be printed, wherever they stand: a second wall behind the rule that nobody logs content. */
const REDACTED = [
  "password",
  "apiKey",
  "prompt",
  "text",
  "content",
  "input",
  "output",
  "messages",
  "authorization",
].flatMap((name) => [name, `*.${name}`]);

/** Telemetry over pino. One event per line, dotted name, ids as fields. */
export function createLogger(options: LoggerOptions): Telemetry {
  const logger = pino(
    {
      level: options.level,
      base: options.node === undefined ? {} : { node: options.node },
      redact: { paths: REDACTED, censor: "(hidden)" },
      messageKey: "event",
    },
    options.destination ?? pino.destination({ dest: 2, sync: true }),
  );
  return {
    debug: (event, fields) => logger.debug(fields, event),
    info: (event, fields) => logger.info(fields, event),
    warn: (event, fields) => logger.warn(fields, event),
    error: (event, fields) => logger.error(fields, event),
  };
}
