import { access, constants, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { RuntimeFault } from "@holdfast/protocol";
import { documentsIn } from "./check-report.ts";

/**
 * Checks that a folder can be surveyed before anything is started.
 * @returns its absolute path and its documents
 * @throws RuntimeFault HF-7004 with what is wrong and what to do
 */
export async function surveyFolder(
  given: string,
): Promise<{ readonly folder: string; readonly documents: readonly string[] }> {
  const folder = resolve(given);
  const refuse = (why: string): RuntimeFault =>
    new RuntimeFault("HF-7004", `Folder ${given}: ${why}`, { facts: { folder: given } });
  const info = await stat(folder).catch(() => undefined);
  if (info === undefined) throw refuse("it does not exist. Check the path.");
  if (!info.isDirectory()) throw refuse("it is not a folder. Name the folder that holds the documents.");
  await access(folder, constants.R_OK | constants.X_OK).catch(() => {
    throw refuse("it cannot be read by this user. Change its permissions, or choose another.");
  });
  const documents = await documentsIn(folder);
  if (documents.length === 0) throw refuse("it holds no .md or .txt documents. Choose another, for example docs.");
  return { folder, documents };
}
