import type { Manifest } from "@holdfast/protocol";
import type { Link } from "./link.ts";
import { openNamespace, type OpenNamespace } from "./namespace.ts";

/**
 * An open namespace that grows: pools are added to it while nodes run.
 *
 * Owns: the newest manifest this process has read. Does not own: when to read it again (whoever watches the fleet bucket).
 */
export class LiveNamespace implements OpenNamespace {
  readonly #link: Link;
  #current: OpenNamespace;

  constructor(link: Link, opened: OpenNamespace) {
    this.#link = link;
    this.#current = opened;
  }

  get manifest(): Manifest {
    return this.#current.manifest;
  }

  get streamCreated(): Readonly<Record<string, string>> {
    return this.#current.streamCreated;
  }

  get pools(): Readonly<Record<string, number>> {
    return this.#current.manifest.pools;
  }

  get shards(): number {
    return this.#current.manifest.shards;
  }

  /** @throws RuntimeFault HF-4005, HF-4008 */
  async refresh(): Promise<void> {
    this.#current = await openNamespace(this.#link, this.#current.manifest.ns);
  }

  /** Takes what somebody has just read or written. */
  replace(opened: OpenNamespace): void {
    this.#current = opened;
  }
}
