import type { ModelReply, ToolDefinition, TranscriptMessage } from "@holdfast/protocol";
import type { ModelFault } from "./model-problem.ts";

/** One step of a model: what it is to read and what it may call. */
export interface ModelRequest {
  /** Name of the model as its endpoint knows it. */
  readonly model: string;
  /** System text; empty for none. */
  readonly instructions: string;
  readonly messages: readonly TranscriptMessage[];
  /** In the order in which the model sees them: keep it stable, prompt caches depend on it. */
  readonly tools: readonly ToolDefinition[];
  readonly maxOutputTokens?: number;
}

/** A failed try that is followed by another one. */
export interface ModelRetry {
  readonly fault: ModelFault;
  /** Tries so far, from 1. */
  readonly tries: number;
  readonly delayMs: number;
}

/** Whoever pays for the tries of a call. */
export interface ModelTries {
  /** Before each try; what it throws ends the call untried. */
  begin(): Promise<void>;
  /** After each try that failed, before the next one. */
  failed(fault: ModelFault): Promise<void>;
}

export interface ModelCallContext {
  /** Ends the call, frees its connection. */
  readonly signal: AbortSignal;
  /** Sent along: an endpoint that honours it bills a repeated call once. */
  readonly idempotencyKey: string;
  /** Attempt of the job, from 1. */
  readonly attempt: number;
  /** Text as it arrives. After a retry it arrives again from the start. Must not throw. */
  onToken?(text: string): void;
  /** Before the wait for the next try: what `onToken` got so far is void. Must not throw. */
  onRetry?(retry: ModelRetry): void;
  readonly tries?: ModelTries;
}

/** What an agent needs of a model. Implementations never run a tool. */
export interface ModelPort {
  /**
   * A tool call whose arguments are no JSON has them as a string in `input`; the caller answers it with an error result.
   *
   * @throws ModelFault HF-5001 to HF-5006; HF-5203 when `signal` aborted
   */
  generate(request: ModelRequest, context: ModelCallContext): Promise<ModelReply>;
}
