import { readFile } from "node:fs/promises";
import { RuntimeFault, type ActorRecord } from "@holdfast/protocol";
import { journaledStateJson } from "holdfast";
import { z } from "zod";

/** An actor at one revision, as far as its journal decides it: what a later replay is compared with. */
export const SavedState = z.object({
  v: z.literal(1),
  key: z.string(),
  rev: z.number(),
  state: z.record(z.string(), z.unknown()),
});
export type SavedState = z.infer<typeof SavedState>;

export const savedStateOf = (record: ActorRecord): SavedState =>
  SavedState.parse({ v: 1, key: record.key, rev: record.rev, state: journaledStateJson(record) });

/** A file that `--save` wrote, or the output of `--json`. */
const SavedFile = z.union([SavedState, z.looseObject({ saved: SavedState }).transform(({ saved }) => saved)]);

/** @throws RuntimeFault HF-1001 when the file is none, or one of another actor */
export async function readSavedState(path: string, key: string): Promise<SavedState> {
  const saved = await readFile(path, "utf8").then(
    (text) => SavedFile.parse(JSON.parse(text)),
    (cause: unknown) => {
      throw new RuntimeFault("HF-1001", `${path}: it cannot be read. Name a file that "replay --save" wrote.`, {
        cause,
      });
    },
  );
  if (saved.key === key) return saved;
  throw new RuntimeFault(
    "HF-1001",
    `${path}: expected a state of ${key}, found one of ${saved.key}. Name another file.`,
  );
}
