import { lastUserText } from "../dialogue.ts";
import type { Script } from "../script.ts";

/** Lists the same folder again and again, and says so, until the last user message is `enough`. Nothing else moves it. */
export const stubborn: Script = ({ messages }) =>
  lastUserText(messages) === "enough"
    ? { text: "enough" }
    : { text: "still at it", toolCalls: [{ name: "list_files", arguments: { path: "." } }] };
