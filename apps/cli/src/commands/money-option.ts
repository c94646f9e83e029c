import { InvalidArgumentError } from "commander";

/** Millionths of a US dollar from `2.5`; `none` means no limit. Digits beyond the sixth would be lost, so they are refused. */
export function moneyOption(text: string): number | null {
  if (text === "none") return null;
  const [, whole = "", part = ""] = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (whole === "")
    throw new InvalidArgumentError('Expected US dollars such as 2.5 with at most six decimals, or "none".');
  return Number(whole) * 1_000_000 + Number(part.padEnd(6, "0"));
}

/** A number of tokens; `none` means no limit. */
export function tokensOption(text: string): number | null {
  if (text === "none") return null;
  const tokens = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(tokens))
    throw new InvalidArgumentError('Expected a whole number of tokens, or "none".');
  return tokens;
}

/** `$2.500000`, for people. */
export const dollars = (microUsd: number): string => `$${(microUsd / 1_000_000).toFixed(6)}`;
