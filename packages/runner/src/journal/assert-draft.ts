import { RunnerFault } from "../runner-fault.ts";
import { EnvelopeDraft, MAX_ENVELOPE_BYTES } from "../wire/envelope.ts";

/** @throws RunnerFault HF-1001 when a draft does not fit its schema or is larger than MAX_ENVELOPE_BYTES */
export function assertDraft(draft: EnvelopeDraft): void {
  const parsed = EnvelopeDraft.safeParse(draft);
  const bytes = parsed.success ? Buffer.byteLength(JSON.stringify(draft)) : 0;
  if (parsed.success && bytes <= MAX_ENVELOPE_BYTES) return;
  const problem = parsed.success ? `${bytes} bytes, ${MAX_ENVELOPE_BYTES} allowed` : parsed.error.issues[0]?.message;
  throw new RunnerFault("HF-1001", `Envelope ${draft.op} of a runner: ${problem}. It was not numbered; correct it.`, {
    facts: { op: draft.op, bytes },
  });
}
