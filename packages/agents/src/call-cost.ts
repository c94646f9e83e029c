import { costOf, type AgentDefinition, type Amount, type ModelReply } from "@holdfast/protocol";
import type { ModelRequest } from "./model-port.ts";

/** Tokens of an answer that a wallet pays for, unless the agent says otherwise: without a bound nothing could be held for it. */
export const PAID_OUTPUT_TOKENS = 8192;

/** Characters to a token, on average; an estimate, nothing depends on it. */
const CHARACTERS_PER_TOKEN = 4;
/** Around each message, tool and the whole, bytes: roles and marks that the endpoint adds. */
const FRAME_BYTES = 32;

type Prices = AgentDefinition["prices"];

/**
 * What a model call may cost, before it is made. `maximum`: no tokenizer makes more tokens than there are bytes, and the answer is bounded.
 * Without a price both lack `microUsd`.
 */
export function boundsOf(
  { model, instructions, messages, tools, maxOutputTokens = PAID_OUTPUT_TOKENS }: ModelRequest,
  prices: Prices,
): { readonly estimate: Amount; readonly maximum: Amount } {
  const parts = [instructions, ...messages.map((message) => JSON.stringify(message)), ...tools.map(toolText)];
  const bytes = parts.reduce((sum, part) => sum + Buffer.byteLength(part) + FRAME_BYTES, FRAME_BYTES);
  const estimated = { inputTokens: Math.ceil(bytes / CHARACTERS_PER_TOKEN), outputTokens: maxOutputTokens };
  return {
    estimate: amountOf(model, prices, estimated).amount,
    maximum: amountOf(model, prices, { inputTokens: bytes, outputTokens: maxOutputTokens }).amount,
  };
}

/** What a call cost, as it was measured; `nanoUsd` before it was rounded up. */
export function amountOf(
  model: string,
  prices: Prices,
  usage: ModelReply["usage"],
): { readonly amount: Amount; readonly nanoUsd?: number } {
  const inputTokens = Math.max(0, Math.ceil(usage.inputTokens));
  const outputTokens = Math.max(0, Math.ceil(usage.outputTokens));
  const tokens = inputTokens + outputTokens;
  const price = prices !== undefined && Object.hasOwn(prices, model) ? prices[model] : undefined;
  if (price === undefined) return { amount: { tokens } };
  const { microUsd, nanoUsd } = costOf(price, { inputTokens, outputTokens });
  return { amount: { microUsd, tokens }, nanoUsd };
}

const toolText = ({ name, description, inputSchema }: ModelRequest["tools"][number]): string =>
  name + description + JSON.stringify(inputSchema);
