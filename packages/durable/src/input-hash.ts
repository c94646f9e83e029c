import { hash128 } from "@holdfast/protocol";
import { canonicalJson } from "./canonical-json.ts";
import { plainView } from "./replay/plain-view.ts";

/** Hash of the content of an input: the order of its fields makes no difference. */
export const inputHash = (input: unknown): string => hash128(canonicalJson(plainView(input)));
