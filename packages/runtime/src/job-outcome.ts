import { RuntimeFault, toPlainFault, type PlainEvent } from "@holdfast/protocol";
import type { NodeServices } from "./cell-host.ts";
import type { JobOutcome, JobRequest } from "./job-table.ts";

/**
 * Sends a job's outcome to its actor's inbox until it is stored, lease or not: id `<job key>:settled`, accepted by the living-child check (I11).
 * Resolves without it only when the process stops.
 */
export async function publishOutcome(
  services: NodeServices,
  request: JobRequest,
  outcome: JobOutcome,
  signal: AbortSignal,
): Promise<void> {
  let bytes = encodeOutcome(services, request, outcome);
  for (let tries = 0; !signal.aborted; tries += 1) {
    const published = await services.log.publish(
      "inbox",
      request.actorKey,
      bytes,
      `${request.key}:settled:${request.attempt}`,
    );
    if (published.kind === "accepted") return;
    if (published.kind === "refused" && !published.retryable) {
      const fault = new RuntimeFault(
        "HF-4004",
        `Outcome of job ${request.childId}: the stream refused it (${published.reason}). Return less, or a reference.`,
      );
      bytes = encodeOutcome(services, request, { ok: false, error: fault });
    }
    await new Promise<void>((resolve) =>
      services.clock.schedule(Math.min(2000, 50 * 2 ** Math.min(tries, 6)), resolve),
    );
  }
}

function encodeOutcome(services: NodeServices, request: JobRequest, outcome: JobOutcome): Uint8Array {
  const encode = (event: PlainEvent): Uint8Array =>
    services.codec.encodeEnvelope({
      v: 1,
      kind: "settled",
      id: `${request.key}:settled`,
      toGenesis: request.genesis,
      childId: request.childId,
      childKey: request.key,
      event,
      attempt: request.attempt,
    });
  const failed = (error: unknown): PlainEvent => ({
    type: `xstate.error.actor.${request.childId}`,
    error: toPlainError(error),
    actorId: request.childId,
  });
  if (!outcome.ok) return encode(failed(outcome.error));
  try {
    return encode({ type: `xstate.done.actor.${request.childId}`, output: outcome.output, actorId: request.childId });
  } catch (error) {
    return encode(failed(error)); // an output that cannot be stored is the job's error, with the path in it
  }
}

/** Errors travel as errors of XState do: name and message, and our code and facts where there are any. */
function toPlainError(error: unknown): unknown {
  if (error instanceof RuntimeFault) return error.toJSON();
  if (error instanceof Error) return error;
  return toPlainFault(error, "HF-5103");
}
