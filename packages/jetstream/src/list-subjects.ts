import { RuntimeFault } from "@holdfast/protocol";
import { z } from "zod";
import { API_CODE } from "./api-codes.ts";
import { apiRequest } from "./api-request.ts";
import type { Link } from "./link.ts";
import { streamMissing } from "./stream-info.ts";

export interface ListSubjectsOptions {
  readonly stream: string;
  /** Wildcards allowed. */
  readonly filter: string;
  readonly signal?: AbortSignal | undefined;
}

const SubjectsAnswer = z.object({
  state: z.object({ subjects: z.record(z.string(), z.number()).nullish() }),
  total: z.number().default(0),
});

/**
 * Subjects that have messages in a stream, told by its leader. It tells at most 100,000 at a time, so they are asked for in pages.
 *
 * @throws RuntimeFault HF-4006 when the stream does not exist, HF-4003 when the server refused, HF-4008 when nobody answered
 */
export async function listSubjects(link: Link, options: ListSubjectsOptions): Promise<readonly string[]> {
  const { stream, filter, signal } = options;
  const found: string[] = [];
  for (;;) {
    const result = await apiRequest(link, {
      api: `STREAM.INFO.${stream}`,
      body: { subjects_filter: filter, offset: found.length },
      answer: SubjectsAnswer,
      signal,
    });
    if (result.kind !== "ok" && result.code === API_CODE.streamNotFound) throw streamMissing(stream);
    if (result.kind !== "ok") {
      throw new RuntimeFault(
        "HF-4003",
        `Stream ${stream}: its subjects were refused (${result.reason}). Look at the server's log.`,
        { facts: { stream, apiCode: result.code } },
      );
    }
    const page = Object.keys(result.value.state.subjects ?? {});
    found.push(...page);
    if (page.length === 0 || found.length >= result.value.total) return found;
  }
}
