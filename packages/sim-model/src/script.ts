import type { ChatMessage } from "./chat-request.ts";

/** What a script sees. It has nothing else: no clock, no disk, no memory of earlier requests. */
export type ScriptInput = {
  readonly messages: readonly ChatMessage[];
  /** Names of the tools the request offers. */
  readonly tools: readonly string[];
  /** 1 for the first request of this model with this last user message, 2 for the next, … */
  readonly attempt: number;
};

/** A tool call a script wants; the server gives it an id. */
export type ScriptToolCall = {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
};

/** A way in which the endpoint misbehaves instead of answering. */
export type Fault =
  | {
      readonly kind: "status";
      readonly status: number;
      readonly type: string;
      readonly message: string;
      readonly retryAfterSeconds?: number;
    }
  /** Status 200, but the body is no JSON, or the stream holds an event that is none. */
  | { readonly kind: "garbage" }
  /** The connection breaks in the middle of the answer. */
  | { readonly kind: "cut" }
  /** The request is accepted and nothing is ever sent. */
  | { readonly kind: "never" }
  /** The first token is sent, then nothing more; the connection stays open. */
  | { readonly kind: "idle" };

/** What the model does with one request. */
export type ScriptStep = {
  readonly text?: string;
  readonly toolCalls?: readonly ScriptToolCall[];
  /** Milliseconds before the first byte of the answer. */
  readonly delayMs?: number;
  /** The answer is held until a release whose text the last user message contains. */
  readonly block?: boolean;
  /** Overrides `text` and `toolCalls`, except that a cut or idle answer begins with `text`. */
  readonly fault?: Fault;
};

/** A scripted model: a pure function of the request, chosen by the request's `model`. */
export type Script = (input: ScriptInput) => ScriptStep;
