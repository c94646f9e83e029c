import { AuditedActor, AuditedStep, orderSteps, type Evidence } from "./evidence.ts";
import { readFramePayload, readPlain } from "./plain-values.ts";
import { StoredStreams, type ReadEvidenceOptions } from "./stored-streams.ts";

/** Reads every record and every journal entry that is stored now. */
export const readEvidence = (options: ReadEvidenceOptions): Promise<Evidence> =>
  StoredStreams.with(options, async (streams) => {
    const ns = options.namespace;
    // By key: what is written while it is read is delivered again.
    const actors = new Map<string, AuditedActor>();
    const steps: AuditedStep[] = [];
    for (const stream of streams.names) {
      if (stream.startsWith(`KV_hf_${ns}_actors_`)) {
        await streams.read(stream, ({ subject, bytes }) => {
          if (bytes.length === 0 || /\._(claim|checkpoint)$/.test(subject)) return;
          actors.set(subject, AuditedActor.parse(readFramePayload(bytes)));
        });
      } else if (stream.startsWith(`HF_${ns.toUpperCase()}_JOURNAL_`)) {
        await streams.read(stream, ({ bytes }) => {
          const batch = readPlain(bytes);
          if (Array.isArray(batch)) for (const entry of batch) steps.push(AuditedStep.parse(entry));
        });
      }
    }
    return { actors: [...actors.values()], ...orderSteps(steps) };
  });
