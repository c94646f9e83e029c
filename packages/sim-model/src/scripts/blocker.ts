import { lastUserText } from "../dialogue.ts";
import type { Script } from "../script.ts";

/** Holds its answer until it is released, then answers `result of <last user message>`. */
export const blocker: Script = ({ messages }) => ({
  block: true,
  text: `result of ${lastUserText(messages)}`,
});
