import { MAX_FORKS } from "./conversation-fork.ts";
import type { Refusal } from "./judge-answer.ts";

/** Whether one more fork can be remembered. The machine's guard asks it, and so does whoever tells the sender. */
export function judgeFork(
  forks: readonly string[],
  fork: string,
): { readonly kind: "ok" } | { readonly kind: "duplicate" } | Refusal {
  if (forks.includes(fork)) return { kind: "duplicate" };
  if (forks.length < MAX_FORKS) return { kind: "ok" };
  const reason = `It has ${MAX_FORKS} forks. Fork one of them instead.`;
  return { kind: "refused", code: "HF-5202", why: "busy", reason };
}
