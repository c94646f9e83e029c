import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RuntimeFault } from "@holdfast/protocol";
import { expect } from "vitest";
import { createFileTools, type FileToolsOptions } from "../file-tools.ts";
import { createToolbox } from "../toolbox.ts";

/** Text of `outside/secret.txt`, which no tool may reach. */
export const SECRET = "planted-secret-outside-3f";

/** A root with `a.md` and `sub/b.txt`, an output folder that does not exist yet, and a file outside of both. */
export interface FileSandbox {
  readonly base: string;
  readonly root: string;
  readonly output: string;
}

/** Makes one in the folder for temporary files; remove `base` afterwards. */
export async function makeSandbox(): Promise<FileSandbox> {
  const base = await mkdtemp(join(tmpdir(), "holdfast-files-"));
  const root = join(base, "root");
  await mkdir(join(root, "sub"), { recursive: true });
  await mkdir(join(base, "outside"));
  await writeFile(join(base, "outside", "secret.txt"), SECRET);
  await writeFile(join(root, "a.md"), "# A\n");
  await writeFile(join(root, "sub", "b.txt"), "b");
  return { base, root, output: join(base, "output") };
}

/** Calls a file tool and reads its result. */
export function fileToolsOf({ root, output }: FileSandbox, options: Partial<FileToolsOptions> = {}) {
  const box = createToolbox(createFileTools({ root, outputFolder: output, ...options }));
  return async (name: string, input: object, idempotencyKey = "k1"): Promise<unknown> => {
    const signal = new AbortController().signal;
    const context = { signal, callId: "c", idempotencyKey, attempt: 1, conversation: "d-0.conversation.x", agent: "a" };
    return JSON.parse((await box.run(name, input, context)).content);
  };
}

/** The fault a call ends with, which names nothing of the machine. */
export async function fileFaultOf(call: Promise<unknown>): Promise<RuntimeFault> {
  const error = await call.catch((error: unknown) => error);
  if (!(error instanceof RuntimeFault)) throw new Error(`No fault: ${String(error)}`);
  for (const secret of [SECRET, tmpdir()]) expect(error.message).not.toContain(secret);
  return error;
}
