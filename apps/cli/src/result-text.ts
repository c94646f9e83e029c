import type { SendResult } from "@holdfast/client";

/** A result in words for people. */
export function resultText(result: SendResult): string {
  switch (result.kind) {
    case "applied":
      return `applied, now at revision ${result.rev}`;
    case "ignored":
      return `already so, at revision ${result.rev}`;
    case "accepted":
      return result.stopped === undefined
        ? "accepted and stored; no node has answered yet"
        : `accepted and stored; it is applied when "holdfast panic clear" has lifted the stop of the fleet (${result.stopped})`;
    case "refused":
      return `refused: ${result.code} ${result.reason}`;
  }
}
