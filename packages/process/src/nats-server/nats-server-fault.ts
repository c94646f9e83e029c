import { RuntimeFault, type ErrorCode } from "@holdfast/protocol";

export type NatsServerFaultCode = Extract<ErrorCode, `HF-800${number}`>;

/** A nats-server could not be found, fetched or started. Every such fault stops the node: without a broker nothing can be accepted. */
export class NatsServerFault extends RuntimeFault {
  constructor(
    code: NatsServerFaultCode,
    message: string,
    options: {
      readonly facts?: Readonly<Record<string, string | number | boolean>>;
      readonly cause?: unknown;
    } = {},
  ) {
    super(code, message, options);
  }
}
