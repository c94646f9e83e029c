/**
 * The only words of an endpoint that we repeat. Anything else could be a piece of a prompt or of a key: endpoints put what
 * they were sent into their errors.
 */
const KNOWN_REASONS: ReadonlySet<unknown> = new Set([
  "api_error",
  "authentication_error",
  "billing_hard_limit_reached",
  "content_filter",
  "context_length_exceeded",
  "engine_overloaded",
  "insufficient_quota",
  "internal_error",
  "internal_server_error",
  "invalid_api_key",
  "invalid_model",
  "invalid_prompt",
  "invalid_request_error",
  "model_not_found",
  "model_overloaded",
  "not_found_error",
  "overloaded_error",
  "permission_error",
  "rate_limit_error",
  "rate_limit_exceeded",
  "request_too_large",
  "requests",
  "server_error",
  "service_unavailable",
  "slow_down",
  "timeout_error",
  "tokens",
  "tool_not_offered",
  "unsupported_parameter",
  "unsupported_value",
]);

/** The `type` or `code` of an endpoint's error when it is a word everybody knows. */
export const knownReason = (value: unknown): string | undefined =>
  typeof value === "string" && KNOWN_REASONS.has(value) ? value : undefined;

/** The code of a failed system call (`ECONNREFUSED`, `UND_ERR_SOCKET`), looked for along the causes. */
export function systemCodeOf(error: unknown): string | undefined {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    const code: unknown = "code" in at ? at.code : undefined;
    if (typeof code === "string" && /^[A-Z][A-Z0-9_]{2,40}$/.test(code)) return code;
  }
  return undefined;
}
