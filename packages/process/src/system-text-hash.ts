import { hash } from "node:crypto";

/** SHA-256 over the UTF-8 of a text, as 64 hex characters, from the system's own library: of the id of every message from outside. */
export const systemTextHash = (text: string): string => hash("sha256", text, "hex");
