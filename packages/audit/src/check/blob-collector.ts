import { z } from "zod";

const ObjectInfo = z.looseObject({ name: z.string(), nuid: z.string(), deleted: z.boolean().optional() });

/** Puts the objects of an object store together from the messages of its stream. */
export class BlobCollector {
  readonly #chunks = new Map<string, Uint8Array[]>();
  /** Name → id of its latest content. */
  readonly #latest = new Map<string, string>();

  /** Chunks lie under `$O.<bucket>.C.<id>`, what they are together under `$O.<bucket>.M.<name>`. */
  take(subject: string, bytes: Uint8Array): void {
    const [, , kind, id = ""] = subject.split(".");
    if (kind === "C") this.#chunks.set(id, [...(this.#chunks.get(id) ?? []), bytes]);
    if (kind !== "M" || bytes.length === 0) return;
    const { name, nuid, deleted } = ObjectInfo.parse(JSON.parse(new TextDecoder().decode(bytes)));
    if (deleted === true) this.#latest.delete(name);
    else this.#latest.set(name, nuid);
  }

  /** Name → content. */
  collected(): ReadonlyMap<string, Uint8Array> {
    return new Map(
      [...this.#latest].map(([name, id]) => [name, new Uint8Array(Buffer.concat(this.#chunks.get(id) ?? []))]),
    );
  }
}
