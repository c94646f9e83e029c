/** What the runtime does after a fault: try again, stop only the actor concerned, or stop the node. */
export type FaultConsequence = "retry" | "stop-actor" | "stop-node" | "refuse";

/** Every code Holdfast can report, with what it means and what it makes the runtime do. `docs/errors.md` is checked against it. */
export const ERROR_CATALOGUE = {
  "HF-1001": { title: "Input does not match the schema", next: "refuse" },
  "HF-1002": { title: "Address or id is not valid", next: "refuse" },
  "HF-1003": { title: "Machine cannot be made durable", next: "stop-node" },
  "HF-1004": { title: "Event type is reserved", next: "refuse" },
  "HF-2001": { title: "Value cannot be stored", next: "stop-actor" },
  "HF-2002": { title: "Stored bytes are damaged", next: "stop-actor" },
  "HF-2003": { title: "Stored bytes have a newer format", next: "stop-actor" },
  "HF-2004": { title: "Record is larger than the hard limit", next: "refuse" },
  "HF-2005": { title: "Record needs another machine version", next: "stop-actor" },
  "HF-3001": { title: "Actor does not exist", next: "refuse" },
  "HF-3002": { title: "Actor type is unknown", next: "refuse" },
  "HF-3003": { title: "Job has no implementation here", next: "stop-actor" },
  "HF-3004": { title: "Node identity is already in use", next: "stop-node" },
  "HF-3005": { title: "Actor is busy", next: "retry" },
  "HF-3006": { title: "Idempotency key was used with other content", next: "refuse" },
  "HF-3007": { title: "Blob is missing or damaged", next: "stop-actor" },
  "HF-3008": { title: "Node is shutting down", next: "retry" },
  "HF-3009": { title: "Actor has ended", next: "refuse" },
  "HF-3010": { title: "Outcome of a job is ambiguous", next: "refuse" },
  "HF-3011": { title: "Message is not applied in this order", next: "retry" },
  "HF-3012": { title: "Actor was started with other content", next: "refuse" },
  "HF-3013": { title: "History of a fork is gone", next: "refuse" },
  "HF-3020": { title: "Partition has too much waiting", next: "retry" },
  "HF-3021": { title: "Fleet is stopped", next: "retry" },
  "HF-3030": { title: "Node is not alive", next: "refuse" },
  "HF-3101": { title: "Machine threw while a message was applied", next: "refuse" },
  "HF-3102": { title: "Actor is in a crash loop", next: "stop-actor" },
  "HF-3103": { title: "Message was not delivered", next: "refuse" },
  "HF-3104": { title: "Actor was parked by an operator", next: "stop-actor" },
  "HF-3105": { title: "Command of an operator does not fit", next: "refuse" },
  "HF-3106": { title: "Actor is held", next: "stop-actor" },
  "HF-4001": { title: "NATS cannot be reached", next: "retry" },
  "HF-4002": { title: "NATS server is too old", next: "stop-node" },
  "HF-4003": { title: "Stream or bucket has another configuration", next: "stop-node" },
  "HF-4004": { title: "Publish was refused", next: "retry" },
  "HF-4005": { title: "Namespace manifest does not fit", next: "stop-node" },
  "HF-4006": { title: "Broker lost stored data", next: "stop-node" },
  "HF-4007": { title: "NATS refused the permission", next: "refuse" },
  "HF-4008": { title: "Answer did not arrive in time", next: "retry" },
  "HF-4009": { title: "Cursor is older than what is stored", next: "refuse" },
  "HF-5001": { title: "Model endpoint refused the credentials", next: "refuse" },
  "HF-5002": { title: "Model endpoint is over its rate limit", next: "retry" },
  "HF-5003": { title: "Model endpoint failed", next: "retry" },
  "HF-5004": { title: "Model endpoint answered something unreadable", next: "retry" },
  "HF-5005": { title: "Model endpoint did not answer in time", next: "retry" },
  "HF-5006": { title: "Model endpoint cut the stream", next: "retry" },
  "HF-5101": { title: "Tool is unknown", next: "refuse" },
  "HF-5102": { title: "Tool input does not match its schema", next: "refuse" },
  "HF-5103": { title: "Tool failed", next: "refuse" },
  "HF-5104": { title: "Path is outside the root", next: "refuse" },
  "HF-5105": { title: "File cannot be read", next: "refuse" },
  "HF-5106": { title: "File is too large", next: "refuse" },
  "HF-5107": { title: "File is not text", next: "refuse" },
  "HF-5201": { title: "Agent is unknown", next: "refuse" },
  "HF-5202": { title: "Limit was reached", next: "refuse" },
  "HF-5203": { title: "Work was cancelled", next: "refuse" },
  "HF-5204": { title: "Work timed out", next: "refuse" },
  "HF-5205": { title: "Task is unknown", next: "refuse" },
  "HF-5206": { title: "Agent definition cannot be used", next: "refuse" },
  "HF-5301": { title: "Budget is spent", next: "refuse" },
  "HF-5302": { title: "Budget is held by calls that run", next: "retry" },
  "HF-5303": { title: "Model call has no price", next: "refuse" },
  "HF-5304": { title: "Budget is fenced", next: "refuse" },
  "HF-5305": { title: "Wallet does not take this", next: "refuse" },
  "HF-5306": { title: "Wallet has to borrow first", next: "retry" },
  "HF-5307": { title: "Reservation may have ended already", next: "retry" },
  "HF-5308": { title: "Budget cannot be asked", next: "retry" },
  "HF-6001": { title: "Wait is closed", next: "refuse" },
  "HF-6002": { title: "Answer does not fit the question", next: "refuse" },
  "HF-6003": { title: "Somebody else is asked", next: "refuse" },
  "HF-6004": { title: "Wait has expired", next: "refuse" },
  "HF-6005": { title: "Answer is none of the options", next: "refuse" },
  "HF-6006": { title: "Answer is empty", next: "refuse" },
  "HF-6007": { title: "Question was declined", next: "refuse" },
  "HF-7001": { title: "Environment variable is not valid", next: "stop-node" },
  "HF-7002": { title: "Environment variable is unknown", next: "stop-node" },
  "HF-7003": { title: "No running stack found", next: "refuse" },
  "HF-7004": { title: "Folder cannot be surveyed", next: "refuse" },
  "HF-8001": { title: "No nats-server to be had", next: "stop-node" },
  "HF-8002": { title: "nats-server is too old", next: "stop-node" },
  "HF-8003": { title: "nats-server did not start", next: "stop-node" },
  "HF-8004": { title: "Port is in use", next: "stop-node" },
  "HF-8005": { title: "Archive does not match its checksum", next: "stop-node" },
  "HF-9001": { title: "Runner refused", next: "refuse" },
  "HF-9002": { title: "Order of a runner's envelopes is broken", next: "refuse" },
  "HF-9003": { title: "Fact of a runner has other content", next: "refuse" },
  "HF-9004": { title: "Journal of a runner cannot be written", next: "stop-node" },
} as const satisfies Record<string, { readonly title: string; readonly next: FaultConsequence }>;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERROR_CATALOGUE, code);

/**
 * Base of everything Holdfast throws. The message has three parts: which thing, what was expected and found, what to do.
 * `facts` are plain data without secrets; they survive serialisation.
 */
export class RuntimeFault extends Error {
  readonly code: ErrorCode;
  readonly next: FaultConsequence;
  readonly facts: Readonly<Record<string, string | number | boolean>>;

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      readonly facts?: Readonly<Record<string, string | number | boolean>>;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.next = ERROR_CATALOGUE[code].next;
    this.facts = options.facts ?? {};
  }

  /** Plain form for the wire: no stack, no cause. */
  toJSON(): PlainFault {
    return { name: this.name, code: this.code, message: this.message, facts: this.facts };
  }
}

export interface PlainFault {
  readonly name: string;
  readonly code: string;
  readonly message: string;
  readonly facts?: Readonly<Record<string, string | number | boolean>>;
}

/** Plain form of anything thrown, for logs, records and replies. Foreign errors keep name and message and get `fallback` as their code. */
export function toPlainFault(error: unknown, fallback: ErrorCode): PlainFault {
  if (error instanceof RuntimeFault) return error.toJSON();
  if (error instanceof Error) return { name: error.name, code: fallback, message: error.message };
  return {
    name: "Error",
    code: fallback,
    message: typeof error === "string" ? error : "Something that is not an Error was thrown",
  };
}
