/** A stored blob that is old enough to be looked at. */
export interface OldBlob {
  readonly sha256: string;
  /** What identifies this very copy: a blob that was put again since is another one. */
  readonly copy: string;
  readonly seq: number;
}

/** Everything that is needed to remove blobs that nothing names. */
export interface BlobSweepStore {
  /** Blobs from a sequence on that were last put before `beforeMs` (broker time, Unix ms), oldest first, at most `limit`. */
  olderThan(beforeMs: number, fromSeq: number, limit: number, signal: AbortSignal): Promise<readonly OldBlob[]>;
  /**
   * Whatever any stored record, message or journal entry names, told to `visit` by the beginning of its SHA-256. What is named all the time
   * from before the call until after it is told, also when what names it is written again meanwhile, or hands it on.
   */
  named(visit: (sha256Prefix: string) => void, signal: AbortSignal): Promise<void>;
  /** Removes this very copy; one that was put since stays. */
  remove(blob: OldBlob): Promise<void>;
}
