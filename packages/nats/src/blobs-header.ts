/** Names the blobs that a stored message refers to, so that who sweeps blobs need not read its bytes. */
export const BLOBS_HEADER = "Hf-Blobs";

/** Characters of each SHA-256: 128 bits tell blobs apart, and a record may name hundreds. */
const NAME_CHARACTERS = 32;

/** Headers of a message that names these blobs. */
export function blobsHeader(sha256s: readonly string[] = []): Readonly<Record<string, string>> {
  if (sha256s.length === 0) return {};
  return { [BLOBS_HEADER]: sha256s.map((sha256) => sha256.slice(0, NAME_CHARACTERS)).join(",") };
}
