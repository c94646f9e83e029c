import { quoted, ToolFault } from "./tool-fault.ts";

/** @param path  as the model gave it */
export const outsideFault = (path: string, why: string): ToolFault =>
  new ToolFault("HF-5104", `File ${quoted(path)}: ${why}. Give a path relative to the folder, like "notes/today.md".`);

export const unreadableFault = (path: string, why: string): ToolFault =>
  new ToolFault("HF-5105", `File ${quoted(path)}: ${why}. Look at the list of files.`);

const CAUSES: Readonly<Record<string, string>> = {
  ENOENT: "there is none",
  EACCES: "reading it is not allowed",
  EPERM: "reading it is not allowed",
  EISDIR: "it is a folder",
  ENOTDIR: "a part of the path is not a folder",
  ELOOP: "its links lead in a circle",
  ENAMETOOLONG: "the path is too long",
};

/** What a failed system call means to a model. The error itself is not kept: it names folders of the machine. */
export function systemFault(path: string, error: unknown): ToolFault {
  if (error instanceof ToolFault) return error;
  const code = systemCode(error);
  return unreadableFault(path, CAUSES[code] ?? `it could not be read (${code})`);
}

/** `ENOENT` and the like; `unknown` when the error is none of a system call. */
export function systemCode(error: unknown): string {
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "unknown";
}
