import { createHash, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";

/** Whether two secrets are the same, in a time that says nothing about where they differ. Empty ones are never the same as anything. */
export function sameSecret(left: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text, "utf8").digest();
  return timingSafeEqual(digest(left), digest(right)) && left !== "";
}

/** The token of a seat as its file has it now, without the white space around it. @returns undefined when there is none yet, or it is empty */
export async function readToken(file: string): Promise<string | undefined> {
  try {
    const text = (await readFile(file, "utf8")).trim();
    return text === "" ? undefined : text;
  } catch {
    // Whatever keeps it from being read: without a token nobody is let in.
    return undefined;
  }
}
