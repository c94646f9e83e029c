import { InvalidArgumentError } from "commander";

export type Tags = Readonly<Record<string, string>>;

/** Collects `--tag name=value`. */
export function tagOption(text: string, before: Tags = {}): Tags {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("Expected <name>=<value>.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}
