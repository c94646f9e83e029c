import { lastUserText } from "../dialogue.ts";
import type { Script } from "../script.ts";

/** Answers with the last user message. */
export const echo: Script = ({ messages }) => ({ text: lastUserText(messages) });
