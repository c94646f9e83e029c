/** Content-addressed payloads. Put before the commit that names them. */
export interface BlobStore {
  /** Idempotent; the name is the SHA-256 in hex. */
  put(sha256: string, bytes: Uint8Array): Promise<void>;
  /** Verified against the name. @returns undefined when there is none or its bytes do not match */
  get(sha256: string): Promise<Uint8Array | undefined>;
}
