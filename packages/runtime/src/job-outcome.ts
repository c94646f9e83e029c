import { BLOB_THRESHOLD_BYTES, RuntimeFault, toPlainFault, type Envelope, type PlainEvent } from "@holdfast/protocol";
import type { ChosenBlobs } from "./blobs/choose-blobs.ts";
import { blobsOfEnvelope } from "./blobs/named-blobs.ts";
import type { NodeServices } from "./cell-host.ts";
import type { JobOutcome, SettledJob } from "./job-table.ts";

interface EncodedOutcome {
  readonly bytes: Uint8Array;
  readonly envelope: Envelope;
  /** What is too large for a message; stored before the message that names it. */
  readonly payload: ChosenBlobs;
}

/**
 * Sends a job's outcome to its actor's inbox until it is stored, lease or not: id `<job key>:settled`, accepted by the living-child check (I11).
 * Resolves without it only when the process stops.
 */
export async function publishOutcome(
  services: NodeServices,
  request: SettledJob,
  outcome: JobOutcome,
  signal: AbortSignal,
): Promise<void> {
  let encoded = encodeOutcome(services, request, outcome);
  for (let tries = 0; !signal.aborted; tries += 1) {
    const published = await publishOnce(services, request, encoded);
    if (published.kind === "accepted") return;
    if (published.kind === "refused" && !published.retryable) {
      const fault = new RuntimeFault(
        "HF-4004",
        `Outcome of job ${request.childId}: the stream refused it (${published.reason}). Return less, or a reference.`,
      );
      encoded = encodeOutcome(services, request, { ok: false, error: fault });
    }
    await new Promise<void>((resolve) =>
      services.clock.schedule(Math.min(2000, 50 * 2 ** Math.min(tries, 6)), resolve),
    );
  }
}

async function publishOnce(services: NodeServices, request: SettledJob, { bytes, envelope, payload }: EncodedOutcome) {
  try {
    await services.payloads.store(payload);
  } catch (error) {
    return { kind: "unknown", reason: toPlainFault(error, "HF-4008").message } as const;
  }
  const id = `${request.key}:settled:${request.attempt}`;
  return services.log.publish("inbox", request.actorKey, bytes, id, blobsOfEnvelope(envelope));
}

function encodeOutcome(services: NodeServices, request: SettledJob, outcome: JobOutcome): EncodedOutcome {
  const payload = services.payloads.choose();
  const encode = (type: string, result: Readonly<Record<string, unknown>>): EncodedOutcome => {
    const blobs = payload.outside(result, BLOB_THRESHOLD_BYTES);
    const event: PlainEvent = {
      type: `xstate.${type}.actor.${request.childId}`,
      ...(blobs === undefined ? result : {}),
      actorId: request.childId,
    };
    const envelope: Envelope = {
      v: 1,
      kind: "settled",
      id: `${request.key}:settled`,
      toGenesis: request.genesis,
      childId: request.childId,
      childKey: request.key,
      event,
      ...(blobs !== undefined && { blobs }),
      attempt: request.attempt,
      runner: services.incarnation,
    };
    return { bytes: services.codec.encodeEnvelope(envelope), envelope, payload };
  };
  const failed = (error: unknown): EncodedOutcome => encode("error", { error: toPlainError(error) });
  if (!outcome.ok) return failed(outcome.error);
  try {
    return encode("done", { output: outcome.output });
  } catch (error) {
    return failed(error); // an output that cannot be stored is the job's error, with the path in it
  }
}

/** Errors travel as errors of XState do: name and message, and our code and facts where there are any. */
function toPlainError(error: unknown): unknown {
  if (error instanceof RuntimeFault) return error.toJSON();
  if (error instanceof Error) return error;
  return toPlainFault(error, "HF-5103");
}
