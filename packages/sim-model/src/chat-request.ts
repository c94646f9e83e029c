import { z } from "zod";

// The real API refuses tool names outside this alphabet, so a caller must meet it here too.
const ToolName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);

const Content = z
  .union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))])
  .transform((content) => (typeof content === "string" ? content : content.map((part) => part.text ?? "").join("")));

const ToolCall = z
  .object({
    id: z.string().min(1),
    type: z.literal("function"),
    function: z.object({ name: ToolName, arguments: z.string() }),
  })
  .transform((call) => ({ id: call.id, name: call.function.name, arguments: call.function.arguments }));

const Message = z.discriminatedUnion("role", [
  z
    .object({ role: z.enum(["system", "developer"]), content: Content })
    .transform(({ content }) => ({ role: "system" as const, text: content })),
  z.object({ role: z.literal("user"), content: Content }).transform(({ role, content }) => ({ role, text: content })),
  z
    .object({
      role: z.literal("assistant"),
      content: Content.nullish(),
      tool_calls: z.array(ToolCall).min(1).nullish(),
    })
    .transform((message) => ({
      role: message.role,
      text: message.content ?? "",
      toolCalls: message.tool_calls ?? [],
    })),
  z.object({ role: z.literal("tool"), content: Content, tool_call_id: z.string().min(1) }).transform((message) => ({
    role: message.role,
    callId: message.tool_call_id,
    text: message.content,
  })),
]);

const Body = z
  .object({
    model: z.string().min(1),
    messages: z.array(Message).min(1),
    stream: z.boolean().nullish(),
    stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
    tools: z.array(z.object({ type: z.literal("function"), function: z.object({ name: ToolName }) })).nullish(),
    tool_choice: z.unknown().optional(),
  })
  .transform((body) => ({
    model: body.model,
    messages: body.messages,
    stream: body.stream ?? false,
    includeUsage: body.stream_options?.include_usage ?? false,
    tools: body.tool_choice === "none" ? [] : (body.tools ?? []).map((tool) => tool.function.name),
  }));

/** One message of a chat, with its content flattened to text. */
export type ChatMessage = Readonly<z.infer<typeof Message>>;

/** A parsed request: `tools` holds the names on offer, empty when the caller forbids tools. */
export type ChatRequest = Readonly<z.infer<typeof Body>>;

/** The result of {@link tryChatRequest}; `param` names the offending field. */
export type ChatRequestResult =
  | { readonly kind: "parsed"; readonly request: ChatRequest }
  | { readonly kind: "invalid"; readonly message: string; readonly param: string };

/**
 * Parses the body of a chat completion request.
 *
 * As strict as the real API about tool calls: every call must be answered, once, by the tool
 * messages that directly follow it. A caller that loses or doubles a result is told so here.
 */
export function tryChatRequest(body: unknown): ChatRequestResult {
  const parsed = Body.safeParse(body);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const param = issue?.path.join(".") ?? "";
    return { kind: "invalid", message: `${param || "body"}: ${issue?.message}`, param };
  }
  const unpaired = findUnpairedMessage(parsed.data.messages);
  return unpaired ?? { kind: "parsed", request: parsed.data };
}

function findUnpairedMessage(
  messages: readonly ChatMessage[],
): Extract<ChatRequestResult, { kind: "invalid" }> | undefined {
  let open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const invalid = (text: string) => ({ kind: "invalid", message: text, param: `messages.${index}` }) as const;
    if (message.role === "tool") {
      if (!open.delete(message.callId)) {
        return invalid(`The tool message answers ${message.callId}, which is not an open tool call.`);
      }
      continue;
    }
    if (open.size > 0) {
      return invalid(`These tool calls were not answered before it: ${[...open].join(", ")}.`);
    }
    if (message.role === "assistant") {
      open = new Set(message.toolCalls.map((call) => call.id));
      if (open.size < message.toolCalls.length) return invalid("Two tool calls share one id.");
    }
  }
  if (open.size === 0) return undefined;
  return {
    kind: "invalid",
    message: `The last tool calls have no result yet: ${[...open].join(", ")}.`,
    param: "messages",
  };
}
