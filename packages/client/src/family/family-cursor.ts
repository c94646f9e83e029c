import { ActorKey, Genesis, RuntimeFault } from "@holdfast/protocol";
import { z } from "zod";
import type { FamilyMember } from "./family-order.ts";

const PREFIX = "f1-";

// Short: there is one per member that has not ended, in every cursor.
const Place = z.tuple([
  ActorKey,
  z.union([Genesis, z.literal("")]),
  z.int().min(0),
  z.int().min(0),
  z.union([ActorKey, z.literal("")]),
  z.string(),
]);
const Position = z.tuple([ActorKey, z.array(Place).max(100_000)]);

/** A position of a family as an opaque word. */
export function formatFamilyCursor(root: string, position: readonly FamilyMember[]): string {
  const places = position.map(({ key, genesis = "", rev, seq, parent }) => [
    key,
    genesis,
    rev,
    seq,
    parent?.key ?? "",
    parent?.childId ?? "",
  ]);
  return PREFIX + Buffer.from(JSON.stringify([root, places])).toString("base64url");
}

/** @throws RuntimeFault HF-1001 when it is no cursor of this family */
export function parseFamilyCursor(root: string, cursor: string): readonly FamilyMember[] {
  const parsed = cursor.startsWith(PREFIX) ? Position.safeParse(jsonOf(cursor.slice(PREFIX.length))) : undefined;
  const [of, places] = parsed?.data ?? [undefined, []];
  if (of === root) {
    return places.map(([key, genesis, rev, seq, parentKey, childId]) => ({
      key,
      ...(genesis !== "" && { genesis }),
      rev,
      seq,
      ...(parentKey !== "" && { parent: { key: parentKey, childId } }),
    }));
  }
  throw new RuntimeFault(
    "HF-1001",
    `Cursor "${cursor.slice(0, 60)}": expected the cursor of an entry of the family of ${root}, found ${of === undefined ? "another word" : `one of ${of}`}. Use one as it was handed over, or none to begin with the first entry.`,
  );
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
  } catch {
    return undefined; // refused by the schema
  }
}
