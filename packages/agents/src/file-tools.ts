import { defineTool, describeTool, MAX_RESULT_BYTES, type Tool } from "./define-tool.ts";
import type { ConfinedRoot } from "./confined-folder.ts";
import { LIST_FILES, LIST_LIMITS, listFiles, type ListLimits } from "./list-files.ts";
import { READ_FILE, READ_LIMITS, readTextFile, type ReadLimits } from "./read-file.ts";
import { WRITE_REPORT, writeReport } from "./write-report.ts";

/** Definitions of the file tools, for agents whose files are on other nodes. */
export const FILE_TOOLS = {
  listFiles: describeTool(LIST_FILES),
  readFile: describeTool(READ_FILE),
  writeReport: describeTool(WRITE_REPORT),
} as const;

export interface FileToolsOptions {
  /** Folder that `list_files` and `read_file` see. Nothing outside of it can be reached. */
  readonly root: string;
  /** Folder that `write_report` writes into; made when it is missing. */
  readonly outputFolder: string;
  readonly limits?: Partial<ListLimits & ReadLimits>;
  /** How the folders are kept closed, see `confined-folder.ts`. */
  readonly confinement?: Omit<ConfinedRoot, "root">;
}

/** The tools `list_files`, `read_file` and `write_report`. */
export function createFileTools(options: FileToolsOptions): readonly [Tool, Tool, Tool] {
  const { confinement, outputFolder } = options;
  const root = { root: options.root, ...confinement };
  const limits = { ...LIST_LIMITS, ...READ_LIMITS, ...options.limits };
  return [
    defineTool({
      ...LIST_FILES,
      maxResultBytes: roomFor(limits.maxBytes),
      run: ({ path }, { signal }) => listFiles(root, path, { signal, limits }),
    }),
    defineTool({
      ...READ_FILE,
      maxResultBytes: roomFor(limits.maxResultBytes),
      run: ({ path }, { signal }) => readTextFile(root, path, { signal, limits }),
    }),
    defineTool({
      ...WRITE_REPORT,
      run: (report, { idempotencyKey }) => writeReport({ ...confinement, root: outputFolder }, report, idempotencyKey),
    }),
  ];
}

// They keep to limits of their own and stay whole JSON; the limit of the toolbox must not cut them once more.
const roomFor = (bytes: number): number => Math.max(MAX_RESULT_BYTES, bytes + 1024);
