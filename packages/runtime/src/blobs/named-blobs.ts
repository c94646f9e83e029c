import type { ActorRecord, BlobFields, Effect, Envelope, JournalEntry } from "@holdfast/protocol";

const NONE: readonly string[] = [];

/** Collects SHA-256 of blobs, each once; where nothing is named nothing is allocated. */
class Named {
  #found: Set<string> | undefined;

  add(blobs: BlobFields | undefined): void {
    if (blobs === undefined) return;
    this.#found ??= new Set();
    for (const { sha256 } of Object.values(blobs)) this.#found.add(sha256);
  }

  get all(): readonly string[] {
    return this.#found === undefined ? NONE : [...this.#found];
  }
}

/** Every blob that a record names. Whoever stores it says so in a header, so that nobody has to read it for that. */
export function blobsOfRecord({ snapshot, outbox, settled }: ActorRecord): readonly string[] {
  const named = new Named();
  named.add(snapshot.blobs);
  for (const child of Object.values(snapshot.children)) named.add(child.blobs);
  for (const effect of outbox) named.add(blobsOfEffect(effect));
  if (settled !== undefined) named.add(blobsOfEffect(settled));
  return named.all;
}

const blobsOfEffect = (effect: Effect): BlobFields | undefined => (effect.kind === "stop" ? undefined : effect.blobs);

export function blobsOfEnvelope(envelope: Envelope): readonly string[] {
  const named = new Named();
  if (envelope.kind !== "stop") named.add(envelope.blobs);
  return named.all;
}

export function blobsOfJournal(entries: readonly JournalEntry[]): readonly string[] {
  const named = new Named();
  for (const { blobs } of entries) named.add(blobs);
  return named.all;
}
