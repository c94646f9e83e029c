/** One event per call: dotted name, ids as fields, never content of messages. */
export interface Telemetry {
  info(event: string, fields: Readonly<Record<string, unknown>>): void;
  warn(event: string, fields: Readonly<Record<string, unknown>>): void;
  error(event: string, fields: Readonly<Record<string, unknown>>): void;
  debug(event: string, fields: Readonly<Record<string, unknown>>): void;
}

const nothing = (): void => undefined;
export const silentTelemetry: Telemetry = { info: nothing, warn: nothing, error: nothing, debug: nothing };
