import type { StepMessage } from "@holdfast/durable";
import { withBlobFields } from "@holdfast/protocol";

/** A message with the fields back that were kept outside of it. */
export function withPayload(message: StepMessage, values: Readonly<Record<string, unknown>>): StepMessage {
  switch (message.kind) {
    case "start":
      return { ...message, input: values["input"] };
    case "event":
    case "settled":
      return { ...message, event: withBlobFields(message.event, values) };
    case "timer":
    case "stop":
      return message;
  }
}
